"""Preprocessing of arrays and images: scaling, contrast normalisation, per-pixel mean and deviation, whitening.

The functions work on tensors whose first axis is the sample, on any device. `ArrayPreparation` combines them and keeps
what was estimated from the training split, so that it can be saved with a run and applied to new samples.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import torch
from torch import Tensor

from verydeep.data._config import Preprocess
from verydeep.data.own._image_files import ImageFiles
from verydeep.data.prepare._whitening import check_size, pack_matrix, unpack_matrix, whitening_matrix
from verydeep.errors import UserError

_CHUNK = 2**19  # values processed at once: they fit the cache, and most of a memory-mapped file stays on disk
_IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # mean and deviation of red, green and blue
_AVERAGING = "averaging the images, which are too many for memory and stay in their files"


def scale(x: Tensor, full: float = 256.0) -> Tensor:
    """Divide pixels by `full`, as float32; the paper's MNIST networks see pixels / 256."""
    return x.to(torch.float32) / full


def global_contrast_normalise(x: Tensor) -> Tensor:
    """Give each sample mean 0 and standard deviation 1 over all its values, as float32.

    The authors published their normalised CIFAR images but not the scale they used; unit deviation is our choice. A
    sample without any contrast becomes all zeros. A sample has the same bits alone and among others.
    """
    values = x.to(torch.float32)
    if len(values) == 1:  # torch would share the sum of a single large sample among threads and round differently
        return global_contrast_normalise(values.repeat(2, *(1 for _ in x.shape[1:])))[:1]
    axes = tuple(range(1, x.ndim))
    centred = values - values.mean(axes, keepdim=True)
    deviation = centred.square().mean(axes, keepdim=True).sqrt()
    return centred / torch.where(deviation > 1e-6, deviation, 1.0)


def per_pixel_mean(x: Tensor) -> Tensor:
    """The mean of each pixel (or feature) over the samples, as float64 with the shape of one sample."""
    total = torch.zeros(x.shape[1:], dtype=torch.float64, device=x.device)
    for chunk in _chunks(x):
        total += chunk.to(torch.float64).sum(0)
    return total / len(x)


def per_pixel_deviation(x: Tensor, mean: Tensor) -> Tensor:
    """The standard deviation of each pixel (or feature) around `mean`, as float64; 1 where it is constant."""
    total = torch.zeros_like(mean)
    for chunk in _chunks(x):
        total += (chunk.to(torch.float64) - mean).square().sum(0)
    deviation = (total / len(x)).sqrt()
    return torch.where(deviation > 1e-12 * mean.abs(), deviation, 1.0)


@dataclass(frozen=True)
class ArrayPreparation:
    """Divide by `full`, normalise contrast, subtract `mean`, divide by `deviation`, whiten: the steps set, in order.

    It holds plain numbers and text only, so that it can be saved as JSON with a run.
    """

    shape: tuple[int, ...]
    full: float | None = None
    contrast: bool = False
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()
    contrast_norm: float | None = None  # of each image, by default that of deviation 1
    whitening: str = ""

    def __post_init__(self) -> None:
        for name in ("mean", "deviation"):
            if len(getattr(self, name)) not in (0, prod(self.shape)):
                raise UserError(f"preparation: {name} does not have one value for each of {self.shape}")

    def __call__(self, x: Tensor) -> Tensor:
        """Prepare samples `(n, *shape)`: float32, or the raw bytes if there is nothing to do."""
        self.check_shape(x, "new data")
        if x.dtype == torch.uint8 and self == ArrayPreparation(self.shape):
            return x
        if self.full is not None:
            x = scale(x, self.full)
        if self.contrast:
            x = global_contrast_normalise(x)
        if self.contrast_norm is not None:
            x = x * contrast_factor(self.contrast_norm, self.shape)
        if self.mean:
            x = x - self._mean.to(x.device)
        if self.deviation:
            x = x / self._deviation.to(x.device)
        if self.whitening:
            matrix = unpack_matrix(self.whitening, prod(self.shape)).to(x.device)
            x = (x.to(torch.float32).flatten(1) @ matrix).view(x.shape)
        return x.to(torch.float32)

    def whole(self, x: Tensor, what: str) -> Tensor:
        """Prepare a whole split in chunks, without intermediate copies of all of it; `what` names it in errors."""
        out = torch.empty(x.shape, dtype=self(x[:1]).dtype)
        for piece, chunk in zip(_chunks(out), _chunks(x), strict=True):
            piece.copy_(self(chunk))
        if self.deviation and not out.isfinite().all():
            raise UserError(
                f"{what}: some values are so far outside the training data that they overflow; correct or remove them"
            )
        return out

    def check_shape(self, x: Tensor, what: str) -> None:
        """Raise if samples have another shape than the training data."""
        if tuple(x.shape[1:]) != self.shape:
            raise UserError(f"{what}: samples have shape {tuple(x.shape[1:])}, the training data has {self.shape}")

    @cached_property
    def _mean(self) -> Tensor:
        # Contrast-normalised values are of order 1; raw numbers may be large and close together, hence double.
        return torch.tensor(self.mean, dtype=torch.float32 if self.contrast else torch.float64).view(self.shape)

    @cached_property
    def _deviation(self) -> Tensor:
        return torch.tensor(self.deviation, dtype=torch.float64).view(self.shape)


