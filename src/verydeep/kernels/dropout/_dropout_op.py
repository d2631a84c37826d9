"""Dropout as an operation of torch, forward and backward."""

from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from verydeep.kernels.runtime._threads import Call, run_together

if TYPE_CHECKING:
    from verydeep.kernels.runtime._compile import Function

_NUMBER = 4  # bytes
_SHARE = 2**15  # numbers that are worth a thread
_MOST = torch.iinfo(torch.int64).max


def dropout(x: Tensor, p: float) -> Tensor:
    """Each number times 1 / (1 - p), or times 0 with probability p, which is neither 0 nor 1.

    torch's generator is asked for one number only, the key of all others.

    Args:
        x: A tensor without gaps; which numbers become 0 depends on their order in memory.
        p: The probability.
    """
    key = int(torch.randint(_MOST, ()))
    if not (x.requires_grad and torch.is_grad_enabled()):
        return _run(x, p, key)
    y: Tensor = _Dropout.apply(x, p, key)  # type: ignore[no-untyped-call]
    return y


class _Dropout(torch.autograd.Function):
    """Dropout with a key. It is linear, so its derivative is the same operation."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, p: float, key: int) -> Tensor:  # noqa: ANN401 - torch's interface
        ctx.p, ctx.key, ctx.strides = p, key, x.stride()
        ctx.set_materialize_grads(False)
        return _run(x.detach(), p, key)

    @staticmethod
    def backward(ctx: Any, dy: Tensor | None) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        if dy is None:
            return None, None, None
        if dy.stride() != ctx.strides:  # the order in memory decides which numbers become 0
            dy = torch.empty_strided(dy.shape, ctx.strides).copy_(dy)
        if dy.requires_grad and torch.is_grad_enabled():
            return _Dropout.apply(dy, ctx.p, ctx.key), None, None  # type: ignore[no-untyped-call]
        return _run(dy, ctx.p, ctx.key), None, None


@cache
def _kernel() -> "Function":
    from verydeep.kernels.dropout._dropout_loops import dropout_numbers
    from verydeep.kernels.runtime._compile import compile_kernels

    return compile_kernels("dropout", [dropout_numbers])[0]


@cache
def _constants(p: float) -> Tensor:
    return torch.tensor([p, 1 / (1 - p)], dtype=torch.float32, device="cpu")


def _run(x: Tensor, p: float, key: int) -> Tensor:
    y, numbers = torch.empty_like(x), x.numel()
    x_at, y_at, constants = x.data_ptr(), y.data_ptr(), _constants(p).data_ptr()
    threads = max(1, min(torch.get_num_threads(), numbers // _SHARE))

    def call(first: int, last: int) -> Call:
        addresses = x_at + first * _NUMBER, y_at + first * _NUMBER, constants
        return _kernel(), (*addresses, key, first, last - first)

    run_together([[call(*pair)] for pair in pairwise(numbers * i // threads for i in range(threads + 1))])
    return y
