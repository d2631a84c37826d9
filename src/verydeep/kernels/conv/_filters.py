"""Filters as the kernels need them: transformed for Winograd's tiles, transposed, and padded to whole registers."""

from functools import cache

import torch
from torch import Tensor


@cache
def _transform(taps: int) -> Tensor:
    from verydeep.kernels.conv._winograd import filter_transform

    return torch.from_numpy(filter_transform(taps))


class Filters:
    """The filters of one layer in the order of its affine maps.

    Args:
        weight: `(out, channel, taps, taps)`.
        pieces: With maxout, the outputs of `weight` are `(channel, piece)`; kernels take `(piece, channel)`.
        winograd: Whether the filters are transformed for tiles.
    """

    def __init__(self, weight: Tensor, pieces: int, winograd: bool) -> None:
        from verydeep.kernels.conv._shape import padded

        self.weight, self.pieces, self.winograd = weight, pieces, winograd
        self.outs, self.channels, self.taps = weight.shape[0], weight.shape[1], weight.shape[2]
        self.positions = 36 if winograd else self.taps
        self.terms = self.channels if winograd else self.channels * self.taps
        self.out_row, self.term_row = padded(self.outs), padded(self.terms)

    @property
    def forward_size(self) -> int:
        """The numbers of the filters for the forward pass, with the bias."""
        return (self.positions * self.terms + 1) * self.out_row

    @property
    def backward_size(self) -> int:
        """The numbers of the filters for the backward pass."""
        return self.positions * self.outs * self.term_row

    def write_forward(self, bias: Tensor, target: Tensor) -> None:
        """`(position, term, out)`, then the bias."""
        filters, weight = (
            target[: -self.out_row].view(self.positions, self.terms, self.out_row),
            self._by_map(self.weight),
        )
        if self.winograd:
            _write_transformed(filters, weight.transpose(0, 1))
        else:
            _write_padded(filters, weight.permute(2, 3, 1, 0).reshape(self.taps, self.terms, self.outs))
        _write_padded(target[-self.out_row :], self._by_map(bias))

    def write_backward(self, target: Tensor) -> None:
        """`(position, out, term)`."""
        filters, weight = target.view(self.positions, self.outs, self.term_row), self._by_map(self.weight)
        if self.winograd:
            _write_transformed(filters, weight)
        else:
            _write_padded(filters, weight.permute(2, 0, 3, 1).reshape(self.taps, self.outs, self.terms))

    def gradients(self, du: Tensor) -> tuple[Tensor, Tensor]:
        """The gradients of weight and bias, in new memory, from that of what `write_forward` writes."""
        d_filters = du[: -self.out_row].view(self.positions, self.terms, self.out_row)[..., : self.outs]
        if self.winograd:
            d_filters = torch.mm(_transform(self.taps).T, d_filters.reshape(36, -1))
        by_tap = d_filters.reshape(self.taps, self.taps, self.channels, self.outs)
        d_weight = self._by_channel(by_tap.permute(3, 2, 0, 1))
        d_bias = self._by_channel(du[-self.out_row :][: self.outs])
        new = torch.contiguous_format
        return d_weight.clone(memory_format=new), d_bias.clone(memory_format=new)

    def _by_map(self, outs: Tensor) -> Tensor:
        """Outputs in the order of kernels."""
        return outs if self.pieces == 1 else outs.unflatten(0, (-1, self.pieces)).transpose(0, 1).flatten(0, 1)

    def _by_channel(self, outs: Tensor) -> Tensor:
        """The inverse of `_by_map`."""
        return outs if self.pieces == 1 else outs.unflatten(0, (self.pieces, -1)).transpose(0, 1).flatten(0, 1)


def _write_transformed(target: Tensor, weight: Tensor) -> None:
    """Write the 36 positions of filters `(a, b, taps, taps)` as `(position, a, b)`."""
    a, b, taps, _ = weight.shape
    filters = weight.reshape(a * b, -1).T
    if target.shape[2] == b:
        torch.mm(_transform(taps), filters, out=target.view(36, a * b))
    else:
        _write_padded(target, torch.mm(_transform(taps), filters).view(36, a, b))


def _write_padded(target: Tensor, values: Tensor) -> None:
    """Write the first columns and zeros into the others."""
    columns = values.shape[-1]
    target[..., :columns] = values
    target[..., columns:] = 0
