"""One call of a fused convolutional layer: pieces of work for threads, filters, and the calls of the kernels."""

from collections.abc import Sequence
from functools import cache, lru_cache
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
_TILES = 64  # per group of images: enough for the products, few enough for the cache
_PIXELS = 128  # the same for patches
_FEW_TILES = 8  # for which transformed filters, four times as large, take longer to read than they save
_WORTH_A_THREAD = 2**20  # multiply-adds of one image
_REMEMBERED = 512  # shapes


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
    """Calls of the operator for tensors of some shapes. All images are stored with their channels last.

    Args:
        shape: The shape of x.
        outs: The feature maps of z.
        taps: The side of the receptive field.
        options: What is fixed about the layer besides these sizes.
        threads: The number of threads among which the work is divided.
        few: Whether filters are read for few tiles, where the size of transformed filters costs more than they save.
    """

    def __init__(
        self, shape: Sequence[int], outs: int, taps: int, options: ConvOptions, threads: int, few: bool
    ) -> None:
        from verydeep.kernels.conv._conv_loops import make_lowering
        from verydeep.kernels.conv._shape import Shape

        batch, channels, height, width = shape
        self.batch, self.epilogue, self.threads = batch, options.epilogue, threads
        sides = ((side + 2 * options.padding - taps) // options.stride + 1 for side in (height, width))
        out_height, out_width = sides
        self.z_shape = batch, out_height, out_width, outs
        self.y_shape = batch, out_height, out_width, outs // options.affine_maps
        if taps == options.stride == 1:  # pixels are independent of each other: every row is an image
            batch, height, out_height = batch * height, 1, 1
            self.batch = batch
        tiles = batch * -(-out_height // (7 - taps)) * -(-out_width // (7 - taps)) if taps < 7 else 0
        winograd = uses_winograd(taps, options.stride, channels) and not (few and tiles <= _FEW_TILES)
        self.filters = Filters(outs, channels, taps, options.affine_maps, winograd)
        self.step = step = 7 - taps if winograd else 1
        rows = -(-out_height // step) * -(-out_width // step)
        self.multiply_adds = self.filters.weights * out_height * out_width  # per image
        self.group = max(1, (_TILES if winograd else _PIXELS) // rows)
        self.rows, shared = out_height, (channels, outs, height, width, options.padding, out_height, out_width)
        self.sizes = torch.tensor(shared, dtype=torch.int64, device="cpu")
        piece: Shape = Shape(*shared, self.group, 0, out_height)
        self.scratch_size = make_lowering(taps, options.stride, winograd).scratch_size(piece)
        self.run_forward, self.run_backward = _kernels(taps, options.stride, winograd, self.epilogue)

    def forward(
        self, x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], y: Tensor, z: Tensor | None
    ) -> None:
        """Write y, and z if it is given."""
        pieces = self.forward_pieces()
        u, scratches = self._memory(self.filters.forward_size, len(pieces))
        filters = self.filters.write_forward(weights, biases, u.data_ptr(), scratches[0])
        run_together([filters] if len(pieces) == 1 else [[one] for one in filters])
        run_together(self.forward_jobs(pieces, x, u, y, z, scratches))

    def forward_jobs(
        self, pieces: Sequence[Piece], x: Tensor, u: Tensor, y: Tensor, z: Tensor | None, scratches: Sequence[int]
    ) -> list[Job]:
        """The kernel calls for pieces of work; every one has scratch memory of its own."""
        starts, filters, sizes = (
            [(t.data_ptr(), self._image(t)) for t in (x, y if z is None else z, y)],
            u.data_ptr(),
            self.sizes.data_ptr(),
        )

        def call(piece: Piece, scratch: int) -> Call:
            x_at, z_at, y_at = (start + piece.image * image for start, image in starts)
            addresses = x_at, filters, z_at, y_at, scratch, sizes
            return self.run_forward, (*addresses, piece.images, piece.first, piece.rows, int(z is not None), self.group)

        return [[call(piece, scratch)] for piece, scratch in zip(pieces, scratches, strict=True)]

    def backward(
        self,
        dy: Tensor,
        x: Tensor,
        kept: Tensor,
        weights: Sequence[Tensor],
        dx: Tensor | None,
        d_weights: Sequence[Tensor],
        d_biases: Sequence[Tensor],
    ) -> None:
        """Write the gradients of weights and biases, and dx if it is given."""
        pieces, size = self._pieces(), self.filters.forward_size
        memory, scratches = self._memory(self.filters.backward_size + len(pieces) * size, len(pieces))
        u, *sums = memory.split([self.filters.backward_size, *[size] * len(pieces)])
        if dx is not None:
            run_together([self.filters.write_backward(weights, u.data_ptr(), scratches[0])])
        starts = [(t.data_ptr(), self._image(t)) for t in (dy, x, kept, x if dx is None else dx)]
        filters, sizes = u.data_ptr(), self.sizes.data_ptr()

        def call(piece: Piece, du: Tensor, scratch: int) -> Call:
            *there, dx_at = (start + piece.image * image for start, image in starts)
            addresses = *there, filters, dx_at, du.data_ptr(), scratch, sizes
            return self.run_backward, (*addresses, piece.images, int(dx is not None), self.group)

        run_together([[call(*one)] for one in zip(pieces, sums, scratches, strict=True)])
        for du in sums[1:]:  # always in the same order: the same bits
            sums[0].add_(du)
        run_together([self.filters.gradients(sums[0].data_ptr(), scratches[0], d_weights, d_biases)])

    def _image(self, images: Tensor) -> int:
        """The bytes of one image."""
        return images.numel() // self.batch * _NUMBER

    def _pieces(self) -> list[Piece]:
        """Images for each thread; their number depends only on the sizes and on the number of threads."""
        jobs = max(1, min(self.threads, self.batch))
        shares = pairwise(self.batch * i // jobs for i in range(jobs + 1))
        return [Piece(first, last - first, 0, self.rows) for first, last in shares]

    def forward_pieces(self) -> list[Piece]:
        """As `_pieces`, but an image may also be divided among threads."""
        tall = -(-self.rows // self.step)
        parts = min(self.threads // self.batch, tall, self.multiply_adds // _WORTH_A_THREAD)
        if parts < 2:
            return self._pieces()
        bounds = list(pairwise(min(self.rows, tall * i // parts * self.step) for i in range(parts + 1)))
        bounds[-1] = bounds[-1][0], self.rows
        return [Piece(image, 1, first, last - first) for image in range(self.batch) for first, last in bounds]

    def _memory(self, numbers: int, jobs: int) -> tuple[Tensor, list[int]]:
        """Memory that is only used in this call: some numbers, and the addresses of the jobs' scratch memory."""
        memory = thread_scratch(numbers + self.all_scratch(jobs))
        return memory[:numbers], self.scratches(memory.data_ptr() + numbers * _NUMBER, jobs)

    def all_scratch(self, jobs: int) -> int:
        """The numbers of the scratch memory of all jobs, or of the filters before there are jobs."""
        return max(jobs * self.scratch_size, self.filters.scratch_size)

    def scratches(self, start: int, jobs: int) -> list[int]:
        """The addresses of the jobs' scratch memory, one after the other."""
        return [start + job * self.scratch_size * _NUMBER for job in range(jobs)]


@lru_cache(_REMEMBERED)
def conv_call(
    shape: Sequence[int], outs: int, taps: int, options: ConvOptions, threads: int, few: bool = False
) -> ConvCall:
    """The calls for tensors of some shapes, which are made once."""
    return ConvCall(shape, outs, taps, options, threads, few)
