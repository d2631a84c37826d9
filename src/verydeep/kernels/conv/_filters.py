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
        self.positions = 36 if winograd else 1
        self.terms = self.channels if winograd else self.channels * self.taps**2
        self.out_row, self.term_row = int(padded(self.outs)), int(padded(self.terms))  # type: ignore[call-overload]

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
        filters = target[: -self.out_row].view(self.positions, self.terms, self.out_row)
        self._write(self._by_map(self.weight).transpose(0, 1), filters)
        target[-self.out_row :].zero_()
        target[-self.out_row :][: self.outs] = self._by_map(bias)

    def write_backward(self, target: Tensor) -> None:
        """`(position, out, term)`."""
        self._write(self._by_map(self.weight), target.view(self.positions, self.outs, self.term_row))

    def _write(self, weight: Tensor, target: Tensor) -> None:
        """Write filters `(a, b, taps, taps)`, where a and b are outs and channels in either order."""
        a, b = weight.shape[:2]
        if self.winograd:
            whole = target.shape[2] == b
            flat = target.view(36, -1) if whole else target.new_empty(36, a * b)
            torch.mm(_transform(self.taps), weight.reshape(a * b, -1).T, out=flat)
            if not whole:
                _write_padded(target, flat.view(36, a, b))
        elif a == self.outs:
            _write_padded(target[0], weight.permute(0, 2, 3, 1).reshape(a, self.terms))
        else:
            _write_padded(target[0], weight.permute(2, 3, 0, 1).reshape(self.terms, b))

    def gradients(self, du: Tensor) -> tuple[Tensor, Tensor]:
        """The gradients of weight and bias from that of what `write_forward` writes."""
        d_filters = du[: -self.out_row].view(self.positions, self.terms, self.out_row)[..., : self.outs]
        d_bias = du[-self.out_row :][: self.outs].clone()
        if self.winograd:
            flat = d_filters.reshape(36, -1)
            d_weight = torch.mm(_transform(self.taps).T, flat).view(self.taps**2, self.channels, self.outs)
            d_weight = d_weight.permute(2, 1, 0)
        else:
            d_weight = d_filters.view(self.taps**2, self.channels, self.outs).permute(2, 1, 0)
        return self._by_channel(d_weight).reshape(self.weight.shape), self._by_channel(d_bias)

    def _by_map(self, outs: Tensor) -> Tensor:
        """Outputs in the order of kernels."""
        return outs if self.pieces == 1 else outs.unflatten(0, (-1, self.pieces)).transpose(0, 1).flatten(0, 1)

    def _by_channel(self, outs: Tensor) -> Tensor:
        """The inverse of `_by_map`."""
        return outs if self.pieces == 1 else outs.unflatten(0, (self.pieces, -1)).transpose(0, 1).flatten(0, 1)


def _write_padded(target: Tensor, values: Tensor) -> None:
    """Write the first columns and zeros into the others."""
    columns = values.shape[-1]
    target[..., :columns] = values
    target[..., columns:] = 0
