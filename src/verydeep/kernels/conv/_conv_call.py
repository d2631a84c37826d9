"""One call of a fused convolutional layer: pieces of work for threads, filters, and the calls of the kernels."""

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from verydeep.kernels.conv._filters import Filters
from verydeep.kernels.runtime._buffers import thread_scratch
from verydeep.kernels.runtime._eligibility import FEWEST_CHANNELS
from verydeep.kernels.runtime._threads import Call, Job, run_together

if TYPE_CHECKING:
    from verydeep.kernels.conv._epilogue import Epilogue
    from verydeep.kernels.conv._shape import Shape
    from verydeep.kernels.runtime._compile import Function

_NUMBER = 4  # bytes
_TILES = 128  # per group of images: enough for the products, few enough for the cache
_PIXELS = 128  # the same for patches


class ConvOptions(NamedTuple):
    """What is fixed about a layer besides the sizes of its tensors.

    Attributes:
        padding: Zeros around the images.
        stride: The stride of the convolution.
        kind: What follows it: "linear", "relu", "maxout", "highway_relu" or "highway_tanh".
        affine_maps: The number of affine maps: pieces of maxout, or H, T and an independent C.
    """

    padding: int
    stride: int
    kind: str
    affine_maps: int

    @property
    def pieces(self) -> int:
        """The pieces of maxout."""
        return self.affine_maps if self.kind == "maxout" else 1

    @property
    def epilogue(self) -> "Epilogue":
        """What follows the convolution."""
        from verydeep.kernels.conv._epilogue import Epilogue

        return Epilogue(self.kind, self.affine_maps)


def uses_winograd(taps: int, stride: int, channels: int) -> bool:
    """Whether Winograd's tiles are faster than patches."""
    return taps in (3, 5) and stride == 1 and channels >= FEWEST_CHANNELS


@cache
def _kernels(taps: int, stride: int, winograd: bool, epilogue: "Epilogue") -> list["Function"]:
    from verydeep.kernels.conv._conv_loops import make_conv_backward, make_conv_forward, make_lowering
    from verydeep.kernels.runtime._compile import compile_kernels

    lowering = make_lowering(taps, stride, winograd)
    kernels = [make_conv_forward(lowering, epilogue), make_conv_backward(lowering, epilogue)]
    name = f"conv-{'tiles' if winograd else 'patches'}-{taps}-{stride}-{epilogue.kind}-{epilogue.affine_maps}"
    return compile_kernels(name, kernels)


class ConvCall:
    """One call of the operator. All images are stored with their channels last."""

    def __init__(self, shape: torch.Size, weight: Tensor, options: ConvOptions) -> None:
        from verydeep.kernels.conv._conv_loops import make_lowering
        from verydeep.kernels.conv._shape import Shape

        batch, channels, height, width = shape
        outs, _, taps, _ = weight.shape
        self.batch, self.epilogue = batch, options.epilogue
        out_height, out_width = (_output_side(side, taps, options) for side in (height, width))
        self.y_shape = batch, out_height, out_width, outs // options.affine_maps  # channels last
        self.z_shape = batch, out_height, out_width, outs
        if taps == options.stride == 1:  # pixels are independent of each other: every row is an image
            batch, height, out_height = batch * height, 1, 1
            self.batch = batch
        winograd = uses_winograd(taps, options.stride, channels)
        self.filters = Filters(weight, options.pieces, winograd)
        step = 7 - taps if winograd else 1
        rows = -(-out_height // step) * -(-out_width // step)
        self.group = max(1, (_TILES if winograd else _PIXELS) // rows)
        self.shared = channels, outs, height, width, options.padding, out_height, out_width
        piece: Shape = Shape(*self.shared, self.group, 0, out_height)
        self.scratch_size = make_lowering(taps, options.stride, winograd).scratch_size(piece)
        self.run_forward, self.run_backward = _kernels(taps, options.stride, winograd, self.epilogue)

    def forward(self, x: Tensor, bias: Tensor, y: Tensor, z: Tensor | None) -> None:
        """Write y, and z if it is given."""
        sizes, images_of = torch.tensor(self.shared), self._images
        u, scratches = self._memory(self.filters.forward_size)
        self.filters.write_forward(bias, u)
        kept = y if z is None else z

        def group(job: int, first: int, images: int) -> Call:
            addresses = (images_of(x, first), u.data_ptr(), images_of(kept, first), images_of(y, first), scratches[job])
            return self.run_forward, (*addresses, sizes.data_ptr(), images, 0, self.shared[5], int(z is not None))

        run_together(self._jobs(group))

    def backward(self, dy: Tensor, x: Tensor, kept: Tensor, dx: Tensor | None) -> tuple[Tensor, Tensor]:
        """Write dx if it is given, and return the gradients of weight and bias."""
        sizes, images_of = torch.tensor(self.shared), self._images
        size, jobs = self.filters.forward_size, len(self._shares())
        memory, scratches = self._memory(self.filters.backward_size + jobs * size)
        u, *sums = memory.split([self.filters.backward_size, *[size] * jobs])
        if dx is not None:
            self.filters.write_backward(u)

        def group(job: int, first: int, images: int) -> Call:
            there = [images_of(tensor, first) for tensor in (dy, x, kept)]
            d_there = images_of(x if dx is None else dx, first), sums[job].data_ptr()
            start = int(first == self._shares()[job][0])
            more = sizes.data_ptr(), images, start, int(dx is not None)
            return self.run_backward, (*there, u.data_ptr(), *d_there, scratches[job], *more)

        run_together(self._jobs(group))
        for du in sums[1:]:  # always in the same order: the same bits
            sums[0].add_(du)
        return self.filters.gradients(sums[0])

    def _images(self, images: Tensor, first: int) -> int:
        """The address of an image."""
        return images.data_ptr() + first * (images.numel() // self.batch) * _NUMBER

    def _shares(self) -> list[tuple[int, int]]:
        """The first and last image of each job."""
        jobs = max(1, min(torch.get_num_threads(), self.batch))
        return list(pairwise(self.batch * i // jobs for i in range(jobs + 1)))

    def _memory(self, numbers: int) -> tuple[Tensor, list[int]]:
        """Memory that is only used in this call: some numbers, and the addresses of the jobs' scratch memory."""
        jobs = len(self._shares())
        memory = thread_scratch(numbers + jobs * self.scratch_size)
        start = memory.data_ptr() + numbers * _NUMBER
        return memory[:numbers], [start + job * self.scratch_size * _NUMBER for job in range(jobs)]

    def _jobs(self, group: Callable[[int, int, int], Call]) -> list[Job]:
        """A job for each share of the images: calls for a group of images each."""
        return [
            [group(job, image, min(self.group, last - image)) for image in range(first, last, self.group)]
            for job, (first, last) in enumerate(self._shares())
        ]


def _output_side(side: int, taps: int, options: ConvOptions) -> int:
    """Rows or columns of the output."""
    return (side + 2 * options.padding - taps) // options.stride + 1
