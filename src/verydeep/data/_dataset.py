"""What a dataset is: whole splits held as tensors, and the names of its classes."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Split:
    """Samples and their classes.

    Attributes:
        x: Samples, first axis the sample; images are `(n, channels, height, width)`.
        y: Class numbers, int64, `(n,)`.
    """

    x: Tensor
    y: Tensor

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class Dataset:
    """A named set with its splits; `valid` is None when all training data is used for training."""

    name: str
    train: Split
    valid: Split | None
    test: Split
    classes: tuple[str, ...]
