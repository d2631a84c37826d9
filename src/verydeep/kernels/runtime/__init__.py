"""What all kernels need to run.

`_eligibility` decides whether they can, `_compile` turns kernels into functions and caches them, `_threads` and
`_serve` run these on several cores, `_buffers` lends memory. Kernels written in `ir` go in; functions that take sizes
and addresses come out.
"""
