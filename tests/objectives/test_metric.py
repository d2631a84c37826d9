"""Metrics are scikit-learn's, of the right predictions, and defined or NaN."""

import math

import numpy as np
import pytest
import torch
from sklearn import metrics  # type: ignore[import-untyped]

from verydeep.data import Task
from verydeep.errors import UserError
from verydeep.objectives import Classification, Metric, MultiLabel, Regression, find_metric, metric_names

RANDOM = torch.Generator().manual_seed(0)
TWO, MANY = Task("classification", ("no", "yes")), Task("classification", tuple("abcd"))
LABELS, PRICE = Task("multilabel", ("red", "big")), Task("regression", ("price",), (100.0,), (20.0,))


def test_two_classes() -> None:
    logits, y = torch.randn(60, 2, generator=RANDOM), torch.randint(0, 2, (60,), generator=RANDOM)
    chance, answers, truth = logits.softmax(1)[:, 1].numpy(), logits.argmax(1).numpy(), y.numpy()
    expected = {
        "balanced_accuracy": metrics.balanced_accuracy_score(truth, answers),
        "f1": metrics.f1_score(truth, answers),
        "roc_auc": metrics.roc_auc_score(truth, chance),
        "average_precision": metrics.average_precision_score(truth, chance),
        "log_loss": float(torch.nn.functional.cross_entropy(logits.double(), y)),
    }
    assert set(expected) == set(metric_names("classification"))
    for name, value in expected.items():
        assert find_metric(name, TWO)(logits, y, Classification(), TWO) == pytest.approx(value, abs=1e-6), name


def test_several_classes() -> None:
    logits, y = torch.randn(80, 4, generator=RANDOM), torch.randint(0, 4, (80,), generator=RANDOM)
    found = find_metric("roc_auc", MANY)(logits, y, Classification(), MANY)
    chances = logits.double().softmax(1).numpy()
    assert found == pytest.approx(metrics.roc_auc_score(y.numpy(), chances, multi_class="ovr"), abs=1e-6)
    found = find_metric("f1", MANY)(logits, y, Classification(), MANY)
    assert found == pytest.approx(metrics.f1_score(y.numpy(), logits.argmax(1).numpy(), average="macro"))


def test_labels_and_numbers() -> None:
    logits, y = torch.randn(50, 2, generator=RANDOM), (torch.rand(50, 2, generator=RANDOM) < 0.4).float()
    found = find_metric("average_precision", LABELS)(logits, y, MultiLabel(), LABELS)
    assert found == pytest.approx(metrics.average_precision_score(y.numpy(), logits.sigmoid().numpy()), abs=1e-6)
    outputs, y = torch.randn(50, 1, generator=RANDOM), torch.randn(50, 1, generator=RANDOM)
    found = find_metric("rmse", PRICE)(outputs, y, Regression(), PRICE)  # in the target's own units
    assert found == pytest.approx(20 * float((outputs - y).square().mean().sqrt()), rel=1e-5)


def test_what_is_not_defined_is_not_a_number() -> None:
    value = find_metric("roc_auc", TWO)(torch.zeros(5, 2), torch.zeros(5, dtype=torch.int64), Classification(), TWO)
    assert math.isnan(value)


def test_a_metric_of_ones_own_gets_targets_and_predictions() -> None:
    seen: list[np.ndarray] = []

    def largest_error(y: np.ndarray, predictions: np.ndarray) -> float:
        seen.extend((y, predictions))
        return float(np.abs(y - predictions).max())

    metric = Metric("largest_error", largest_error, higher_is_better=False)
    assert metric(torch.zeros(3, 1), torch.ones(3, 1), Regression(), PRICE) == pytest.approx(20)
    assert [each.shape for each in seen] == [(3,), (3,)]


def test_mistakes_are_explained() -> None:
    with pytest.raises(UserError, match="unknown metric for regression 'f1'"):
        find_metric("f1", PRICE)
    with pytest.raises(UserError, match="needs probabilities"):
        Metric("mine", lambda y, p: 0.0, of="probabilities")(torch.zeros(1, 1), torch.zeros(1, 1), Regression(), PRICE)
    with pytest.raises(UserError, match="name of its own"):
        Metric("loss", lambda y, p: 0.0)


@pytest.mark.parametrize("name", metric_names("multilabel"))
def test_a_single_label_has_every_metric(name: str) -> None:
    task = Task("multilabel", ("red",))
    logits, y = torch.tensor([[1.0], [-1.0], [2.0]]), torch.tensor([[1.0], [0.0], [1.0]])
    assert find_metric(name, task)(logits, y, MultiLabel(), task) == 1.0


def test_the_f1_of_several_classes_is_their_mean_even_if_only_two_occur() -> None:
    logits, y = torch.eye(4)[[0, 1, 1]], torch.tensor([0, 1, 0])
    assert find_metric("f1", MANY)(logits, y, Classification(), MANY) == pytest.approx(2 / 3)
