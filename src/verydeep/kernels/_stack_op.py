"""The fused stack as two torch operators, `verydeep::stack` and its backward pass."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from verydeep.kernels._ends_run import Ends
from verydeep.kernels._stack_plan import kept_by_sample
from verydeep.kernels._stack_run import Stack

_Context = Any  # torch's, which has no type
_aten = torch.ops.aten
_SUM, _IGNORED = 2, -100  # the reduction, and the class that torch's cross-entropy skips


@torch.library.custom_op("verydeep::stack", mutates_args=())
def stack(
    x: Tensor, weight: Tensor, bias: Tensor, layers: Tensor, activation: str, segment: int
) -> tuple[Tensor, Tensor]:
    """The stack's output, and what its backward pass needs.

    Args:
        x: `(batch, width)`, float32 on the CPU as all others.
        weight: `(layer, map * block, width)`: one map a plain layer, two or three a highway layer.
        bias: `(layer, map * block)`.
        layers: int64, the layers to go through, in order.
        activation: "tanh" or "relu".
        segment: 0 keeps nothing (no backward pass then), 1 what every layer did, n the input of each n-th layer: the
            backward pass computes the layers between again.
    """
    return Stack(weight, bias, layers, activation, segment).forward(x)


@stack.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor, layers: Tensor, activation: str, segment: int) -> tuple[Tensor, Tensor]:
    from verydeep.kernels._ir import LANES

    width, rows = x.shape[1], -(-x.shape[0] // LANES) * LANES
    kept = rows * kept_by_sample(width, weight.shape[1] // width, layers.shape[0], segment)[1]
    return x.new_empty(x.shape), x.new_empty(kept)


@torch.library.custom_op("verydeep::stack_backward", mutates_args=())
def stack_backward(
    dy: Tensor, kept: Tensor, weight: Tensor, bias: Tensor, layers: Tensor, activation: str, segment: int, threads: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The derivatives by x, weight and bias."""
    dx, d_weight, d_bias = Stack(weight, bias, layers, activation, segment).backward(dy, kept, threads)
    return dx, d_weight, d_bias.clone()  # the outputs of an operator share no memory


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


def _no_second(_ctx: _Context, *_grads: Tensor | None) -> tuple[Tensor | None, ...]:
    raise RuntimeError('the fused stack has no second derivatives; build it with backend="reference" for those')


stack.register_autograd(_backward, setup_context=_setup)
stack_backward.register_autograd(_no_second)


class _Eager(torch.autograd.Function):
    """The same without an operator's costs, which are those of several layers."""

    @staticmethod
    def forward(
        ctx: _Context, x: Tensor, weight: Tensor, bias: Tensor, layers: Tensor, activation: str, segment: int
    ) -> Tensor:
        y, kept = Stack(weight, bias, layers, activation, segment).forward(x)
        _setup(ctx, (x, weight, bias, layers, activation, segment), (y, kept))
        return y

    @staticmethod
    def backward(ctx: _Context, dy: Tensor | None) -> tuple[Tensor | None, ...]:
        if dy is None or torch.is_grad_enabled():  # for second derivatives, the operator says that it has none
            return _backward(ctx, dy, None)
        kept, weight, bias, layers = ctx.saved_tensors
        grads = Stack(weight, bias, layers, ctx.activation, ctx.segment).backward(dy, kept, ctx.threads)
        return (*grads, None, None, None)


class _EagerMLP(torch.autograd.Function):
    """A plain layer, the stack and a classifier."""

    @staticmethod
    def forward(ctx: _Context, x: Tensor, layers: Tensor, activation: str, *parameters: Tensor) -> Tensor:
        y, kept = _mlp(layers, activation, 1, parameters).forward(x)
        ctx.save_for_backward(kept, x, layers, *parameters)
        ctx.activation, ctx.threads = activation, torch.get_num_threads()
        ctx.set_materialize_grads(False)
        return y

    @staticmethod
    def backward(ctx: _Context, dy: Tensor | None) -> tuple[Tensor | None, ...]:
        if dy is None:
            return (None,) * 9
        if torch.is_grad_enabled():
            return _no_second(ctx)
        kept, x, layers, *parameters = ctx.saved_tensors
        return None, None, None, *_mlp(layers, ctx.activation, 1, parameters).backward(dy, kept, ctx.threads, x)