def contrast_factor(norm: float, shape: tuple[int, ...]) -> float:
    """The factor that gives an image of deviation 1 this norm."""
    return norm / math.sqrt(prod(shape))


def fit_arrays(
    train: Tensor, preprocess: Preprocess, full: float = 256.0, contrast_norm: float | None = None
) -> ArrayPreparation:
    """Build the preparation for `preprocess`, with statistics of the training samples only."""
    shape = tuple(train.shape[1:])
    if preprocess == "paper":
        preprocess = _paper_preprocess(train)
    if contrast_norm is not None and preprocess not in ("contrast", "zca"):
        raise UserError("data.contrast_norm is for images with normalised contrast; leave it out, or use 'contrast'")
    if preprocess == "scale":
        return ArrayPreparation(shape, full=full)
    if preprocess in ("contrast", "zca"):
        return _fit_contrast(train, preprocess == "zca", contrast_norm)
    if preprocess == "standardise":
        mean = per_pixel_mean(train)
        return ArrayPreparation(shape, mean=_numbers(mean), deviation=_numbers(per_pixel_deviation(train, mean)))
    if preprocess == "imagenet":
        return _imagenet(shape)
    return ArrayPreparation(shape)


def _fit_contrast(train: Tensor, whiten: bool, norm: float | None) -> ArrayPreparation:
    """Normalised contrast minus the mean of each pixel, then perhaps whitening."""
    shape = tuple(train.shape[1:])
    preparation = ArrayPreparation(shape, contrast=True, contrast_norm=norm)
    total = sum(preparation(chunk).to(torch.float64).sum(0) for chunk in _chunks(train))
    mean = torch.as_tensor(total) / len(train)
    if not whiten:
        return replace(preparation, mean=_numbers(mean))
    check_size(prod(shape))
    matrix = whitening_matrix((preparation(chunk).flatten(1) for chunk in _chunks(train)), mean.flatten())
    return replace(preparation, mean=_numbers(mean), whitening=pack_matrix(matrix))


def _imagenet(shape: tuple[int, ...]) -> ArrayPreparation:
    """Pixels / 255 minus the mean of ImageNet's colours, divided by their standard deviation."""
    if len(shape) != 3 or shape[0] != 3:
        raise UserError(f"data.preprocess 'imagenet' is for colour images, but samples have shape {shape}")
    mean, deviation = (torch.tensor(colours, dtype=torch.float64).view(3, 1, 1).expand(shape) for colours in _IMAGENET)
    return ArrayPreparation(shape, full=255.0, mean=_numbers(mean), deviation=_numbers(deviation))


def _paper_preprocess(x: Tensor) -> Preprocess:
    """Treat grey images as the paper treats MNIST and colour images as CIFAR; leave anything else unchanged."""
    if x.dtype != torch.uint8 or x.ndim != 4:
        return "none"
    return "contrast" if x.shape[1] == 3 else "scale"


def _numbers(x: Tensor) -> tuple[float, ...]:
    return tuple(x.flatten().tolist())


def _chunks(x: Tensor) -> Iterator[Tensor]:
    """Iterate over `x` in chunks of samples that are small enough for the processor's cache."""
    size = max(1, _CHUNK // x.shape[1:].numel())
    if isinstance(x, ImageFiles):
        return (chunk for block in x.blocks(size, _AVERAGING) for chunk in _chunks(block))
    return (x[i : i + size] for i in range(0, len(x), size))
