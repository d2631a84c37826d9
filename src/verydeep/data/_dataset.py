"""`Dataset`: its splits as tensors, and the names of its classes."""

from dataclasses import dataclass

from torch import Tensor

from verydeep.data.prepare._columns import TablePreparation
from verydeep.data.prepare._preprocess import ArrayPreparation


@dataclass(frozen=True)
class Split:
    """Samples and their class numbers.

    Attributes:
        x: Samples along the first axis; images are `(n, channels, height, width)`.
        y: Class numbers, int64, `(n,)`.
        prepare: The preparation that `Batches` still applies, for a split larger than memory; None if `x` is ready.
        whole: Whether these are all samples of data without splits.
    """

    x: Tensor
    y: Tensor
    prepare: ArrayPreparation | None = None
    whole: bool = False

    def __len__(self) -> int:
        return len(self.y)

    def prepared(self, x: Tensor) -> Tensor:
        """Prepare some of its samples for the network, if `x` is not ready."""
        return x if self.prepare is None else self.prepare(x)


@dataclass(frozen=True)
class Dataset:
    """A dataset with its splits.

    Attributes:
        name: The known name, or that of the file or folder.
        train: The training samples.
        valid: The validation samples; None if no samples are held out for validation.
        test: The test samples.
        classes: The class names; class number i is `classes[i]`.
        preparation: How the raw values were prepared, to be applied to new ones; None for raw data.
    """

    name: str
    train: Split
    valid: Split | None
    test: Split
    classes: tuple[str, ...]
    preparation: ArrayPreparation | TablePreparation | None = None
