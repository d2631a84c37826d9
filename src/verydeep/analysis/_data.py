"""The data an analysis runs on: a split, a pair of arrays, or any batches that can be iterated more than once."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from verydeep.analysis.blocks._block import Block
from verydeep.analysis.blocks._blocks import InstrumentedModel
from verydeep.analysis.blocks._find_blocks import Blocks, resolve_blocks
from verydeep.analysis.lesions._replay import batch_size
from verydeep.data import Batches, Dataset, Split
from verydeep.errors import UserError
from verydeep.models import Network
from verydeep.objectives import (
    Inputs,
    MultiLabel,
    Objective,
    Regression,
    batch_length,
    first_of,
    move_inputs,
    objective_for,
)

Batched = Split | Iterable[Any]
Data = Batched | tuple[Any, Any]
"""One pair `(x, y)` of arrays or tensors, a split of a `Dataset`, or batches that the objective reads, such as pairs
`(x, y)` or dictionaries: a `DataLoader`, a list."""

Progress = Callable[[float], None]
"""Called with the fraction of the work that is done, from 0 to 1."""

NO_SAMPLES = "the data has no samples"
_EXPECTED = (
    "data must be a pair (x, y) of arrays or tensors, a split such as dataset.test, or batches such as a DataLoader"
)


@dataclass(frozen=True)
class ModelAndData:
    """An instrumented model and the data it is analysed on.

    Attributes:
        model: The model.
        data: The data.
        batch_size: Samples per batch of a split; other data has its own batches.
        objective: What is measured.
    """

    model: InstrumentedModel
    data: Batched
    batch_size: int
    objective: Objective
    blocks: tuple[Block, ...] = ()

    @classmethod
    def of(
        cls, model: nn.Module, data: Data, objective: Objective | None = None, blocks: Blocks = ()
    ) -> "ModelAndData":
        """Instrument a model, after checking that it takes the data.

        Args:
            model: The model.
            data: The data.
            objective: What is measured; by default, it follows from the data.
            blocks: What can be closed besides highway layers; None finds residual blocks.
        """
        if not isinstance(model, nn.Module):
            hint = "; a run has its network in run.model" if hasattr(model, "model") else ""
            raise UserError(f"model must be a torch module, got {type(model).__name__}{hint}")
        data = as_batched(data, model, objective)
        objective = find_objective(data, objective)
        x = move_inputs(first_samples(data, 2, objective), device_of(model), half_type(model))
        if isinstance(model, Network) and model.highway_depth:
            blocks = ()  # it has no other blocks
        found = resolve_blocks(model, x, blocks)
        instrumented = InstrumentedModel(model, x, found, objective)
        if not isinstance(data, Split):
            return cls(instrumented, data, 0, objective, found)
        with torch.no_grad():
            return cls(instrumented, data, batch_size(instrumented, x), objective, found)

    @property
    def device(self) -> torch.device:
        """Where the model's parameters are."""
        return device_of(self.model.model)

    def first(self, samples: int) -> Inputs:
        """The first samples, on the model's device."""
        x = first_samples(self.data, samples, self.objective)
        return move_inputs(x, self.device, half_type(self.model.model))  # type: ignore[no-any-return]

    def batches(self, progress: Progress | None = None) -> Iterator[tuple[Any, Tensor]]:
        """All samples once, on the model's device."""
        dtype = half_type(self.model.model)
        return iterate(self.data, self.batch_size, self.device, progress, objective=self.objective, dtype=dtype)

    def subset(self, samples: int, seed: int = 0) -> "ModelAndData":
        """The same model with `some_samples` of its data."""
        return replace(self, data=some_samples(self.data, samples, seed, self.objective))


