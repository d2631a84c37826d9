"""Arrays of numbers, images among them: what is accepted, and how it is prepared for training."""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import torch
from torch import Tensor

from verydeep.data._config import Preprocess
from verydeep.data._preprocess import chunks, global_contrast_normalise, per_pixel_deviation, per_pixel_mean, scale
from verydeep.errors import UserError


@dataclass(frozen=True)
class ArrayPreparation:
    """Divide by `full`, normalise contrast, subtract `mean`, divide by `deviation`: those that are set, in this order.

    Plain numbers only, so that it can be saved as JSON with a run and applied to new samples later.
    """

    shape: tuple[int, ...]
    full: float | None = None
    contrast: bool = False
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name in ("mean", "deviation"):
            if len(getattr(self, name)) not in (0, prod(self.shape)):
                raise UserError(f"preparation: {name} does not have one value for each of {self.shape}")

    def __call__(self, x: Tensor) -> Tensor:
        """Samples `(n, *shape)` as the network sees them: float32, or the raw bytes when there is nothing to do."""
        self.check_shape(x, "new data")
        if x.dtype == torch.uint8 and self == ArrayPreparation(self.shape):
            return x
        if self.full is not None:
            x = scale(x, self.full)
        if self.contrast:
            x = global_contrast_normalise(x)
        if self.mean:
            x = x - self._mean.to(x.device)
        if self.deviation:
            x = x / self._deviation.to(x.device)
        return x.to(torch.float32)

    def whole(self, x: Tensor, what: str) -> Tensor:
        """The same for a whole split, piece by piece, so that no second copy of it is made on the way."""
        out = torch.empty(x.shape, dtype=self(x[:1]).dtype)
        for piece, chunk in zip(chunks(out), chunks(x), strict=True):
            piece.copy_(self(chunk))
        if self.deviation and not out.isfinite().all():
            raise UserError(f"{what}: values so far outside the training data that they overflow; mend or remove them")
        return out

    def check_shape(self, x: Tensor, what: str) -> None:
        """Refuse samples of another shape than those of training."""
        if tuple(x.shape[1:]) != self.shape:
            raise UserError(f"{what}: samples have shape {tuple(x.shape[1:])}, the training data has {self.shape}")

    @cached_property
    def _mean(self) -> Tensor:
        # Contrast-normalised values are of order 1; raw numbers may be large and close together, hence double.
        return torch.tensor(self.mean, dtype=torch.float32 if self.contrast else torch.float64).view(self.shape)

    @cached_property
    def _deviation(self) -> Tensor:
        return torch.tensor(self.deviation, dtype=torch.float64).view(self.shape)


def fit_arrays(train: Tensor, preprocess: Preprocess, full: float = 256.0) -> ArrayPreparation:
    """The preparation `preprocess` asks for, with statistics of the training samples only."""
    shape = tuple(train.shape[1:])
    if preprocess == "paper":
        preprocess = _paper(train)
    if preprocess == "scale":
        return ArrayPreparation(shape, full=full)
    if preprocess == "contrast":
        total = sum(global_contrast_normalise(chunk).to(torch.float64).sum(0) for chunk in chunks(train))
        return ArrayPreparation(shape, contrast=True, mean=_numbers(torch.as_tensor(total) / len(train)))
    if preprocess == "standardise":
        mean = per_pixel_mean(train)
        return ArrayPreparation(shape, mean=_numbers(mean), deviation=_numbers(per_pixel_deviation(train, mean)))
    return ArrayPreparation(shape)


def _paper(x: Tensor) -> Preprocess:
    """As for its grey images, MNIST, and its colour images, CIFAR; what is not an image is left as it is."""
    if x.dtype != torch.uint8 or x.ndim != 4:
        return "none"
    return "contrast" if x.shape[1] == 3 else "scale"


def _numbers(x: Tensor) -> tuple[float, ...]:
    return tuple(x.flatten().tolist())


def as_samples(array: np.ndarray, where: str) -> Tensor:
    """An array as samples: bytes stay bytes, small numbers become float32 and others float64, all finite in float32."""
    if array.dtype.kind not in "buif":
        raise UserError(f"{where}: expected numbers, got {array.dtype}; save them as float32 or uint8")
    array = image_axes(array, where)
    if array.dtype != np.uint8:
        array = array.astype(np.float64 if array.dtype.itemsize > 2 and array.dtype != np.float32 else np.float32)
        check_finite(array, where)
    return torch.from_numpy(np.ascontiguousarray(array))


def image_axes(array: np.ndarray, where: str) -> np.ndarray:
    """`(n, features)` as it is, `(n, h, w)` with one channel, `(n, h, w, c)` of 1 or 3 channels as `(n, c, h, w)`."""
    if not 2 <= array.ndim <= 4 or array.size == 0:
        raise UserError(
            f"{where}: shape {array.shape} cannot be used; "
            "expected (samples, features), (samples, height, width) or (samples, channels, height, width)"
        )
    if array.ndim == 3:
        return array[:, None]
    if array.ndim == 4 and array.shape[3] in (1, 3) and array.shape[1] not in (1, 3):
        return np.moveaxis(array, 3, 1)
    if array.ndim == 4 and array.shape[3] == 4 and array.shape[2] > 4 and array.shape[1] not in (1, 3, 4):
        raise UserError(
            f"{where}: shape {array.shape} looks like colour images with transparency as a fourth channel; "
            "lay them on white and save three, or save (samples, channels, height, width)"
        )
    return array


def check_finite(array: np.ndarray, where: str) -> None:
    """Refuse what is not a number, or is too large for the float32 that networks compute in."""
    good = np.abs(array) <= np.finfo(np.float32).max
    if not good.all():
        first = tuple(int(i) for i in np.argwhere(~good)[0])
        raise UserError(f"{where}{list(first)}: {array[first]} is not a finite float32 number; mend or remove it")
