"""What a dataset is: whole splits held as tensors, and the names of its classes."""

from dataclasses import dataclass

from torch import Tensor

from verydeep.data._arrays import ArrayPreparation
from verydeep.data._columns import TablePreparation


@dataclass(frozen=True)
class Split:
    """Samples and their classes.

    Attributes:
        x: Samples, first axis the sample; images are `(n, channels, height, width)`.
        y: Class numbers, int64, `(n,)`.
        prepare: What `Batches` still does to each batch of a split that is larger than memory; None when `x` is ready.
        whole: Whether these are all samples of data that is not split.
    """

    x: Tensor
    y: Tensor
    prepare: ArrayPreparation | None = None
    whole: bool = False

    def __len__(self) -> int:
        return len(self.y)

    def prepared(self, x: Tensor) -> Tensor:
        """Some of its samples as a network sees them."""
        return x if self.prepare is None else self.prepare(x)


@dataclass(frozen=True)
class Dataset:
    """A named set with its splits.

    Attributes:
        name: The known name, or the file's or folder's.
        train: What is trained on.
        valid: None when all training data is used for training.
        test: What is only tested on.
        classes: The name of every class; class number i is `classes[i]`.
        preparation: What was done to the raw values, so that it can be done to new ones; None for raw data.
    """

    name: str
    train: Split
    valid: Split | None
    test: Split
    classes: tuple[str, ...]
    preparation: ArrayPreparation | TablePreparation | None = None
