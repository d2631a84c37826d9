"""Kernels for max pooling of images whose channels come last.

`_max_pool_loops` has the loops, forwards and backwards, and `_max_pool_op` what torch calls.
"""
