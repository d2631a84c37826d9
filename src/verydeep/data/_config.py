"""All options about data, for `load_dataset` and for the `[data]` table of a run's configuration file."""

import codecs
import io
import math
from dataclasses import dataclass
from typing import Literal

from verydeep.config import explains_unknown
from verydeep.data._augment import Augment
from verydeep.errors import UserError

TaskKind = Literal["classification", "regression", "multilabel"]
Preprocess = Literal["paper", "scale", "contrast", "zca", "standardise", "imagenet", "none"]


@explains_unknown
@dataclass(frozen=True)
class DataConfig:
    """Which data to use, how to split it, and how to prepare it.

    Attributes:
        source: The name of a known dataset (`mnist`, ...) or the path of a file or folder.
        target: The column of a table that holds what is to be predicted; by default, the one called target, label,
            class or y. Several columns are several numbers or labels.
        task: What is predicted: one class (classification), numbers (regression) or any number of labels (multilabel).
            By default, recognised from the target: numbers with fractions or of many different values are a regression,
            several columns of zeros and ones are labels.
        test: Samples held out for testing: a number, or a fraction such as 0.2; by default, the test split that comes
            with the data, or a fifth.
        validation: Training samples held out for validation: a number, a fraction such as 0.1, or `"paper"` for the
            paper's 10,000; 0 holds out none. `"auto"`, the default of `train` for your own data, holds out 15 % unless
            the data has a validation split or fewer than 20 training samples. Otherwise none by default.
        folds: Divide the training samples into this number of equal parts for cross-validation: one part is the
            validation split, and the others are trained on. Over all folds, each sample is held out once, except for
            the only sample of a class, which is always trained on. With a validation split besides, the part is left
            out of both, so that what was trained and selected can be measured on it: `Dataset.held_out`.
        fold: The number of the part that is held out, from 0 to `folds - 1`. Several seeds choose it themselves: each
            holds out the part `seed % folds`.
        train_samples: Train on this many random training samples, or on this fraction of them; by default, on all. They
            are drawn from those that are left when test, validation and fold are held out, and each class contributes
            its share.
        test_path: A file or folder with the test split.
        valid_path: A file or folder with the validation split.
        seed: Seed of the random splits.
        preprocess: How values are prepared. `"paper"`: grey images / 256, colour images with normalised contrast minus
            the mean of each pixel, table columns standardised, other numbers unchanged. `"scale"`, `"contrast"` and
            `"standardise"` select one of these; `"zca"` is contrast and then whitening; `"imagenet"` subtracts the mean
            of ImageNet's colours and divides by their standard deviation; `"none"` leaves the values unchanged.
        contrast_norm: The norm of each image after its contrast is normalised; by default, that of deviation 1, which
            is 55.4 for CIFAR. pylearn2 has 55.
        augment: Augmentation of the training images.
        image_size: Resize the images of a folder to this height and width; by default, all must have the same size.
        channels: Convert the images of a folder to 1 (grey) or 3 (colour) channels; by default, grey if all images are.
        verify: Notice any change of samples that stay on disk since a run was trained on them, by reading all of them;
            by default, 1,000 samples are compared. Data in memory is always compared in full.
        categorical: Table columns to treat as categories although they look like numbers.
        ignore: Table columns to leave out.
        numeric: Table columns to use as numbers although they look like identifiers or never change.
        delimiter: The column separator of CSV files; a `.tsv` file has tabs.
        decimal: The decimal point of numbers in CSV files, `"."` or `","`.
        encoding: The encoding of CSV files, such as `"latin-1"` or `"utf-16"`.
        date_order: Whether dates such as 3/4/2020 have the day or the month first; by default, found in the data.

    Example:
        >>> from verydeep.data import DataConfig, load_dataset
        >>> config = DataConfig("digits", validation=0.1)
        >>> len(load_dataset(config).valid)
        144
    """

    source: str
    target: tuple[str, ...] = ()
    task: TaskKind | None = None
    test: int | float | None = None
    validation: int | float | Literal["paper", "auto"] | None = None
    folds: int | None = None
    fold: int = 0
    train_samples: int | float | None = None
    test_path: str | None = None
    valid_path: str | None = None
    seed: int = 0
    preprocess: Preprocess = "paper"
    contrast_norm: float | None = None
    augment: Augment = Augment()  # noqa: RUF009 - frozen
    image_size: int | None = None
    channels: Literal[1, 3] | None = None
    verify: bool = False
    categorical: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    delimiter: str = ","
    decimal: Literal[".", ","] = "."
    encoding: str = "utf-8"
    date_order: Literal["day", "month"] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.target, str):
            object.__setattr__(self, "target", (self.target,))
        if not self.source:
            raise UserError("data.source is empty; give the name of a known dataset or a path")
        for name in ("test", "validation", "train_samples"):
            _check_amount(name, getattr(self, name))
        for path, amount in (("test_path", "test"), ("valid_path", "validation")):
            if getattr(self, path) is not None and getattr(self, amount) is not None:
                raise UserError(f"give data.{path} or data.{amount}, not both")
        self._check_folds()
        if self.contrast_norm is not None and not 0 < self.contrast_norm < math.inf:
            raise UserError(f"data.contrast_norm must be more than 0, got {self.contrast_norm:g}")
        if self.seed < 0:
            raise UserError(f"data.seed must be 0 or more, got {self.seed}")
        if self.image_size is not None and not 1 <= self.image_size <= 4096:
            raise UserError(f"data.image_size must be between 1 and 4096 pixels, got {self.image_size}")
        if self.delimiter == r"\t":  # as one types it in a shell
            object.__setattr__(self, "delimiter", "\t")
        if len(self.delimiter) != 1 or self.delimiter in '"\r\n':
            raise UserError(
                f"data.delimiter must be one character such as ',', ';' or '\\t' (a tab), got {self.delimiter!r}"
            )
        object.__setattr__(self, "encoding", _checked_encoding(self.encoding))

    @property
    def names_validation(self) -> bool:
        """Whether this asks for a validation split; the data may also come with one."""
        return bool(self.validation) or self.folds is not None or self.valid_path is not None

    def _check_folds(self) -> None:
        if self.folds is None:
            if self.fold != 0:
                raise UserError(f"data.fold = {self.fold} needs data.folds, the number of parts, such as 5")
            return
        if self.folds < 2:
            raise UserError(f"data.folds must be 2 or more, got {self.folds}")
        if not 0 <= self.fold < self.folds:
            raise UserError(
                f"data.fold must be from 0 to {self.folds - 1} if data.folds is {self.folds}, got {self.fold}"
            )


def _checked_encoding(name: str) -> str:
    try:
        found = codecs.lookup("utf-8" if name.lower() in ("utf-8-sig", "utf_8_sig") else name).name
        io.TextIOWrapper(io.BytesIO(), encoding=found)  # raises for base64 and the like, which do not encode text
        return found
    except (LookupError, ValueError):  # ValueError: a NUL in the name
        raise UserError(f"data.encoding: unknown encoding {name!r}; try 'utf-8', 'latin-1' or 'utf-16'") from None


def _check_amount(name: str, amount: int | float | str | None) -> None:
    if name == "validation" and amount == 0:
        return
    if isinstance(amount, float) and not 0 < amount < 1:
        raise UserError(f"data.{name} = {amount} must be a fraction between 0 and 1, or a whole number of samples")
    if isinstance(amount, int) and amount < 1:
        raise UserError(f"data.{name} must be 1 sample or more, got {amount}")