def as_batched(data: Data, model: nn.Module | None = None, objective: Objective | None = None) -> Batched:
    """Turn a pair of arrays into a split, and refuse what cannot be data; batches are checked when they are used.

    Args:
        data: What the user gave.
        model: Its floating-point type is that of NumPy arrays of numbers; by default, torch's default type.
        objective: If its outputs are not those of one prediction per sample, it reads batches itself: a tensor or a
            dictionary is one batch, a list holds several.
    """
    if objective is not None and not isinstance(objective, Objective):
        got = f"the class {objective.__name__}" if isinstance(objective, type) else repr(objective)
        raise UserError(f"the objective must be an object such as Classification(); got {got}")
    if objective is not None and objective.dimensions != 2 and not isinstance(data, Split):
        return [data] if _is_array(data) or isinstance(data, Mapping | tuple) else _batches_of(data)
    if isinstance(data, Split):
        y = _targets(data.y, objective)
        return data if y is data.y else replace(data, y=y)
    if isinstance(data, Dataset):
        raise UserError(f"data is the whole dataset {data.name!r}; give one of its splits, such as dataset.test")
    if isinstance(data, tuple | list) and len(data) == 2 and all(_is_array(part) for part in data):
        parameter = None if model is None else next((p for p in model.parameters() if p.is_floating_point()), None)
        dtype = torch.get_default_dtype() if parameter is None else parameter.dtype
        return Split(*_pair(data, "data", dtype, objective))
    if isinstance(data, tuple) and len(data) == 2 and isinstance(data[0], Mapping) and _is_array(data[1]):
        return [data]
    return _batches_of(data)


def _batches_of(data: Data) -> Batched:
    if isinstance(data, str | bytes | Mapping) or _is_array(data) or not isinstance(data, Iterable):
        raise UserError(f"{_EXPECTED}; got {_describe(data)}")
    return data


def find_objective(data: Batched, objective: Objective | None = None) -> Objective:
    """The objective that was given, or that of the data's task; without one, fractions are those of a regression."""
    if objective is not None:
        return objective
    if isinstance(data, Split):
        return objective_for(data.task, data.y)
    return objective_for(None, next((y for _, y in _batches(data, 1, Objective())), None))


def _is_array(value: object) -> bool:
    return hasattr(value, "shape") and hasattr(value, "__array__")


def _targets(y: Tensor, objective: Objective | None) -> Tensor:
    """Numbers, one per sample, as the column that a regression needs; an objective of the user's gets what it gave."""
    ours = objective is None or type(objective) is Objective or isinstance(objective, Regression | MultiLabel)
    return y[:, None] if ours and y.dim() == 1 and y.is_floating_point() else y


def _pair(
    batch: Any,  # noqa: ANN401 - the user's
    what: str,
    dtype: torch.dtype,
    objective: Objective | None,
) -> tuple[Tensor, Tensor]:
    """Samples and their targets as tensors; `what` names them in errors."""
    if not (isinstance(batch, tuple | list) and len(batch) == 2 and all(_is_array(part) for part in batch)):
        got = f"{len(batch)} values" if isinstance(batch, tuple | list) and len(batch) != 2 else _describe(batch)
        raise UserError(f"{what}: expected a pair (x, y), samples and their targets; got {got}")
    x, y = (_tensor(part, f"{what}: {name}", dtype) for name, part in zip("xy", batch, strict=True))
    numbers = y.is_floating_point()
    if y.dim() not in ((1, 2) if numbers else (1,)) or x.dim() == 0 or len(x) != len(y):
        raise UserError(
            f"{what}: x has shape {tuple(x.shape)} and y {tuple(y.shape)}; expected samples along the first axis of x "
            "and one class number per sample in y" + (" (single samples need a DataLoader)" if y.dim() == 0 else "")
        )
    return x, _targets(y, objective) if numbers else y.long()


def _tensor(values: Any, what: str, dtype: torch.dtype) -> Tensor:  # noqa: ANN401 - the user's
    if isinstance(values, Tensor):
        return values
    array = np.asarray(values)
    if array.dtype.kind not in "buif":
        raise UserError(f"{what}: expected numbers, got an array of {array.dtype}")
    tensor = torch.from_numpy(np.require(array, requirements=("C", "W")))
    return tensor.to(dtype) if tensor.is_floating_point() else tensor


def _describe(value: object) -> str:
    kind = type(value).__name__
    return f"{kind} of shape {tuple(value.shape)}" if _is_array(value) else kind  # type: ignore[attr-defined]


def some_samples(data: Data, samples: int, seed: int = 0, objective: Objective | None = None) -> Batched:
    """At most `samples` samples: random ones of a split or of a pair, in their order; of other data, the first."""
    if samples < 1:
        raise UserError(f"samples must be at least 1, got {samples}")
    data = as_batched(data, objective=objective)
    if not isinstance(data, Split):
        return list(_first_batches(data, samples, objective))
    if samples >= len(data):
        return data
    rows = torch.randperm(len(data), generator=torch.Generator().manual_seed(seed))[:samples].sort().values
    rows = rows.to(data.x.device)
    return replace(data, x=data.x.index_select(0, rows), y=data.y.index_select(0, rows))


