"""The language that kernels are written in, on top of llvmlite.

`_ir` has sizes, addresses, loops and functions, `_vector` has arithmetic on registers; `_product`, `_turn` and
`_passes` build matrix products, transposes and formulas over matrices from them. Python functions go in, `Kernel`
objects that `runtime` compiles come out.
"""
