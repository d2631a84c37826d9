"""Fused stacks and whole fully connected networks for torch.

`verydeep::stack` and its backward pass are torch operators. The functions that layers call compute the same without
the overhead of an operator, which costs as much as several layers.
"""

import math
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from verydeep.kernels.dense._outer_layers_call import OuterLayersCall
from verydeep.kernels.dense._stack_call import StackCall
from verydeep.kernels.dense._stack_plan import activation_of, kept_by_sample, parts_of_layer
from verydeep.kernels.runtime._eligibility import multiplies_bfloat16

_Context = Any  # torch's, which has no type
_aten = torch.ops.aten
_SUM, _IGNORED = 2, -100  # the reduction, and the class that torch's cross-entropy ignores


def open_layers(depth: int, closed: Collection[int] = (), first: int = 0) -> Tensor:
    """The numbers of the layers of a stack from `first` on that are not closed, as the kernels take them."""
    return _open_layers(depth, frozenset(closed), first)


@lru_cache(maxsize=128)
def _open_layers(depth: int, closed: frozenset[int], first: int) -> Tensor:
    layers = [layer for layer in range(first, depth) if layer not in closed]
    with torch.inference_mode(False):  # one that is cached during an evaluation is also used in training
        return torch.tensor(layers, dtype=torch.int64, device="cpu")


@torch.library.custom_op("verydeep::stack", mutates_args=())
def stack(
    x: Tensor, weight: Tensor, bias: Tensor, layers: Tensor, activation: str, segment: int
) -> tuple[Tensor, Tensor]:
    """The output of a stack, and what its backward pass needs.

    Args:
        x: `(batch, width)`, float32 on the CPU like all others.
        weight: `(layer, map * block, width)`: one map per plain or residual layer, two or three per highway layer.
        bias: `(layer, map * block)`.
        layers: int64, the layers to go through, in order.
        activation: "tanh" or "relu"; with "residual-" before it, the layers are residual.
        segment: 0 keeps nothing (no backward pass then), 1 the activations of every layer, n the input of every n-th
            layer: the backward pass recomputes the layers between.
    """
    return StackCall(weight, bias, layers, activation, segment).forward(x)


