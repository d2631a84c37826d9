"""Kernels for dropout: `_dropout_loops` has the loop, `_dropout_op` what torch calls."""
