"""Evaluation of a network on a split: loss, accuracy, and which classes it confuses."""

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from verydeep import objectives
from verydeep.cpu import cpu_settings
from verydeep.data import Batches, Split
from verydeep.notebook import html_card
from verydeep.objectives import Classification, Objective, Totals, objective_for
from verydeep.training.run._display import draw
from verydeep.training.step._process_group import ProcessGroup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BATCH_SIZE = 1000


def evaluate(
    model: nn.Module,
    split: Split,
    group: ProcessGroup | None = None,
    forward: Callable[[Tensor], Tensor] | None = None,
    objective: Objective | None = None,
    observe: Callable[[Tensor, Tensor], None] | None = None,
) -> Totals:
    """Measure a model in evaluation mode; the processes of a group share the work.

    Args:
        model: The model; it is put into evaluation mode, and back into its mode afterwards.
        split: The samples, on any device; batches are moved to the model's.
        group: The processes that share the work; by default, only this one.
        forward: Computes the logits in place of the model itself (compiled, or in another precision).
        objective: What is measured; by default, the task of the split.
        observe: Called with the outputs and targets of every batch that this process evaluates.

    Returns:
        Totals, with `loss` and `score`, which is the accuracy, or R2 of a regression.

    Example:
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> from verydeep.training import evaluate
        >>> model = create_model("highway-mlp", depth=3, width=8, classes=10, input_shape=(1, 8, 8))
        >>> result = evaluate(model, load_dataset("digits").test)
        >>> 0 <= result.accuracy <= 1
        True
    """
    if group is None:
        group = ProcessGroup(0, 1, next((p.device for p in model.parameters()), torch.device("cpu")))
    training = model.training
    objective = objective or objective_for(split.task, split.y)
    model.eval()
    try:
        with torch.inference_mode():
            totals = objectives.evaluate_batches(
                model if forward is None else forward,
                _batches(_part_of(split, group)),
                objective,
                device=group.device,
                observe=observe,
            )
            return Totals(group.sum(totals.values), len(split), objective)
    finally:
        model.train(training)


@dataclass(frozen=True, repr=False)
class Confusion:
    """A network's predictions on a split: which classes it confuses.

    Attributes:
        classes: The names of the classes.
        counts: The number of samples of each true class (row) with each prediction (column), int64.
        loss: Mean cross-entropy.

    Example:
        >>> import torch
        >>> from verydeep.training import Confusion
        >>> Confusion(("cat", "dog"), torch.tensor([[8, 2], [1, 9]]), loss=0.4)
        Confusion(2 classes, 20 samples, accuracy 85.00%, loss 0.4)
    """

    classes: tuple[str, ...]
    counts: Tensor
    loss: float

    def __repr__(self) -> str:
        size = f"{len(self.classes)} classes, {self.samples:,} samples"
        accuracy = f", accuracy {self.accuracy:.2%}" if self.samples else ""
        return f"Confusion({size}{accuracy}, loss {self.loss:.4g})"

    def _repr_html_(self) -> str:
        return html_card(repr(self), (), [self.plot()._repr_png_()])  # type: ignore[attr-defined]

    def plot(self, path: str | os.PathLike[str] | None = None, **options: Any) -> "Figure":  # noqa: ANN401
        """Draw the confusion matrix. A notebook shows the figure.

        Args:
            path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
            **options: Options of `verydeep.report.plot_confusion`, such as `theme="dark"`.
        """
        return draw("plot_confusion", self, path, **options)

    @property
    def samples(self) -> int:
        """The number of samples."""
        return int(self.counts.sum())

    @property
    def accuracy(self) -> float:
        """Fraction of correct predictions."""
        return int(self.counts.diagonal().sum()) / self.samples

    @property
    def class_accuracy(self) -> list[float | None]:
        """Fraction of correct predictions per true class; None for a class without samples."""
        correct, all_ = self.counts.diagonal().tolist(), self.counts.sum(1).tolist()
        return [c / n if n else None for c, n in zip(correct, all_, strict=True)]

    def mistakes(self) -> list[tuple[str, str, int]]:
        """True class, predicted class and count of every kind of mistake, the most frequent first."""
        wrong = self.counts - self.counts.diagonal().diag()
        counted = [(int(wrong[i, j]), int(i), int(j)) for i, j in wrong.nonzero()]
        ordered = sorted(counted, key=lambda mistake: (-mistake[0], mistake[1:]))
        return [(self.classes[i], self.classes[j], count) for count, i, j in ordered]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "samples": self.samples,
            "loss": self.loss if math.isfinite(self.loss) else None,
            "accuracy": self.accuracy,
            "classes": list(self.classes),
            "class_accuracy": self.class_accuracy,
            "confusion": self.counts.tolist(),
        }


def confusion(
    model: nn.Module, split: Split, classes: tuple[str, ...], device: torch.device | str = "cpu"
) -> Confusion:
    """Count a model's predictions on every sample of a split, in evaluation mode.

    Args:
        model: The model.
        split: The samples.
        classes: The names of the classes.
        device: The device to compute on; the model is moved there.

    Example:
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> from verydeep.training import confusion
        >>> digits = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=3, width=8, classes=10, input_shape=(1, 8, 8))
        >>> confusion(model, digits.test, digits.classes).counts.shape
        torch.Size([10, 10])
    """
    model = model.eval().to(device)
    counts = torch.zeros(len(classes) ** 2, dtype=torch.int64)

    def count(logits: Tensor, y: Tensor) -> None:
        nonlocal counts
        counts += (y * len(classes) + logits.argmax(1)).cpu().bincount(minlength=len(counts))

    with cpu_settings(), torch.inference_mode():
        totals = objectives.evaluate_batches(model, _batches(split), Classification(), device=device, observe=count)
    return Confusion(classes, counts.view(len(classes), -1), totals.loss)


def _batches(split: Split) -> Iterator[tuple[Tensor, Tensor]]:
    return iter(Batches(split, _BATCH_SIZE, seed=0, shuffle=False).epoch(0))


def gather_rows(rows: Tensor, count: int, group: ProcessGroup) -> Tensor:
    """All rows of a split, from the part that each process measured."""
    if group.size == 1:
        return rows
    everything = rows.new_zeros(count, *rows.shape[1:], device=group.device)
    first, end = _part(count, group)
    everything[first:end] = rows.to(group.device)
    return group.sum(everything).cpu()


def _part(count: int, group: ProcessGroup) -> tuple[int, int]:
    return count * group.rank // group.size, count * (group.rank + 1) // group.size


def _part_of(split: Split, group: ProcessGroup) -> Split:
    """The rows of a split that this process measures."""
    first, end = _part(len(split), group)
    return replace(split, x=split.x[first:end], y=split.y[first:end])
