"""One call of a fused convolutional layer: pieces of work for threads, filters, and the calls of the kernels."""

from collections.abc import Sequence
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
    from verydeep.kernels.runtime._compile import Function

_NUMBER = 4  # bytes
_TILES = 128  # per group of images: enough for the products, few enough for the cache
_PIXELS = 128  # the same for patches
_FEW_TILES = 8  # for which transformed filters, four times as large, take longer to read than they save
_WORTH_A_THREAD = 2**20  # multiply-adds of one image


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


class Piece(NamedTuple):
    """The work of one kernel call: some images, and some rows of their outputs."""

    image: int
    images: int
    first: int
    rows: int


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
    """One call of the operator. All images are stored with their channels last.

    Args:
        shape: The shape of x.
        weight: `(out, channel, side, side)`.
        options: What is fixed about the layer besides these sizes.
        few: Whether filters are read for few tiles, where the size of transformed filters costs more than they save.
    """

    def __init__(self, shape: torch.Size, weight: Tensor, options: ConvOptions, few: bool = False) -> None:
        from verydeep.kernels.conv._conv_loops import make_lowering
        from verydeep.kernels.conv._shape import Shape

        batch, channels, height, width = shape
        outs, _, taps, _ = weight.shape
        self.batch, self.epilogue = batch, options.epilogue
        _, out_height, out_width, _ = self.z_shape = z_shape(shape, weight.shape, options)
        if taps == options.stride == 1:  # pixels are independent of each other: every row is an image
            batch, height, out_height = batch * height, 1, 1
            self.batch = batch
        tiles = batch * -(-out_height // (7 - taps)) * -(-out_width // (7 - taps)) if taps < 7 else 0
        winograd = uses_winograd(taps, options.stride, channels) and not (few and tiles <= _FEW_TILES)
        self.filters = Filters(weight, options.pieces, winograd)
        self.step = step = 7 - taps if winograd else 1
        rows = -(-out_height // step) * -(-out_width // step)
        self.multiply_adds = weight.numel() * out_height * out_width  # per image
        self.group = max(1, (_TILES if winograd else _PIXELS) // rows)
        self.shared = channels, outs, height, width, options.padding, out_height, out_width
        piece: Shape = Shape(*self.shared, self.group, 0, out_height)
        self.scratch_size = make_lowering(taps, options.stride, winograd).scratch_size(piece)
        self.run_forward, self.run_backward = _kernels(taps, options.stride, winograd, self.epilogue)

    def forward(self, x: Tensor, bias: Tensor, y: Tensor, z: Tensor | None) -> None:
        """Write y, and z if it is given."""
        sizes, pieces = torch.tensor(self.shared), self.forward_pieces()
        u, scratches = self._memory(self.filters.forward_size, len(pieces))
        self.filters.write_forward(bias, u)
        run_together(self.forward_jobs(pieces, x, u, y, z, scratches, sizes))

    def forward_jobs(
        self,
        pieces: Sequence[Sequence[Piece]],
        x: Tensor,
        u: Tensor,
        y: Tensor,
        z: Tensor | None,
        scratches: Sequence[int],
        sizes: Tensor,
    ) -> list[Job]:
        """The kernel calls for pieces of work; every job has scratch memory of its own."""

        def call(piece: Piece, scratch: int) -> Call:
            there = [self._images(images, piece.image) for images in (x, y if z is None else z, y)]
            addresses = there[0], u.data_ptr(), *there[1:], scratch, sizes.data_ptr()
            return self.run_forward, (*addresses, piece.images, piece.first, piece.rows, int(z is not None))

        return [[call(piece, scratch) for piece in job] for job, scratch in zip(pieces, scratches, strict=True)]

    def backward(self, dy: Tensor, x: Tensor, kept: Tensor, dx: Tensor | None) -> tuple[Tensor, Tensor]:
        """Write dx if it is given, and return the gradients of weight and bias."""
        sizes, pieces = torch.tensor(self.shared), self._pieces()
        size = self.filters.forward_size
        memory, scratches = self._memory(self.filters.backward_size + len(pieces) * size, len(pieces))
        u, *sums = memory.split([self.filters.backward_size, *[size] * len(pieces)])
        if dx is not None:
            self.filters.write_backward(u)

        def call(piece: Piece, is_first: bool, du: Tensor, scratch: int) -> Call:
            there = [self._images(tensor, piece.image) for tensor in (dy, x, kept)]
            d_there = self._images(x if dx is None else dx, piece.image), du.data_ptr(), scratch, sizes.data_ptr()
            return self.run_backward, (*there, u.data_ptr(), *d_there, piece.images, is_first, int(dx is not None))

        run_together(
            [
                [call(piece, n == 0, du, scratch) for n, piece in enumerate(job)]
                for job, du, scratch in zip(pieces, sums, scratches, strict=True)
            ]
        )
        for du in sums[1:]:  # always in the same order: the same bits
            sums[0].add_(du)
        return self.filters.gradients(sums[0])

    def _images(self, images: Tensor, first: int) -> int:
        """The address of an image."""
        return images.data_ptr() + first * (images.numel() // self.batch) * _NUMBER

    def _pieces(self) -> list[list[Piece]]:
        """Groups of images for each job; their number depends only on the sizes and on the number of threads."""
        jobs = max(1, min(torch.get_num_threads(), self.batch))
        shares = pairwise(self.batch * i // jobs for i in range(jobs + 1))
        rows = self.shared[5]
        return [
            [Piece(image, min(self.group, last - image), 0, rows) for image in range(first, last, self.group)]
            for first, last in shares
        ]

    def forward_pieces(self) -> list[list[Piece]]:
        """As `_pieces`, but an image may also be divided among threads."""
        tall = -(-self.shared[5] // self.step)
        parts = min(torch.get_num_threads() // self.batch, tall, self.multiply_adds // _WORTH_A_THREAD)
        if parts < 2:
            return self._pieces()
        bounds = list(pairwise(min(self.shared[5], tall * i // parts * self.step) for i in range(parts + 1)))
        bounds[-1] = bounds[-1][0], self.shared[5]
        return [[Piece(image, 1, first, last - first)] for image in range(self.batch) for first, last in bounds]

    def _memory(self, numbers: int, jobs: int) -> tuple[Tensor, list[int]]:
        """Memory that is only used in this call: some numbers, and the addresses of the jobs' scratch memory."""
        memory = thread_scratch(numbers + jobs * self.scratch_size)
        return memory[:numbers], self.scratches(memory.data_ptr() + numbers * _NUMBER, jobs)

    def scratches(self, start: int, jobs: int) -> list[int]:
        """The addresses of the jobs' scratch memory, one after the other."""
        return [start + job * self.scratch_size * _NUMBER for job in range(jobs)]


def z_shape(x: Sequence[int], weight: Sequence[int], options: ConvOptions) -> tuple[int, int, int, int]:
    """The shape of z with its channels last, from those of x and the weight."""
    batch, _, *sides = x
    height, width = ((side + 2 * options.padding - weight[2]) // options.stride + 1 for side in sides)
    return batch, height, width, weight[0]
