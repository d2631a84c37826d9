"""The language that kernels are written in.

`_values` has sizes, addresses and matrices, `_vector` arithmetic on registers, `_control` loops, conditions and
variables, `_kernel` the decorator `@kernel`. What becomes of a kernel is decided by an `_emitter`: `_llvm` emits
instructions for `runtime` to compile, `_interpreter` runs the kernel on a checked `_memory`. `_product`, `_transpose`,
`_elementwise` and `_fill` are kernels that others are made of. `../README.md` explains the language by an example.
"""
