"""Kernels for max pooling: `_max_pool_loops` has the loops, `_max_pool_op` what torch calls."""
