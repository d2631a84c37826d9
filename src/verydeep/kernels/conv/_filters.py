"""Filters as the kernels need them: transformed for Winograd's tiles, transposed, and padded to whole registers."""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from torch import Tensor

from verydeep.kernels.runtime._threads import Call

if TYPE_CHECKING:
    from verydeep.kernels.runtime._compile import Function

_NUMBER = 4  # bytes


@cache
def _kernels(taps: int, winograd: bool) -> list["Function"]:
    from verydeep.kernels.conv._filter_loops import make_filter_kernels
    from verydeep.kernels.runtime._compile import compile_kernels

    name = f"filters-{'tiles' if winograd else 'patches'}-{taps}"
    return compile_kernels(name, list(make_filter_kernels(taps, winograd)))


class Filters:
    """The sizes of the filters of a layer, and the calls of the kernels that prepare them.

    Weights are `(out, channel, taps, taps)` and contiguous: one tensor per affine map, or one whose outputs are
    `(channel, piece)`; kernels take `(piece, channel)`.

    Args:
        outs: The outputs of all weights together.
        channels: The channels of x.
        taps: The side of the receptive field.
        parts: The number of affine maps, or of pieces.
        winograd: Whether the filters are transformed for tiles.
    """

    def __init__(self, outs: int, channels: int, taps: int, parts: int, winograd: bool) -> None:
        from verydeep.kernels.conv._filter_loops import scratch_size
        from verydeep.kernels.conv._shape import padded

        self.all_outs, self.outs, self.channels, self.parts = outs, outs // parts, channels, parts
        self.size, self.weights = channels * taps**2, outs * channels * taps**2
        positions, terms = (36, channels) if winograd else (taps, channels * taps)
        self.out_row, self.term_row = padded(outs), padded(terms)
        self.forward_size = (positions * terms + 1) * self.out_row  # with the bias
        self.backward_size = positions * outs * self.term_row
        self._part_scratch = scratch_size(taps, self.outs, channels)
        self.scratch_size = parts * self._part_scratch
        self._forward, self._backward, self._gradients = _kernels(taps, winograd)

    def write_forward(self, weights: Sequence[Tensor], biases: Sequence[Tensor], u: int, scratch: int) -> list[Call]:
        """The calls that write `(position, term, out)`, then the bias, to an address.

        Each has scratch memory of its own, so that threads can share them.
        """
        parts = zip(self._rows(weights, self.size), self._rows(biases, 1), strict=True)
        sizes = self.outs, self.channels, self.out_row
        scratches = [scratch + n * self._part_scratch * _NUMBER for n in range(self.parts)]
        return [
            (self._forward, (*weight, *bias, u, own, *sizes, n * self.outs))
            for n, (own, (weight, bias)) in enumerate(zip(scratches, parts, strict=True))
        ]

    def write_backward(self, weights: Sequence[Tensor], u: int, scratch: int) -> list[Call]:
        """The calls that write `(position, out, term)` to an address."""
        sizes = self.outs, self.channels, self.term_row
        return [
            (self._backward, (*weight, u, scratch, *sizes, n * self.outs, self.all_outs))
            for n, weight in enumerate(self._rows(weights, self.size))
        ]

    def gradients(self, du: int, scratch: int, weights: Sequence[Tensor], biases: Sequence[Tensor]) -> list[Call]:
        """The calls that write the gradients of weights and biases, from that of what `write_forward` writes."""
        parts = zip(self._rows(weights, self.size), self._rows(biases, 1), strict=True)
        sizes = self.outs, self.channels, self.out_row
        return [
            (self._gradients, (du, *weight, *bias, scratch, *sizes, n * self.outs))
            for n, (weight, bias) in enumerate(parts)
        ]

    def _rows(self, tensors: Sequence[Tensor], numbers: int) -> list[tuple[int, int]]:
        """The address of the first row of each part and the distance of its rows in bytes; rows are outputs."""
        row = numbers * _NUMBER
        if len(tensors) == self.parts:
            return [(tensor.data_ptr(), row) for tensor in tensors]
        start = tensors[0].data_ptr()
        return [(start + n * row, self.parts * row) for n in range(self.parts)]
