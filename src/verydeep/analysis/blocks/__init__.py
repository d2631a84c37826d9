"""Which parts of a network can be closed, highway layers and residual blocks, and running it with some of them closed.

`_find_blocks` proves which modules add something to their very input, and `_refused_blocks` says why others are not
blocks. `_blocks` runs a network with chosen blocks closed.
"""
