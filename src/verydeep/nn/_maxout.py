"""Maxout (Goodfellow et al. 2013), the activation of the FitNets in the paper's Table 2."""

import torch
from torch import Tensor, nn

from verydeep.errors import UserError


class Maxout(nn.Module):
    """The largest of `pieces` neighbouring units or feature maps, e.g. after `nn.Conv2d(16, 2 * 32, 3)`.

    Args:
        pieces: Number of linear pieces per output.
        dim: The dimension of units or feature maps.

    Example:
        >>> import torch
        >>> from verydeep.nn import Maxout
        >>> Maxout(pieces=2)(torch.tensor([[1.0, 5.0, 4.0, 2.0]]))
        tensor([[5., 4.]])
    """

    def __init__(self, pieces: int = 2, dim: int = 1) -> None:
        super().__init__()
        if pieces < 1:
            raise UserError(f"maxout needs at least 1 piece, got {pieces}")
        self.pieces, self.dim = pieces, dim

    def forward(self, x: Tensor) -> Tensor:
        """The maximum of each group of pieces: 1 / `pieces` of the units or maps of x."""
        dim = self.dim % x.dim()
        if x.shape[dim] % self.pieces:
            raise UserError(
                f"Maxout got x of shape {tuple(x.shape)}: dimension {dim} must be a multiple of {self.pieces}"
            )
        return torch.unflatten(x, dim, (-1, self.pieces)).amax(dim + 1)

    def extra_repr(self) -> str:
        return f"pieces={self.pieces}, dim={self.dim}"
