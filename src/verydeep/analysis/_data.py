"""The data an analysis runs on: a split, or any batches that can be iterated more than once."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

import torch
from torch import Tensor, nn

from verydeep.analysis._blocks import InstrumentedModel
from verydeep.analysis._replay import batch_size
from verydeep.data import Batches, Split
from verydeep.errors import UserError

Data = Split | Iterable[tuple[Tensor, Tensor]]
"""A `Split` (`Split(x, y)` of your own tensors), or batches `(x, y)`: a `DataLoader`, a list."""

Progress = Callable[[float], None]
"""Called with the fraction of the work that is done, from 0 to 1."""

NO_SAMPLES = "the data has no samples"


@dataclass(frozen=True)
class ModelAndData:
    """An instrumented model and the data it is analysed on.

    Attributes:
        model: The model.
        data: The data.
        batch_size: Samples per batch of a split; other data has batches of its own.
    """

    model: InstrumentedModel
    data: Data
    batch_size: int

    @classmethod
    def of(cls, model: nn.Module, data: Data) -> "ModelAndData":
        """Instrument a model, after checking that it takes the data."""
        x = first_samples(data, 2).to(device_of(model))
        instrumented = InstrumentedModel(model, x)
        with torch.no_grad():
            return cls(instrumented, data, batch_size(instrumented, x))

    @property
    def device(self) -> torch.device:
        """Where the model's parameters are."""
        return device_of(self.model.model)

    def batches(self, progress: Progress | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """All samples once, on the model's device."""
        return iterate(self.data, self.batch_size, self.device, progress)

    def subset(self, samples: int, seed: int = 0) -> "ModelAndData":
        """The same model with `some_samples` of its data."""
        return replace(self, data=some_samples(self.data, samples, seed))


def some_samples(data: Data, samples: int, seed: int = 0) -> Data:
    """At most `samples` samples: random ones of a split, in their order; of other data, the first."""
    if samples < 1:
        raise UserError(f"samples must be at least 1, got {samples}")
    if not isinstance(data, Split):
        return list(_first_batches(data, samples))
    if samples >= len(data):
        return data
    rows = torch.randperm(len(data), generator=torch.Generator().manual_seed(seed))[:samples].sort().values
    rows = rows.to(data.x.device)
    return replace(data, x=data.x.index_select(0, rows), y=data.y.index_select(0, rows))


def iterate(
    data: Data, size: int, device: torch.device, progress: Progress | None = None
) -> Iterator[tuple[Tensor, Tensor]]:
    """All batches once, in order; `size` is the batch size of a split, other data has its own."""
    seen, total = 0, _length(data)
    for x, y in _batches(data, size):
        yield x.to(device), y.to(device)
        seen += len(y)
        if progress is not None and total:
            progress(min(seen / total, 1.0))


def subrange(progress: Progress | None, first: float, end: float) -> Progress | None:
    """The progress of a part of the work that covers `first` to `end` of the whole."""
    return None if progress is None else lambda share: progress(first + (end - first) * share)


def device_of(model: nn.Module) -> torch.device:
    """Where a model's parameters are."""
    return next((p.device for p in model.parameters()), torch.device("cpu"))


def first_samples(data: Data, count: int) -> Tensor:
    """The first `count` samples, or fewer if the first batch has fewer."""
    if not isinstance(data, Split) and iter(data) is data:
        raise UserError("batches must be a list or a DataLoader, because an iterator can only be used once")
    x = next((x[:count] for x, _ in _batches(data, count)), None)
    if x is None or len(x) == 0:
        raise UserError(NO_SAMPLES)
    return x


def _batches(data: Data, size: int) -> Iterable[tuple[Tensor, Tensor]]:
    return Batches(data, size, seed=0, shuffle=False).epoch(0) if isinstance(data, Split) else data


def _length(data: Data) -> int:
    """The number of samples if it is known without iterating, else 0."""
    if isinstance(data, Split):
        return len(data)
    return len(data.dataset) if isinstance(data, torch.utils.data.DataLoader) else 0  # type: ignore[arg-type]


def _first_batches(batches: Iterable[tuple[Tensor, Tensor]], samples: int) -> Iterator[tuple[Tensor, Tensor]]:
    for x, y in islice(batches, samples):  # a batch has at least one sample
        yield x[:samples], y[:samples]
        samples -= len(y)
        if samples <= 0:
            return