@stack.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor, layers: Tensor, activation: str, segment: int) -> tuple[Tensor, Tensor]:
    from verydeep.kernels.ir._processor import LANES

    width, rows = x.shape[1], -(-x.shape[0] // LANES) * LANES
    parts = parts_of_layer(weight.shape[1] // width, activation)
    kept = rows * kept_by_sample(width, parts, layers.shape[0], segment)[1]
    return x.new_empty(x.shape), x.new_empty(kept)


@torch.library.custom_op("verydeep::stack_backward", mutates_args=())
def stack_backward(
    dy: Tensor, kept: Tensor, weight: Tensor, bias: Tensor, layers: Tensor, activation: str, segment: int, threads: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of x, weight and bias."""
    dx, d_weight, d_bias = StackCall(weight, bias, layers, activation, segment).backward(dy, kept, threads)
    return dx, d_weight, d_bias.clone()  # the outputs of an operator must not share memory


@stack_backward.register_fake
def _(
    dy: Tensor, kept: Tensor, weight: Tensor, bias: Tensor, layers: Tensor, activation: str, segment: int, threads: int
) -> tuple[Tensor, Tensor, Tensor]:
    return dy.new_empty(dy.shape), weight.new_empty(weight.shape), bias.new_empty(bias.shape)


def _setup(ctx: _Context, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    _x, weight, bias, layers, activation, segment = inputs
    ctx.save_for_backward(output[1], weight, bias, layers)
    ctx.activation, ctx.segment, ctx.threads = activation, segment, torch.get_num_threads()
    ctx.set_materialize_grads(False)


def _backward(ctx: _Context, dy: Tensor | None, _d_kept: Tensor | None) -> tuple[Tensor | None, ...]:
    if dy is None:
        return (None,) * 6
    grads = stack_backward(dy, *ctx.saved_tensors, ctx.activation, ctx.segment, ctx.threads)
    return (*grads, None, None, None)


def _no_second_derivative(_ctx: _Context, *_grads: Tensor | None) -> tuple[Tensor | None, ...]:
    raise RuntimeError('the fused stack has no second derivatives; build it with backend="reference" to get them')


stack.register_autograd(_backward, setup_context=_setup)
stack_backward.register_autograd(_no_second_derivative)


class _StackFunction(torch.autograd.Function):
    """The operator without its overhead."""

    @staticmethod
    def forward(
        ctx: _Context,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        layers: Tensor,
        activation: str,
        segment: int,
        bfloat16: bool,
    ) -> Tensor:
        y, kept = StackCall(weight, bias, layers, activation, segment, bfloat16=bfloat16).forward(x)
        _setup(ctx, (x, weight, bias, layers, activation, segment), (y, kept))
        ctx.bfloat16 = bfloat16
        return y

    @staticmethod
    def backward(ctx: _Context, dy: Tensor | None) -> tuple[Tensor | None, ...]:
        if dy is None or torch.is_grad_enabled():  # for second derivatives, which the operator refuses
            return (*_backward(ctx, dy, None), None)
        kept, weight, bias, layers = ctx.saved_tensors
        call = StackCall(weight, bias, layers, ctx.activation, ctx.segment, bfloat16=ctx.bfloat16)
        return (*call.backward(dy, kept, ctx.threads), None, None, None, None)


class _MLPFunction(torch.autograd.Function):
    """An input layer, a stack and a classifier."""

    @staticmethod
    def forward(
        ctx: _Context, x: Tensor, layers: Tensor, activation: str, bfloat16: bool, *parameters: Tensor
    ) -> Tensor:
        y, kept = _mlp(layers, activation, 1, parameters, bfloat16).forward(x)
        ctx.save_for_backward(kept, x, layers, *parameters)
        ctx.activation, ctx.bfloat16, ctx.threads = activation, bfloat16, torch.get_num_threads()
        ctx.set_materialize_grads(False)
        return y

    @staticmethod
    def backward(ctx: _Context, dy: Tensor | None) -> tuple[Tensor | None, ...]:
        if dy is None:
            return (None,) * 10
        if torch.is_grad_enabled():
            return _no_second_derivative(ctx)
        kept, x, layers, *parameters = ctx.saved_tensors
        mlp = _mlp(layers, ctx.activation, 1, parameters, ctx.bfloat16)
        return None, None, None, None, *mlp.backward(dy, kept, ctx.threads, x)


def _mlp(layers: Tensor, activation: str, segment: int, parameters: Sequence[Tensor], bfloat16: bool) -> StackCall:
    weight, bias, input_weight, input_bias, classifier_weight, classifier_bias = parameters
    outer = OuterLayersCall((input_weight, input_bias), (classifier_weight, classifier_bias), activation_of(activation))
    return StackCall(weight, bias, layers, activation, segment, outer, bfloat16)


def run_stack(x: Tensor, weight: Tensor, bias: Tensor, layers: Tensor, activation: str, recompute: bool) -> Tensor:
    """The output of `stack`, differentiable if an input needs a gradient.

    With `recompute`, every sqrt(n)-th of n layers keeps its input and the backward pass recomputes the others.
    """
    bfloat16 = multiplies_bfloat16()
    if torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad or bias.requires_grad):
        segment = max(2, math.isqrt(layers.shape[0])) if recompute else 1
        arguments = x, weight, bias, layers, activation, segment, bfloat16
        return _StackFunction.apply(*arguments)  # type: ignore[no-any-return,no-untyped-call]
    return StackCall(weight, bias, layers, activation, 0, bfloat16=bfloat16).forward(x)[0]


def run_mlp(x: Tensor, layers: Tensor, activation: str, *parameters: Tensor) -> Tensor:
    """The logits of an input layer, a stack and a classifier, differentiable by the parameters but not by x.

    Args:
        x: `(batch, input)`, float32 on the CPU like all others.
        layers: int64, the layers of the stack to go through, in order.
        activation: "tanh" or "relu", also that of the input layer; with "residual-" before it, the layers of the stack
            are residual.
        parameters: Weight and bias of the stack, then of the input layer, then of the classifier.
    """
    x, parameters = _fill_registers(x, parameters)
    if torch.is_grad_enabled() and any(parameter.requires_grad for parameter in parameters):
        arguments = x, layers, activation, multiplies_bfloat16(), *parameters
        return _MLPFunction.apply(*arguments)  # type: ignore[no-any-return,no-untyped-call]
    return _mlp(layers, activation, 0, parameters, multiplies_bfloat16()).forward(x)[0]


Gradient = Callable[[Tensor], tuple[Tensor, Tensor]]
"""From the outputs of a network to the loss of a batch and its gradient by the outputs."""


@torch.no_grad()
def backward_mlp(
    x: Tensor, gradient: Gradient, layers: Tensor, activation: str, *parameters: Tensor
) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """The loss of a batch, the outputs of `run_mlp`, and the gradients of the loss by the parameters.

    The steps are those of torch's own backward pass, so the bits are the same, but no graph of the network is recorded.

    Args:
        x: `(batch, input)`.
        gradient: Computes the loss and its gradient by the outputs.
        layers: As for `run_mlp`.
        activation: As for `run_mlp`.
        parameters: As for `run_mlp`.
    """
    inputs = x.shape[1]
    x, parameters = _fill_registers(x, parameters)
    mlp = _mlp(layers, activation, 1, parameters, multiplies_bfloat16())
    outputs, kept = mlp.forward(x)
    loss, d_outputs = gradient(outputs)
    gradients = mlp.backward(d_outputs, kept, torch.get_num_threads(), x)
    if x.shape[1] > inputs:
        gradients = (*gradients[:2], gradients[2][:, :inputs].contiguous(), *gradients[3:])
    return loss, outputs, gradients


def _fill_registers(x: Tensor, parameters: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Samples and parameters of a network with zeros for further inputs, until these fill registers."""
    from verydeep.kernels.ir._processor import LANES

    missing = -x.shape[1] % LANES
    if not missing:
        return x, parameters
    weight, bias, input_weight, *others = parameters
    return F.pad(x, (0, missing)), (weight, bias, F.pad(input_weight, (0, missing)), *others)


def cross_entropy_gradient(logits: Tensor, y: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """The sum of a batch's cross-entropies and `scale` times its gradient, by the operations that autograd calls."""
    logs = logits.log_softmax(1)
    loss, weight = _aten.nll_loss_forward.default(logs, y, None, _SUM, _IGNORED)
    d_logs = _aten.nll_loss_backward.default(logs.new_tensor(scale), logs, y, None, _SUM, _IGNORED, weight)
    return loss, _aten._log_softmax_backward_data.default(d_logs, logs, 1, torch.float32)


def trace_stack(x: Tensor, weight: Tensor, bias: Tensor, layers: Tensor, activation: str) -> list[Tensor]:
    """The input of every layer, H, T and an independent C, then its output, each `(layer, batch, block)`.

    The arguments are those of `stack`.
    """
    fused = StackCall(weight, bias, layers, activation, 1, bfloat16=multiplies_bfloat16())
    return fused.unpack(fused.forward(x)[1], x.shape[0])


def stack_states(x: Tensor, weight: Tensor, bias: Tensor, layers: Tensor, activation: str) -> Tensor:
    """The inputs of all layers and the output of the last, `(layer + 1, batch, block)`; arguments as for `stack`."""
    fused = StackCall(weight, bias, layers, activation, 1, bfloat16=multiplies_bfloat16())
    return fused.states(fused.forward(x)[1], x.shape[0])
