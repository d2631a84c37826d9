"""Fused kernels for the processor, behind torch operators; everything they do has a reference in `verydeep.nn`."""

from verydeep.kernels._stack_op import stack

__all__ = ["stack"]
