"""Apple's GPUs have no float64. Fake tensors stand in for theirs: they know types and devices, but hold no numbers."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from verydeep.float64 import as_float64, float64_device
from verydeep.objectives import (
    Classification,
    MaskedLanguageModel,
    MultiLabel,
    Objective,
    Regression,
    evaluate_batches,
)

MPS = torch.device("mps", 0)


class WithoutFloat64(TorchDispatchMode):
    """Refuses float64 on Apple's GPUs, as they do."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        for value in tree_leaves(result):
            if isinstance(value, Tensor) and value.device.type == "mps" and value.dtype == torch.float64:
                raise TypeError(f"{function} makes float64 on mps")
        return result


@pytest.fixture
def apple() -> Iterator[None]:
    with FakeTensorMode(), WithoutFloat64():  # type: ignore[no-untyped-call]
        yield


def test_the_stand_in_refuses_float64(apple: None) -> None:
    with pytest.raises(TypeError, match="float64 on mps"):
        torch.ones(2, device=MPS).double()


CASES: list[tuple[Objective, tuple[int, ...], torch.dtype, tuple[int, ...]]] = [
    (Classification(), (4, 3), torch.int64, (4,)),
    (Classification(loss="squared-hinge"), (4, 3), torch.int64, (4,)),
    (Regression(targets=2), (4, 2), torch.float32, (4, 2)),
    (MultiLabel(), (4, 3), torch.float32, (4, 3)),
    (MaskedLanguageModel(), (4, 5, 3), torch.int64, (4, 5)),
]


@pytest.mark.parametrize(("objective", "shape", "dtype", "targets"), CASES, ids=lambda case: type(case).__name__)
def test_objectives_add_up_on_the_cpu(
    objective: Objective, shape: tuple[int, ...], dtype: torch.dtype, targets: tuple[int, ...], apple: None
) -> None:
    outputs, y = torch.zeros(shape, device=MPS), torch.zeros(targets, dtype=dtype, device=MPS)
    objective.training_loss(outputs, y)
    objective.losses(outputs, y)
    for sums in (objective.totals(outputs, y), objective.errors(outputs, y)):
        assert (sums.device.type, sums.dtype) == ("cpu", torch.float64)


def test_the_evaluation_loop_adds_up_on_the_cpu(apple: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Classification, "check", lambda *_: None)  # it reads numbers
    batches = [(torch.zeros(4, 3), torch.zeros(4, dtype=torch.int64))] * 2
    totals = evaluate_batches(lambda x: x, batches, Classification(), device=MPS)
    assert (totals.values.device.type, totals.samples) == ("cpu", 8)


def test_other_devices_keep_their_sums() -> None:
    assert float64_device("cuda:1") == torch.device("cuda", 1)
    assert float64_device("mps") == torch.device("cpu")
    values = torch.ones(2, dtype=torch.float64)
    assert as_float64(values) is values
