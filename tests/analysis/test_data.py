"""What an analysis accepts as data, and what it says about anything else."""

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from verydeep import analysis
from verydeep.analysis import lesion_study
from verydeep.data import Dataset, Split
from verydeep.errors import UserError

from ._models import mlp, shaken, split

EVERY: dict[str, Callable[[nn.Module, Any], Any]] = {
    "evaluate_model": analysis.evaluate_model,
    "gate_statistics": analysis.gate_statistics,
    "class_routing": analysis.class_routing,
    "lesion_study": analysis.lesion_study,
    "pair_lesions": analysis.pair_lesions,
    "greedy_lesions": analysis.greedy_lesions,
    "signal_flow": analysis.signal_flow,
}


def equal(a: object, b: object) -> bool:
    values = [(getattr(a, field.name), getattr(b, field.name)) for field in fields(a)]  # type: ignore[arg-type]
    return all(np.array_equal(np.array(x, dtype=object), np.array(y, dtype=object)) for x, y in values)


@pytest.mark.parametrize("name", EVERY)
def test_a_pair_a_split_and_one_batch_give_the_same_result(name: str) -> None:
    model, data = shaken(mlp), split()
    expected = EVERY[name](model, data)
    x, y = data.x.double().numpy(), data.y.int().numpy()  # float64 is NumPy's default, float32 the model's type
    for given in ((data.x, data.y), [data.x, data.y], (x, y), [(data.x, data.y)], [[x, y]]):
        assert equal(EVERY[name](model, given), expected)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (None, "a split such as dataset.test, or batches such as a DataLoader; got NoneType"),
        ("digits", "got str"),
        (torch.ones(60, 1, 6, 6), r"got Tensor of shape \(60, 1, 6, 6\)"),
        (Dataset("flowers", split(), None, split(), ("a", "b", "c")), "whole dataset 'flowers'; give one of its spl"),
        ((torch.ones(60, 1, 6, 6), torch.ones(59)), r"x has shape \(60, 1, 6, 6\) and y \(59,\); expected samples"),
        ([(torch.ones(2, 1, 6, 6),) * 3], r"batch 0 of the data: expected a pair \(x, y\).*got 3 values"),
        ([{"x": 1}], "batch 0 of the data: expected a pair.*got dict"),
        (TensorDataset(torch.ones(4, 1, 6, 6), torch.zeros(4).long()), "such as a DataLoader; got TensorDa"),
        ([(torch.ones(1, 6, 6), torch.tensor(0))], "single samples need a DataLoader"),
        ((np.array([["a"]]), np.array([0])), "data: x: expected numbers, got an array of <U1"),
    ],
)
def test_anything_else_gets_one_line(name: str, wrong: object, message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        EVERY[name](mlp(), wrong)
    assert "\n" not in str(error.value)


def test_a_double_model_takes_numpy_arrays() -> None:
    data = split()
    pair = data.x.double().numpy(), data.y.numpy()
    assert analysis.evaluate_model(shaken(mlp).double(), pair).loss > 0


def test_some_samples_of_a_pair_are_a_split_and_of_a_loader_the_first_batches() -> None:
    data = split()
    some = analysis.some_samples((data.x.numpy(), data.y.numpy()), 10)
    assert isinstance(some, Split)
    assert len(some) == 10
    (x, y), _ = analysis.some_samples(DataLoader(TensorDataset(data.x, data.y), 8), 10)  # type: ignore[misc]
    assert torch.equal(x, data.x[:8])
    assert torch.equal(y, data.y[:8])


class Stream(IterableDataset[tuple[torch.Tensor, torch.Tensor]]):
    def __init__(self, data: Split) -> None:
        self.data = data

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        yield from zip(self.data.x, self.data.y, strict=True)


def test_the_progress_of_batches_is_their_number_and_a_stream_has_none() -> None:
    model, data = shaken(mlp), split()
    done: list[float] = []
    batches = [(data.x[n : n + 4], data.y[n : n + 4]) for n in range(0, len(data), 4)]
    expected = lesion_study(model, batches, progress=done.append)
    assert done == [(number + 1) / len(batches) for number in range(len(batches))]
    streamed = lesion_study(model, DataLoader(Stream(data), 4), progress=done.append)
    assert streamed.baseline == expected.baseline
    assert len(done) == len(batches)
