"""What all kernels need to run.

`_eligibility` decides whether they can, `_compile` turns kernels into functions and caches them, `_buffers` lends
memory. `_threads` runs functions on several cores, from a `_table` of jobs: on the threads of `_openmp`, or on those of
`_pool` if `_contention` says that others want the cores. Kernels written in `ir` go in; functions that take sizes and
addresses come out.
"""