def iterate(
    data: Batched,
    size: int,
    device: torch.device,
    progress: Progress | None = None,
    *,
    objective: Objective | None = None,
    dtype: torch.dtype | None = None,
) -> Iterator[tuple[Any, Tensor]]:
    """All batches once, in order; `size` is the batch size of a split, other data has its own."""
    seen, samples = 0, _length(data)
    total = samples or (len(data) if isinstance(data, list | tuple) else 0)  # then batches are counted
    for x, y in _batches(data, size, objective):
        yield move_inputs(x, device, dtype), y.to(device)
        seen += len(y) if samples else 1
        if progress is not None and total:
            progress(min(seen / total, 1.0))


def subrange(progress: Progress | None, first: float, end: float) -> Progress | None:
    """The progress of a part of the work that covers `first` to `end` of the whole."""
    return None if progress is None else lambda share: progress(first + (end - first) * share)


def device_of(model: nn.Module) -> torch.device:
    """Where a model's parameters are."""
    return next((p.device for p in model.parameters()), torch.device("cpu"))


def half_type(model: nn.Module) -> torch.dtype | None:
    """The type of a model with half-precision parameters, which its inputs must have too; None for other models."""
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), None)
    return dtype if dtype in (torch.bfloat16, torch.float16) else None


def first_samples(data: Batched, count: int, objective: Objective | None = None) -> Any:  # noqa: ANN401
    """The first `count` samples, or fewer if the first batch has fewer."""
    if not isinstance(data, Split) and iter(data) is data:
        raise UserError("batches must be a list or a DataLoader, because an iterator can only be used once")
    x = next((first_of(x, count) for x, _ in _batches(data, count, objective)), None)
    if x is None or batch_length(x) == 0:
        raise UserError(NO_SAMPLES)
    return x


def sample_inputs(model: nn.Module, data: Data, objective: Objective | None = None, samples: int = 2) -> Inputs:
    """The first samples of some data as inputs of a model, on its device: an example for `find_blocks`."""
    batched = as_batched(data, model, objective)
    x = first_samples(batched, samples, find_objective(batched, objective))
    return move_inputs(x, device_of(model), half_type(model))  # type: ignore[no-any-return]


def _batches(data: Batched, size: int, objective: Objective | None = None) -> Iterator[tuple[Any, Tensor]]:
    if isinstance(data, Split):
        yield from Batches(data, size, seed=0, shuffle=False).epoch(0)
        return
    for number, batch in enumerate(data):
        yield _read(batch, f"batch {number} of the data", objective or Objective())


def _read(batch: Any, what: str, objective: Objective) -> tuple[Any, Tensor]:  # noqa: ANN401 - the user's
    """The inputs and targets of a batch, as tensors."""
    try:
        x, y = objective.read_batch(batch)
    except UserError as error:
        raise UserError(f"{what}: {error}") from None
    if objective.dimensions == 2 and (not isinstance(x, Mapping | tuple) or not _is_array(y)):
        return _pair((x, y), what, torch.get_default_dtype(), objective)
    y = torch.as_tensor(y)
    if isinstance(x, Mapping):  # the encodings of a tokeniser are not dictionaries
        x = {name: torch.as_tensor(value) if _is_array(value) else value for name, value in x.items()}
    if y.dim() == 0 or batch_length(x) != len(y):
        raise UserError(f"{what}: there are {batch_length(x)} samples, but targets of shape {tuple(y.shape)}")
    if objective.dimensions == 2:
        y = _targets(y, objective)
    return x, y if y.is_floating_point() else y.long()


def _length(data: Batched) -> int:
    """The number of samples if it is known without iterating, else 0."""
    if isinstance(data, Split):
        return len(data)
    dataset = data.dataset if isinstance(data, torch.utils.data.DataLoader) else None
    return len(dataset) if isinstance(dataset, Sized) else 0  # a stream has no length


def _first_batches(batches: Iterable[Any], samples: int, objective: Objective | None) -> Iterator[tuple[Any, Tensor]]:
    for x, y in islice(_batches(batches, samples, objective), samples):  # a batch has at least one sample
        yield first_of(x, samples), y[:samples]
        samples -= len(y)
        if samples <= 0:
            return
