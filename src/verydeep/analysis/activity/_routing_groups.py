"""The groups of samples whose gates are compared: classes, labels, or ranges of a regression's targets."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from verydeep.analysis._data import ModelAndData
from verydeep.analysis.activity._activity_results import Array
from verydeep.data import Split, Task
from verydeep.errors import UserError
from verydeep.objectives import MultiLabel

_RANGES = 5  # quantiles of each target


@dataclass(frozen=True)
class Groups:
    """What samples are grouped by.

    Attributes:
        by: `class`, `label` or `range`.
        names: The name of each group; None for classes that are only known by their numbers.
        edges: Per target of a regression, the ascending values between its ranges, as the network learns them.
    """

    by: str
    names: tuple[str, ...] | None
    edges: tuple[Array, ...] = ()

    @property
    def may_overlap(self) -> bool:
        """Whether a sample can be in none or several groups."""
        return self.by == "label" or len(self.edges) > 1

    def numbers(self, y: Tensor) -> Tensor:
        """The group of each sample, `(n,)`, if groups do not overlap."""
        if self.by == "class":
            return y
        return torch.bucketize(y[:, 0].cpu().double(), torch.from_numpy(self.edges[0]), right=True)

    def members(self, y: Tensor) -> Tensor:
        """Which samples are in which group, `(n, group)`, if groups may overlap."""
        if self.by == "label":
            return y.cpu() > 0.5
        columns = []
        for target, edges in enumerate(self.edges):
            number = torch.bucketize(y[:, target].cpu().double(), torch.from_numpy(edges), right=True)
            columns.append(torch.nn.functional.one_hot(number, len(edges) + 1).bool())
        return torch.cat(columns, 1)

    def name(self, group: int) -> str:
        """The name of a group."""
        return str(group) if self.names is None else self.names[group]

    def check_names(self, highest: int) -> None:
        """Raise a `UserError` if a class has no name."""
        if self.names is not None and highest >= len(self.names):
            raise UserError(
                f"the data has class number {highest}, but there are names for only {len(self.names)} classes"
            )


def find_groups(subject: ModelAndData, names: Sequence[str] | None) -> Groups:
    """The groups of the data's task.

    Args:
        subject: The model and its data.
        names: The names of classes, labels or targets; by default, those of the task, or numbers.
    """
    task = subject.data.task if isinstance(subject.data, Split) else None
    if isinstance(subject.objective, MultiLabel):
        y = _targets(subject)
        found = tuple(names or (() if task is None else task.names) or map(str, range(y.shape[1])))
        if len(found) != y.shape[1]:
            raise UserError(f"the data has {y.shape[1]} labels, but there are {len(found)} names")
        return Groups("label", found)
    if subject.objective.measure == "r2":
        return _ranges(_targets(subject), task, names)
    return Groups("class", None if names is None else tuple(names))


def _targets(subject: ModelAndData) -> Tensor:
    if isinstance(subject.data, Split):
        return subject.data.y
    return torch.cat([y.cpu() for _, y in subject.batches()])


def _ranges(y: Tensor, task: Task | None, names: Sequence[str] | None) -> Groups:
    values = y.detach().cpu().double()
    shown = values if task is None else task.restore(values)
    targets = list(names or (() if task is None else task.names))
    edges, found = [], []
    for number in range(values.shape[1]):
        column = values[:, number].numpy()
        inner = np.unique(np.quantile(column, np.linspace(0, 1, _RANGES + 1)[1:-1], method="higher"))
        inner = inner[inner > column.min()]  # no range without samples, if many targets are equal
        if not len(inner):
            inner = np.unique(column)[1:2]
        places = [int(np.flatnonzero(column == edge)[0]) for edge in inner]
        prefix = f"{targets[number]}: " if values.shape[1] > 1 and number < len(targets) else ""
        edges.append(inner)
        found += [prefix + name for name in _range_names([float(shown[place, number]) for place in places])]
    return Groups("range", tuple(found), tuple(edges))


def _range_names(edges: list[float]) -> list[str]:
    """Names such as below 71, 71 to 104, 104 or more; with as many digits as make the edges differ."""
    if not edges:
        return ["all"]
    digits = next((d for d in range(3, 17) if len({f"{edge:.{d}g}" for edge in edges}) == len(edges)), 17)
    texts = [_plain(edge, digits) for edge in edges]
    between = [f"{low} to {high}" for low, high in pairwise(texts)]
    return [f"below {texts[0]}", *between, f"{texts[-1]} or more"]


def _plain(value: float, digits: int) -> str:
    """A number without an exponent, if it is of ordinary size."""
    if value == 0 or not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{digits}g}"
    places = max(0, digits - 1 - int(np.floor(np.log10(abs(value)))))
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
