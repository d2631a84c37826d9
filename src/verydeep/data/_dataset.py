"""`Dataset`: its splits as tensors, and the names of its classes."""

import io
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from verydeep.data._task import Task
from verydeep.data.prepare._columns import TablePreparation
from verydeep.data.prepare._preprocess import ArrayPreparation
from verydeep.notebook import html_card

_MOST_CLASSES = 10  # named, and shown in a notebook
_MOST_PIXELS = 800  # of the contact sheet in a notebook, each way


@dataclass(frozen=True, repr=False)
class Split:
    """Samples and their targets.

    Attributes:
        x: Samples along the first axis; images are `(n, channels, height, width)`. Those of a large folder stay in
            their files and are decoded when they are used.
        y: Class numbers, int64, `(n,)`; or standardised numbers or labels 0 and 1, float32, `(n, targets)`.
        prepare: The preparation that `Batches` still applies, for a split larger than memory; None if `x` is ready.
        whole: Whether the data has no splits, so that these are all of its samples.
        task: What the targets are; None if that is to follow from their type.

    Example:
        >>> import torch
        >>> from verydeep.data import Split
        >>> Split(torch.randn(100, 20), torch.randint(0, 3, (100,)))
        <Split: 100 samples of shape (20,)>
    """

    x: Tensor
    y: Tensor
    prepare: ArrayPreparation | None = None
    whole: bool = False
    task: Task | None = None

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        return f"<Split: {len(self):,} sample{'s' * (len(self) != 1)} of shape {tuple(self.x.shape[1:])}>"

    def _repr_html_(self) -> str:
        rows = [("samples", f"{len(self):,}"), ("shape of a sample", f"{tuple(self.x.shape[1:])}")]
        if self.y.is_floating_point():
            return html_card("Split", [*rows, ("targets", f"{self.y.shape[1:].numel()}")], [])
        classes = int(self.y.max()) + 1 if len(self) else 0
        return html_card("Split", [*rows, ("highest class number", f"{classes - 1}")], _pictures(self, range(classes)))

    def prepared(self, x: Tensor) -> Tensor:
        """Prepare some of its samples for the network, if `x` is not ready."""
        return x if self.prepare is None else self.prepare(x)


@dataclass(frozen=True, repr=False)
class Dataset:
    """A dataset with its splits; `load_dataset` makes one.

    Attributes:
        name: The known name, or that of the file or folder.
        train: The training samples.
        valid: The validation samples; None if no samples are held out for validation.
        test: The test samples.
        classes: The class names; class number i is `classes[i]`. Empty unless the task is classification.
        preparation: How the raw values were prepared, to be applied to new ones; None for raw data.
        task: What is predicted; by default, one of the classes.
        held_out: The samples of a fold that are neither trained on nor used for validation; None without folds, or if
            the fold is the validation split.

    Example:
        >>> import torch
        >>> from verydeep.data import Dataset, Split
        >>> train, test = (Split(torch.randn(n, 20), torch.randint(0, 3, (n,))) for n in (100, 50))
        >>> Dataset("flowers", train, None, test, ("setosa", "versicolor", "virginica"))
        <Dataset 'flowers': 100 training and 50 test samples of shape (20,), 3 classes>
    """

    name: str
    train: Split
    valid: Split | None
    test: Split
    classes: tuple[str, ...]
    preparation: ArrayPreparation | TablePreparation | None = None
    task: Task = None  # type: ignore[assignment]  # filled in below
    held_out: Split | None = None

    def __post_init__(self) -> None:
        if self.task is None:
            object.__setattr__(self, "task", Task("classification", self.classes))

    def __repr__(self) -> str:
        valid = "" if self.valid is None else f", {len(self.valid):,} validation"
        sizes = f"{len(self.train):,} training{valid} and {len(self.test):,} test samples"
        shape = tuple(self.train.x.shape[1:])
        return f"<Dataset {self.name!r}: {sizes} of shape {shape}, {describe_targets(self.task)}>"

    def _repr_html_(self) -> str:
        names = ", ".join(self.task.names[:_MOST_CLASSES]) + (", ..." if self.task.outputs > _MOST_CLASSES else "")
        rows = [
            ("training samples", f"{len(self.train):,}"),
            ("validation samples", "none" if self.valid is None else f"{len(self.valid):,}"),
            ("test samples", f"{len(self.test):,}"),
            ("shape of a sample", f"{tuple(self.train.x.shape[1:])}"),
            (describe_targets(self.task), names),
        ]
        return html_card(f"Dataset {self.name}", rows, _pictures(self.train, self.classes) if self.classes else [])


def describe_targets(task: Task) -> str:
    """How many classes, labels or numbers are predicted."""
    noun = {"classification": "classes", "multilabel": "labels", "regression": "target"}[task.kind]
    return f"{task.outputs} {noun}" + ("s" if task.kind == "regression" and task.outputs != 1 else "")


def _pictures(split: Split, classes: Sequence[object]) -> list[bytes]:
    """The contact sheet of the first classes as PNG, if the samples are images."""
    from verydeep.data._contact_sheet import contact_sheet

    if not len(split) or split.x.ndim != 4 or split.x.shape[1] not in (1, 3):
        return []
    names = tuple(str(name) for name in classes[:_MOST_CLASSES])
    sheet = contact_sheet(Dataset("", split, None, split, names))
    sheet.thumbnail((_MOST_PIXELS, _MOST_PIXELS))
    png = io.BytesIO()
    sheet.save(png, format="PNG")
    return [png.getvalue()]
