"""What the analyses look at: a split, or any batches that can be gone through again."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

import torch
from torch import Tensor, nn

from verydeep.analysis._replay import batch_size
from verydeep.analysis._view import View
from verydeep.data import Batches, Split
from verydeep.errors import UserError

Data = Split | Iterable[tuple[Tensor, Tensor]]
"""A `Split` (`Split(x, y)` of your own tensors), or batches `(x, y)`: a `DataLoader`, a list."""

Progress = Callable[[float], None]
"""Is told which share of the work is done, from 0 to 1."""


@dataclass(frozen=True)
class Subject:
    """A view of a model together with the data it is looked at with."""

    view: View
    data: Data
    size: int  # samples of a batch

    @classmethod
    def of(cls, model: nn.Module, data: Data) -> "Subject":
        """Check that the two fit together."""
        x = first_samples(data, 2).to(device(model))
        view = View(model, x)
        with torch.no_grad():
            return cls(view, data, batch_size(view, x))

    def batches(self, progress: Progress | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """All samples once, on the model's device."""
        return go_through(self.data, self.size, device(self.view.model), progress)

    def some(self, samples: int, seed: int = 0) -> "Subject":
        """At most so many samples: of a split random ones, of other data the first batches."""
        return replace(self, data=some_samples(self.data, samples, seed))


def some_samples(data: Data, samples: int, seed: int = 0) -> Data:
    """At most so many samples: of a split random ones in its order, of other data the first batches."""
    if samples < 1:
        raise UserError(f"samples must be at least 1, got {samples}")
    if not isinstance(data, Split):
        return list(_until(data, samples))
    if samples >= len(data):
        return data
    rows = torch.randperm(len(data), generator=torch.Generator().manual_seed(seed))[:samples].sort().values
    rows = rows.to(data.x.device)
    return replace(data, x=data.x.index_select(0, rows), y=data.y.index_select(0, rows))


def go_through(
    data: Data, size: int, to: torch.device, progress: Progress | None = None
) -> Iterator[tuple[Tensor, Tensor]]:
    """All batches once, in order; `size` is for splits, other data has its own."""
    seen, total = 0, _length(data)
    for x, y in _batches(data, size):
        yield x.to(to), y.to(to)
        seen += len(y)
        if progress is not None and total:
            progress(min(seen / total, 1.0))


def part(progress: Progress | None, first: float, end: float) -> Progress | None:
    """The progress of a part of the work, which goes from `first` to `end` of the whole."""
    return None if progress is None else lambda share: progress(first + (end - first) * share)


def device(model: nn.Module) -> torch.device:
    """Where a model's parameters are."""
    return next((p.device for p in model.parameters()), torch.device("cpu"))


def first_samples(data: Data, count: int) -> Tensor:
    """The first few, or fewer where a batch has fewer."""
    if not isinstance(data, Split) and iter(data) is data:
        raise UserError("batches must be a list or a DataLoader: an iterator can be gone through only once")
    x = next((x[:count] for x, _ in _batches(data, count)), None)
    if x is None or len(x) == 0:
        raise UserError("there are no samples to look at")
    return x


def _batches(data: Data, size: int) -> Iterable[tuple[Tensor, Tensor]]:
    return Batches(data, size, seed=0, shuffle=False).epoch(0) if isinstance(data, Split) else data


def _length(data: Data) -> int:
    """Samples, if they can be counted without going through them."""
    if isinstance(data, Split):
        return len(data)
    return len(data.dataset) if isinstance(data, torch.utils.data.DataLoader) else 0  # type: ignore[arg-type]


def _until(batches: Iterable[tuple[Tensor, Tensor]], samples: int) -> Iterator[tuple[Tensor, Tensor]]:
    for x, y in islice(batches, samples):  # a batch has at least one sample
        yield x[:samples], y[:samples]
        samples -= len(y)
        if samples <= 0:
            return
