"""Fused kernels for the processor, behind torch operators; everything they do has a reference in `verydeep.nn`."""

from verydeep.kernels._conv_op import conv_suits, highway_conv
from verydeep.kernels._ends_run import inputs_suit
from verydeep.kernels._gate_op import gate
from verydeep.kernels._stack_op import (
    backward_cross_entropy,
    infer_mlp,
    infer_stack,
    stack,
    stack_states,
    trace_stack,
    train_mlp,
    train_stack,
)
from verydeep.kernels._usable import suits

__all__ = [
    "backward_cross_entropy",
    "conv_suits",
    "gate",
    "highway_conv",
    "infer_mlp",
    "infer_stack",
    "inputs_suit",
    "stack",
    "stack_states",
    "suits",
    "trace_stack",
    "train_mlp",
    "train_stack",
]
