"""One call of the fused convolutional layer: threads, transformed weights, and the calls of the kernels."""

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from verydeep.kernels.runtime._buffers import thread_scratch
from verydeep.kernels.runtime._threads import Call, run_together

if TYPE_CHECKING:
    from verydeep.kernels.runtime._compile import Function

_NUMBER = 4  # bytes
_TILES = 128  # per group of images: enough for the products, few enough for the cache


@cache
def _kernels(affine_maps: int, activation: str) -> list["Function"]:
    from verydeep.kernels.conv._conv_loops import make_conv_backward, make_conv_forward
    from verydeep.kernels.runtime._compile import compile_kernels

    kernels = [make_conv_forward(affine_maps, activation), make_conv_backward(affine_maps, activation)]
    return compile_kernels(f"conv-{affine_maps}-{activation}", kernels)


@cache
def _filter() -> Tensor:
    from verydeep.kernels.conv._winograd import FILTER

    return torch.from_numpy(FILTER)


class ConvCall:
    """One call of the operator. All images are stored with their channels last."""

    def __init__(self, shape: torch.Size, weight: Tensor, activation: str) -> None:
        from verydeep.kernels.conv._conv_loops import scratch_size

        self.batch, self.channels, self.height, self.width = shape
        self.outs, self.weight = weight.shape[0], weight
        self.affine_maps = self.outs // self.channels
        self.group = max(1, _TILES // (-(-self.height // 4) * -(-self.width // 4)))
        self.area = self.height * self.width
        self.scratch_size = scratch_size(self.group, self.channels, self.affine_maps, self.height, self.width)
        self.run_forward, self.run_backward = _kernels(self.affine_maps, activation)

    def forward(self, x: Tensor, bias: Tensor, y: Tensor, z: Tensor | None) -> None:
        """Write y, and z if it is given."""
        by_in = self.weight.reshape(self.outs, self.channels, 9).transpose(0, 1)
        u = torch.mm(_filter(), by_in.reshape(-1, 9).T)  # (position, in, out)

        def group(_thread: int, first: int, images: int, scratch: int) -> Call:
            z_there = scratch + self.scratch_size * _NUMBER if z is None else self._at(z, first)
            addresses = (self._at(x, first), u.data_ptr(), bias.data_ptr(), z_there, self._at(y, first), scratch)
            return self.run_forward, (*addresses, images, self.channels, self.height, self.width)

        self._run(group, self.group * self.outs * self.area if z is None else 0)

    def backward(self, dy: Tensor, x: Tensor, z: Tensor, dx: Tensor) -> tuple[Tensor, Tensor]:
        """Write dx, and return the gradients of weight and bias."""
        u = torch.mm(_filter(), self.weight.reshape(-1, 9).T)  # (position, out, in)
        sums = [(torch.zeros_like(u), u.new_zeros(self.outs)) for _ in self._shares()]

        def group(thread: int, first: int, images: int, scratch: int) -> Call:
            there = [self._at(tensor, first) for tensor in (dy, x, z)]
            d_there = [self._at(dx, first), *(total.data_ptr() for total in sums[thread])]
            sizes = (images, self.channels, self.height, self.width)
            return self.run_backward, (*there, u.data_ptr(), *d_there, scratch, *sizes)

        self._run(group)
        for du, d_bias in sums[1:]:  # always in the same order: the same bits
            sums[0][0].add_(du)
            sums[0][1].add_(d_bias)
        return self._weight_gradient(sums[0][0]), sums[0][1]

    def _weight_gradient(self, du: Tensor) -> Tensor:
        by_position = torch.mm(_filter().T, du).view(9, self.channels, self.outs)
        return by_position.permute(2, 1, 0).reshape(self.weight.shape)

    def _at(self, images: Tensor, first: int) -> int:
        return images.data_ptr() + first * images.shape[1] * self.area * _NUMBER

    def _shares(self) -> list[tuple[int, int]]:
        """The first and last image of each thread."""
        threads = max(1, min(torch.get_num_threads(), self.batch))
        return list(pairwise(self.batch * i // threads for i in range(threads + 1)))

    def _run(self, group: Callable[[int, int, int, int], Call], more: int = 0) -> None:
        shares, size = self._shares(), self.scratch_size + more
        scratches = thread_scratch(size * len(shares)).data_ptr()

        def share(thread: int, first: int, last: int) -> list[Call]:
            scratch, images = scratches + thread * size * _NUMBER, range(first, last, self.group)
            return [group(thread, image, min(self.group, last - image), scratch) for image in images]

        run_together([share(thread, *images) for thread, images in enumerate(shares)])
