"""Fused CPU kernels, compiled with LLVM, behind torch operators.

`README.md` shows how to write a kernel. `ir` is the language that kernels are written in, `_formulas` the equations of
the layers; `dense`, `conv` and `gate` are the kernels for stacks, convolutional layers and the highway operation,
`pool` and `dropout` those for max pooling and dropout; `runtime` compiles and runs them, and decides whether they can
run. Files named `_*_loops` hold the loops, `_*_call` the kernel calls for one batch, `_*_op` what torch calls. Tensors
go in and tensors come out; everything that kernels compute has a reference in `verydeep.nn` or `verydeep.models`.
"""

from verydeep.kernels.conv._conv_call import ConvOptions
from verydeep.kernels.conv._conv_op import conv_layer
from verydeep.kernels.conv._planned import PlannedConv
from verydeep.kernels.dense._stack_op import (
    backward_mlp,
    cross_entropy_gradient,
    open_layers,
    run_mlp,
    run_stack,
    stack,
    stack_states,
    trace_stack,
)
from verydeep.kernels.dense._training_steps import Trained, TrainingSteps, UpdateRule
from verydeep.kernels.dropout._dropout_op import dropout
from verydeep.kernels.gate._gate_op import highway_gate
from verydeep.kernels.pool._max_pool_op import PlannedPool, Windows, max_pool
from verydeep.kernels.runtime._chain import PlannedChain, PlannedLayer, empty_images
from verydeep.kernels.runtime._eligibility import (
    Activations,
    Backend,
    can_plan_conv,
    can_plan_inference,
    can_run_conv,
    can_run_dropout,
    can_run_gate,
    can_run_layers,
    can_run_max_pool,
    can_run_mlp,
    can_run_plain_conv,
    can_run_stack,
    can_set_gradients,
    check_backend,
    has_bfloat16,
    has_hooks,
    has_own_hooks,
    multiplies_bfloat16,
    prefers_channels_last,
)
from verydeep.kernels.runtime._threads import restore_waits

__all__ = [
    "Activations",
    "Backend",
    "ConvOptions",
    "PlannedChain",
    "PlannedConv",
    "PlannedLayer",
    "PlannedPool",
    "Trained",
    "TrainingSteps",
    "UpdateRule",
    "Windows",
    "backward_mlp",
    "can_plan_conv",
    "can_plan_inference",
    "can_run_conv",
    "can_run_dropout",
    "can_run_gate",
    "can_run_layers",
    "can_run_max_pool",
    "can_run_mlp",
    "can_run_plain_conv",
    "can_run_stack",
    "can_set_gradients",
    "check_backend",
    "conv_layer",
    "cross_entropy_gradient",
    "dropout",
    "empty_images",
    "has_bfloat16",
    "has_hooks",
    "has_own_hooks",
    "highway_gate",
    "max_pool",
    "multiplies_bfloat16",
    "open_layers",
    "prefers_channels_last",
    "restore_waits",
    "run_mlp",
    "run_stack",
    "stack",
    "stack_states",
    "trace_stack",
]
