"""Fused kernels for the processor, behind torch operators; everything they do has a reference in `verydeep.nn`."""

from verydeep.kernels._stack_op import stack, trace_stack
from verydeep.kernels._usable import suits

__all__ = ["stack", "suits", "trace_stack"]