def _mlp(layers: Tensor, activation: str, segment: int, parameters: Sequence[Tensor]) -> Stack:
    weight, bias, *ends = parameters
    return Stack(weight, bias, layers, activation, segment, Ends((ends[0], ends[1]), (ends[2], ends[3]), activation))


def train_stack(x: Tensor, weight: Tensor, bias: Tensor, layers: Tensor, activation: str, segment: int) -> Tensor:
    """The output of `stack`, for a backward pass, outside of graphs."""
    return _Eager.apply(x, weight, bias, layers, activation, segment)  # type: ignore[no-any-return,no-untyped-call]


def infer_stack(x: Tensor, weight: Tensor, bias: Tensor, layers: Tensor, activation: str) -> Tensor:
    """The output of `stack` where nobody wants gradients, without the costs of an operator."""
    return Stack(weight, bias, layers, activation, 0).forward(x)[0]


def train_mlp(x: Tensor, layers: Tensor, activation: str, *parameters: Tensor) -> Tensor:
    """The logits of a plain layer, the stack and a classifier, for a backward pass, which gives x no gradient.

    Args:
        x: `(batch, input)`, float32 on the CPU as all others.
        layers: int64, the stack's layers to go through, in order.
        activation: "tanh" or "relu", of the first layer too.
        parameters: Weight and bias of the stack, then of the first layer, then of the classifier.
    """
    return _EagerMLP.apply(x, layers, activation, *parameters)  # type: ignore[no-any-return,no-untyped-call]


def infer_mlp(x: Tensor, layers: Tensor, activation: str, *parameters: Tensor) -> Tensor:
    """The output of `train_mlp` where nobody wants gradients."""
    return _mlp(layers, activation, 0, parameters).forward(x)[0]


@torch.no_grad()
def backward_cross_entropy(
    x: Tensor, y: Tensor, scale: float, layers: Tensor, activation: str, *parameters: Tensor
) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """The sum of a batch's cross-entropies, the logits of `train_mlp`, and `scale` times the sum's derivatives.

    The steps are those of torch's own loss and backward pass, without a graph of them: the same bits.
    """
    mlp = _mlp(layers, activation, 1, parameters)
    logits, kept = mlp.forward(x)
    logs = logits.log_softmax(1)
    loss, weight = _aten.nll_loss_forward.default(logs, y, None, _SUM, _IGNORED)
    d_logs = _aten.nll_loss_backward.default(logs.new_tensor(scale), logs, y, None, _SUM, _IGNORED, weight)
    d_logits = _aten._log_softmax_backward_data.default(d_logs, logs, 1, torch.float32)
    return loss, logits, mlp.backward(d_logits, kept, torch.get_num_threads(), x)


def trace_stack(x: Tensor, weight: Tensor, bias: Tensor, layers: Tensor, activation: str) -> list[Tensor]:
    """What every layer did with x: its input, H, T and an independent C, then its output, each `(layer, batch, block)`.

    The arguments are those of `stack`, which keeps all this for its backward pass anyway.
    """
    with torch.no_grad():
        _y, kept = stack(x, weight, bias, layers, activation, 1)
    return Stack(weight, bias, layers, activation, 1).unpack(kept, x.shape[0])


def stack_states(x: Tensor, weight: Tensor, bias: Tensor, layers: Tensor, activation: str) -> Tensor:
    """The inputs of all layers and the output of the last, `(layer + 1, batch, block)`; arguments as for `stack`."""
    fused = Stack(weight, bias, layers, activation, 1)
    return fused.states(fused.forward(x)[1], x.shape[0])
