"""Translation and mirroring, the paper's augmentation for CIFAR, vectorised over the batch.

Chance and work are kept apart: `Augment.draw` decides what happens to each sample, from a generator; `crop_and_mirror`
does it and is a pure function. So a batch can be split over processes, or an epoch resumed, with the same result.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from verydeep.errors import UserError


@dataclass(frozen=True)
class Augment:
    """How training images are varied; as it stands, not at all.

    Attributes:
        pad: Zeros added on every side before an image-sized crop is taken at random; the paper's CIFAR networks use 8.
        mirror: Whether half of the images are mirrored left to right.
    """

    pad: int = 0
    mirror: bool = False

    def __post_init__(self) -> None:
        if self.pad < 0:
            raise UserError(f"augment: pad must be 0 or more, got {self.pad}")

    def __bool__(self) -> bool:
        return self.pad > 0 or self.mirror

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """Offsets from the top and the left, and whether to mirror, for `count` images: int64, `(count, 3)`."""
        highest = torch.tensor([2 * self.pad + 1, 2 * self.pad + 1, 2 if self.mirror else 1])
        return (torch.rand(count, 3, generator=generator, dtype=torch.float64) * highest).long()

    def __call__(self, x: Tensor, moves: Tensor) -> Tensor:
        """The images `x` `(n, c, h, w)`, each cropped and mirrored as its row of `moves` says."""
        top, left, mirrored = moves.to(x.device).unbind(1)
        return crop_and_mirror(x, top, left, mirrored.bool(), self.pad)


def crop_and_mirror(x: Tensor, top: Tensor, left: Tensor, mirrored: Tensor, pad: int) -> Tensor:
    """Pad every image with zeros, crop it to its old size at (top, left), then mirror it where `mirrored`.

    Args:
        x: Images, `(n, c, h, w)`.
        top: First row of each crop in the padded image, 0 to 2 * pad, `(n,)`.
        left: First column of each crop, likewise.
        mirrored: Which crops to mirror left to right, bool, `(n,)`.
        pad: Zeros added on every side.
    """
    n, channels, height, width = x.shape
    padded = F.pad(x, (pad, pad, pad, pad))
    across = torch.arange(width, device=x.device)
    rows = top[:, None] + torch.arange(height, device=x.device)  # (n, h)
    columns = left[:, None] + torch.where(mirrored[:, None], across.flip(0), across)  # (n, w)
    # One gather with crop and mirror in its index: faster than strided windows and a separate flip.
    pixel = rows[:, :, None] * (width + 2 * pad) + columns[:, None, :]  # (n, h, w)
    index = pixel.view(n, 1, -1).expand(n, channels, -1)
    return padded.view(n, channels, -1).gather(2, index).view(n, channels, height, width)
