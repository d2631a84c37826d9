"""Augmentation of images, vectorised over the batch: translation and mirroring as in the paper, rotation, scaling.

Randomness is separate from the computation: `Augment.draw` draws what happens to each sample, while `rotate_and_scale`
and `crop_and_mirror` are pure functions. A batch can therefore be split over processes, or an epoch resumed, with the
same result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from verydeep.errors import UserError

if TYPE_CHECKING:  # settings are read without torch
    import torch
    from torch import Tensor


@dataclass(frozen=True)
class Augment:
    """How training images are augmented; none by default.

    Attributes:
        pad: Pixels added on each side before a random crop of the original size; the paper's CIFAR networks use 8.
        mirror: Mirror images left to right with probability 1/2.
        rotate: The largest random rotation about the centre, in degrees, in either direction.
        scale: The largest random change in scale: 0.1 means 0.9 to 1.1 times the size.
        fill: The values of the pixels that `pad` adds, one per channel of the prepared images; by default, 0.

    Example:
        >>> from verydeep.data import Augment, Batches, load_dataset
        >>> augment = Augment(pad=1, rotate=10.0)
        >>> batches = Batches(load_dataset("digits").train, 100, seed=0, augment=augment)
        >>> x, y = next(batches.epoch(0))
        >>> x.shape
        torch.Size([100, 1, 8, 8])
    """

    pad: int = 0
    mirror: bool = False
    rotate: float = 0.0
    scale: float = 0.0
    fill: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.pad < 0:
            raise UserError(f"data.augment.pad must be 0 or more, got {self.pad}")
        if not 0 <= self.rotate <= 180:
            raise UserError(f"data.augment.rotate must be from 0 to 180 degrees, got {self.rotate:g}")
        if not 0 <= self.scale < 1:
            raise UserError(f"data.augment.scale must be at least 0 and less than 1, got {self.scale:g}")

    def __bool__(self) -> bool:
        return self.pad > 0 or self.mirror or self._rotates_or_scales

    @property
    def _rotates_or_scales(self) -> bool:
        return self.rotate > 0 or self.scale > 0

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """Draw the augmentation of `count` images, float64, `(count, 5)`.

        The columns are the offsets from the top and the left, whether to mirror (0 or 1), the angle in radians and the
        factor on the size.
        """
        import torch

        highest = torch.tensor([2 * self.pad + 1, 2 * self.pad + 1, 2 if self.mirror else 1])
        moves = torch.rand(count, 3, generator=generator, dtype=torch.float64).mul_(highest).floor_()
        affine = torch.zeros(count, 2, dtype=torch.float64)
        if self._rotates_or_scales:
            largest = torch.tensor([math.radians(self.rotate), self.scale], dtype=torch.float64)
            affine = torch.rand(count, 2, generator=generator, dtype=torch.float64).mul_(2).sub_(1).mul_(largest)
        affine[:, 1] += 1
        return torch.cat([moves, affine], 1)

    def __call__(self, x: Tensor, moves: Tensor) -> Tensor:
        """Augment the images `x` `(n, c, h, w)`, each by its row of `moves`, which `draw` made."""
        import torch

        top, left, mirrored, angle, factor = moves.to(x.device).unbind(1)
        if self._rotates_or_scales:
            x = rotate_and_scale(x, angle, factor)
        crop = partial(crop_and_mirror, top=top.long(), left=left.long(), mirrored=mirrored.bool(), pad=self.pad)
        if not self.fill:
            return crop(x)
        fill = torch.tensor(self.fill, dtype=x.dtype, device=x.device).view(-1, 1, 1)
        return crop(x - fill) + fill


def rotate_and_scale(x: Tensor, angle: Tensor, factor: Tensor) -> Tensor:
    """Rotate each image about its centre and scale it, with bilinear interpolation and zeros outside.

    Args:
        x: Images, `(n, c, h, w)`.
        angle: Angles in radians, counter-clockwise as displayed, `(n,)`.
        factor: Factors on the size, `(n,)`.
    """
    import torch
    import torch.nn.functional as F

    height, width = x.shape[2:]
    cos, sin, none = angle.cos() / factor, angle.sin() / factor, torch.zeros_like(angle)
    # The source of each pixel, in coordinates from -1 to 1 along both axes whatever their lengths.
    rows = ((cos, -sin * height / width, none), (sin * width / height, cos, none))
    maps = torch.stack([torch.stack(row, 1) for row in rows], 1).float()
    pixels = F.affine_grid(maps, list(x.shape), align_corners=False)
    return F.grid_sample(x.float(), pixels, align_corners=False).to(x.dtype)


def crop_and_mirror(x: Tensor, top: Tensor, left: Tensor, mirrored: Tensor, pad: int) -> Tensor:
    """Pad each image with zeros, crop it to its original size at (top, left), then mirror it where `mirrored`.

    Args:
        x: Images, `(n, c, h, w)`.
        top: First row of each crop in the padded image, 0 to 2 * pad, `(n,)`.
        left: First column of each crop, likewise.
        mirrored: Which crops to mirror left to right, bool, `(n,)`.
        pad: Zeros added on each side.
    """
    import torch
    import torch.nn.functional as F

    n, channels, height, width = x.shape
    padded = F.pad(x, (pad, pad, pad, pad))
    across = torch.arange(width, device=x.device)
    rows = top[:, None] + torch.arange(height, device=x.device)  # (n, h)
    columns = left[:, None] + torch.where(mirrored[:, None], across.flip(0), across)  # (n, w)
    # One gather whose index crops and mirrors is faster than strided windows and a separate flip.
    pixel = rows[:, :, None] * (width + 2 * pad) + columns[:, None, :]  # (n, h, w)
    index = pixel.view(n, 1, -1).expand(n, channels, -1)
    return padded.view(n, channels, -1).gather(2, index).view(n, channels, height, width)
