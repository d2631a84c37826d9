"""Max pooling as an operation of torch, forward and backward."""

from functools import cache, lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from verydeep.kernels.gate._gate_op import gradients
from verydeep.kernels.runtime._threads import Job, run_together

if TYPE_CHECKING:
    from verydeep.kernels.runtime._compile import Function

_NUMBER = 4  # bytes
_SHARE = 2**15  # numbers that are worth a thread
_REMEMBERED = 512  # shapes
_MOST_UNROLLED = 4  # the side of windows for which loops are unrolled


class Windows(NamedTuple):
    """The windows of pooling: squares at equal distances, or the whole image.

    Attributes:
        side: The side of a square; 0 for the whole image.
        stride: The distance of two squares.
        ceil: Whether windows may reach beyond the end of the image.
    """

    side: int
    stride: int
    ceil: bool


def max_pool_reference(x: Tensor, windows: Windows) -> Tensor:
    """What the operation computes, in torch's operations."""
    if windows.side == 0:
        return F.adaptive_max_pool2d(x, 1)
    return F.max_pool2d(x, windows.side, windows.stride, ceil_mode=windows.ceil)


def max_pool(x: Tensor, windows: Windows) -> Tensor:
    """The largest number of each window of `(batch, channel, height, width)` in channels-last format."""
    if not (x.requires_grad and torch.is_grad_enabled()):
        return _forward(x, windows)
    y: Tensor = _MaxPool.apply(x, windows)  # type: ignore[no-untyped-call]
    return y


class _MaxPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, windows: Windows) -> Tensor:  # noqa: ANN401 - torch's interface
        ctx.windows, y = windows, _forward(x.detach(), windows)
        ctx.save_for_backward(x, y)
        ctx.set_materialize_grads(False)
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor | None) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        if dy is None:
            return None, None
        x, y = ctx.saved_tensors
        if torch.is_grad_enabled():  # for second derivatives, which torch's operations have
            return gradients(partial(max_pool_reference, windows=ctx.windows), (x,), dy)[0], None
        dy, x, y = (images.contiguous(memory_format=torch.channels_last) for images in (dy, x, y))
        dx = torch.empty_like(x)
        call = _pool_call(tuple(x.shape), ctx.windows)
        run_together(call.jobs(call.run_backward, dy, x, y, dx))
        return dx, None


@cache
def _kernels(side: int, overlaps: bool) -> list["Function"]:
    from verydeep.kernels.pool._max_pool_loops import make_max_pool_backward, make_max_pool_forward
    from verydeep.kernels.runtime._compile import compile_kernels

    kernels = [make_max_pool_forward(side), make_max_pool_backward(side, add=overlaps)]
    return compile_kernels(f"max-pool-{side}{'-overlapping' * overlaps}", kernels)


def _forward(x: Tensor, windows: Windows) -> Tensor:
    call = _pool_call(tuple(x.shape), windows)
    y = x.new_empty(call.y_shape).movedim(-1, 1)
    run_together(call.jobs(call.run_forward, x, y))
    return y


class PlannedPool:
    """Max pooling that is prepared for inference: its kernel calls, and memory for its output.

    Args:
        x: The memory of its input.
        windows: The windows.
    """

    scratch_size = 0

    def __init__(self, x: Tensor, windows: Windows) -> None:
        self._x, self._call = x, _pool_call(tuple(x.shape), windows)
        self.y = x.new_empty(self._call.y_shape).movedim(-1, 1)

    def prepare(self) -> None:
        """There is nothing to do."""

    def steps(self, memory: Tensor) -> list[list[Job]]:
        """The kernel calls."""
        return [self._call.jobs(self._call.run_forward, self._x, self.y)]


class _PoolCall:
    """Calls of the kernels for one shape of x."""

    def __init__(self, shape: tuple[int, ...], windows: Windows) -> None:
        self.batch, channels, *sides = shape
        axes = [_ranges(side, windows) for side in sides]
        self.y_shape = self.batch, *map(len, axes), channels
        overlaps = not all(_is_partition(axis, side) for axis, side in zip(axes, sides, strict=True))
        usual = windows.side if windows.side <= _MOST_UNROLLED else 0
        self.run_forward, self.run_backward = _kernels(usual, overlaps)
        table = [channels, *sides, *map(len, axes), *(number for axis in axes for pair in axis for number in pair)]
        self.sizes = torch.tensor(table, dtype=torch.int64, device="cpu")

    def jobs(self, kernel: "Function", *tensors: Tensor) -> list[Job]:
        """The calls of a kernel with images for each thread, if there are enough numbers."""
        jobs = max(1, min(torch.get_num_threads(), self.batch, tensors[0].numel() // _SHARE))
        starts = [(tensor.data_ptr(), tensor.numel() // self.batch * _NUMBER) for tensor in tensors]
        sizes = self.sizes.data_ptr()

        def job(first: int, last: int) -> Job:
            return [(kernel, (*(start + first * image for start, image in starts), sizes, last - first))]

        return [job(*pair) for pair in pairwise(self.batch * i // jobs for i in range(jobs + 1))]


@lru_cache(_REMEMBERED)
def _pool_call(shape: tuple[int, ...], windows: Windows) -> _PoolCall:
    return _PoolCall(shape, windows)


def _ranges(side: int, windows: Windows) -> list[tuple[int, int]]:
    """The start and the length of each window along an axis, as torch defines them."""
    if windows.side == 0:
        return [(0, side)]
    beyond = windows.stride - 1 if windows.ceil else 0  # a last window that is cut off
    starts = range(0, side - windows.side + beyond + 1, windows.stride)
    return [(start, min(windows.side, side - start)) for start in starts if start < side]


def _is_partition(ranges: list[tuple[int, int]], side: int) -> bool:
    """Whether every number of an axis belongs to exactly one window."""
    ends = [0, *(start + length for start, length in ranges)]
    return ends[-1] == side and all(start == end for (start, _), end in zip(ranges, ends, strict=False))
