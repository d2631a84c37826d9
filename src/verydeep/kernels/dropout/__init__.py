"""Kernels for dropout in convolutional networks.

`_dropout_loops` has the loop, which draws its random numbers from a key and keeps no mask, and `_dropout_op` what torch
calls, forwards and backwards.
"""
