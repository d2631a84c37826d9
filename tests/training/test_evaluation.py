"""The metrics of an evaluation are scikit-learn's, and their intervals are those of the bootstrap."""

import json
import math

import numpy as np
import pytest
import torch
from sklearn import metrics as sklearn  # type: ignore[import-untyped]
from torch import nn

from verydeep.data import Split, Task
from verydeep.objectives import MultiLabel
from verydeep.training import evaluate_metrics
from verydeep.training.evaluation import _bootstrap as bootstrap

RANDOM = np.random.default_rng(0)
SAMPLES = 80


def split_of(outputs: np.ndarray, y: np.ndarray, task: Task | None = None) -> Split:
    """A split whose samples are the outputs themselves, for a network that returns its input."""
    return Split(torch.tensor(outputs, dtype=torch.float32), torch.tensor(y), task=task)


def classes(count: int) -> tuple[np.ndarray, np.ndarray]:
    y = RANDOM.integers(0, count, SAMPLES)
    logits = RANDOM.normal(size=(SAMPLES, count)).round(1) + np.eye(count)[y]  # rounded, so that some are equal
    return logits, y


def softmax(logits: np.ndarray) -> np.ndarray:
    exponentials = np.exp(logits)
    shares: np.ndarray = exponentials / exponentials.sum(1, keepdims=True)
    return shares


def drawn() -> tuple[np.ndarray, np.ndarray]:
    """Rows drawn with replacement, and the weights that count them."""
    rows = RANDOM.integers(0, SAMPLES, SAMPLES)
    return rows, np.bincount(rows, minlength=SAMPLES)[None].astype(float)


@pytest.mark.parametrize("count", [2, 5])
def test_weighted_metrics_of_classes_are_scikit_learns_of_the_drawn_rows(count: int) -> None:
    logits, y = classes(count)
    probabilities, answers = softmax(logits), logits.argmax(1)
    rows, weights = drawn()
    found = bootstrap.of_classes(y, answers, probabilities)(weights)
    average = "binary" if count == 2 else "macro"
    expected = {
        "accuracy": sklearn.accuracy_score(y[rows], answers[rows]),
        "balanced_accuracy": sklearn.balanced_accuracy_score(y[rows], answers[rows]),
        "f1": sklearn.f1_score(y[rows], answers[rows], average=average),
        "log_loss": sklearn.log_loss(y[rows], probabilities[rows], labels=range(count)),
    }
    assert {name: found[name][0] for name in expected} == pytest.approx(expected)


def test_weighted_ranking_metrics_are_scikit_learns_of_the_drawn_rows() -> None:
    y = (RANDOM.random((SAMPLES, 2)) < 0.3).astype(float)
    scores = (RANDOM.random((SAMPLES, 2)) + 0.4 * y).round(1)  # many are equal
    rows, weights = drawn()
    found = bootstrap.of_ranking(y, scores)(weights)
    for name, function in (("roc_auc", sklearn.roc_auc_score), ("average_precision", sklearn.average_precision_score)):
        expected = [function(y[rows, column], scores[rows, column]) for column in range(2)]
        assert found[f"{name} of each"][0] == pytest.approx(expected)
        assert found[name][0] == pytest.approx(np.mean(expected))


def test_weighted_metrics_of_labels_are_scikit_learns_of_the_drawn_rows() -> None:
    y = (RANDOM.random((SAMPLES, 3)) < 0.4).astype(float)
    probabilities = np.clip(0.5 * RANDOM.random((SAMPLES, 3)) + 0.4 * y, 0.01, 0.99)
    answers = (probabilities > 0.5).astype(float)
    rows, weights = drawn()
    found = bootstrap.of_labels(y, answers, probabilities)(weights)
    assert found["exact_match"][0] == pytest.approx(sklearn.accuracy_score(y[rows], answers[rows]))
    assert found["f1"][0] == pytest.approx(sklearn.f1_score(y[rows], answers[rows], average="macro"))
    expected = [sklearn.log_loss(y[rows, column], probabilities[rows, column]) for column in range(3)]
    assert found["log_loss of each"][0] == pytest.approx(expected)


def test_weighted_metrics_of_numbers_are_scikit_learns_of_the_drawn_rows() -> None:
    y = 1000 + RANDOM.normal(size=(SAMPLES, 2))
    predictions = y + RANDOM.normal(size=(SAMPLES, 2))
    rows, weights = drawn()
    found = bootstrap.of_numbers(y, predictions)(weights)
    several = {"multioutput": "raw_values"}
    assert found["r2 of each"][0] == pytest.approx(sklearn.r2_score(y[rows], predictions[rows], **several))
    assert found["mae of each"][0] == pytest.approx(sklearn.mean_absolute_error(y[rows], predictions[rows], **several))
    assert found["rmse"][0] == pytest.approx(sklearn.root_mean_squared_error(y[rows], predictions[rows]))


def test_the_interval_covers_the_true_accuracy_about_as_often_as_it_says() -> None:
    covered: list[bool] = []
    for _ in range(200):
        correct = RANDOM.random(100) < 0.8
        probabilities = np.where(correct[:, None], [0.1, 0.9], [0.9, 0.1])
        ones = np.ones(100, dtype=int)
        ends = bootstrap.intervals(100, 1, bootstrap.of_classes(ones, probabilities.argmax(1), probabilities))
        low, high = ends["accuracy"]
        covered.append(bool(low <= 0.8 <= high))
    assert 0.88 <= np.mean(covered) <= 0.99


def test_two_classes_have_a_majority_and_a_positive_class() -> None:
    logits, y = classes(2)
    y[:70] = 0
    task = Task("classification", ("no", "yes"))
    found = evaluate_metrics(nn.Identity(), split_of(logits, y, task))
    assert found.positive == "yes"
    assert found.majority is not None
    assert found.majority[0] == "no"
    assert found.majority[1] == pytest.approx((y == 0).mean())
    probabilities = torch.tensor(logits, dtype=torch.float32).softmax(1).numpy()
    assert found.metrics["roc_auc"].value == pytest.approx(sklearn.roc_auc_score(y, probabilities[:, 1]))
    assert found.guess_loss == pytest.approx(sklearn.log_loss(y, np.full(SAMPLES, y.mean())))
    assert any("'no'" in sentence for sentence in found.remarks())
    saved = found.to_dict()
    assert saved["majority_class"] == "no"
    assert saved["positive_class"] == "yes"
    assert saved["accuracy"] == saved["metrics"]["accuracy"]["value"]
    json.dumps(saved, allow_nan=False)


def test_every_metric_lies_in_its_interval() -> None:
    logits, y = classes(4)
    found = evaluate_metrics(nn.Identity(), split_of(logits, y))
    for name, each in found.metrics.items():
        if name != "calibration_error":  # that of a drawn sample is larger on average
            assert each.low < each.value < each.high, name


def test_calibration_is_perfect_if_events_are_as_frequent_as_predicted() -> None:
    chance = np.repeat([0.25, 0.75], 400)
    y = np.concatenate([np.arange(400) % 4 == 0, np.arange(400) % 4 != 0]).astype(int)
    logits = np.stack([np.zeros(800), np.log(chance / (1 - chance))], 1)
    found = evaluate_metrics(nn.Identity(), split_of(logits, y))
    assert found.metrics["calibration_error"].value == pytest.approx(0, abs=1e-6)
    assert found.calibration is not None
    assert found.calibration.counts.tolist() == [400, 400]
    assert found.calibration.observed == pytest.approx([0.25, 0.75])
    wrong = evaluate_metrics(nn.Identity(), split_of(10 * logits, y))
    assert wrong.metrics["calibration_error"].value == pytest.approx(0.25, abs=1e-3)


def test_a_single_class_has_no_roc_auc_and_no_interval_of_it() -> None:
    logits, y = classes(2)
    found = evaluate_metrics(nn.Identity(), split_of(logits, np.zeros_like(y)))
    assert math.isnan(found.metrics["roc_auc"].value)
    assert found.to_dict()["metrics"]["roc_auc"] == {"value": None, "low": None, "high": None}
    assert found.text("roc_auc") == "undefined"


def test_a_regression_is_measured_in_original_units() -> None:
    task = Task("regression", ("price", "area"), mean=(200.0, 10.0), deviation=(50.0, 2.0))
    y = RANDOM.normal(size=(SAMPLES, 2)).astype(np.float32)
    outputs = (y + 0.5 * RANDOM.normal(size=y.shape)).astype(np.float32)
    found = evaluate_metrics(nn.Identity(), split_of(outputs, y, task))
    true, predicted = 200 + 50 * y[:, 0].astype(float), 200 + 50 * outputs[:, 0].astype(float)
    expected = sklearn.root_mean_squared_error(true, predicted)
    assert found.each["price"]["rmse"].value == pytest.approx(expected)
    assert found.each["price"]["rmse"].low < expected < found.each["price"]["rmse"].high
    assert found.metrics["r2"].value == pytest.approx(sklearn.r2_score(y, outputs))
    assert found.has_learned
    assert set(found.to_dict()["targets"]) == {"price", "area"}


def test_labels_are_measured_on_average_and_one_by_one() -> None:
    task = Task("multilabel", ("red", "green"))
    y = (RANDOM.random((SAMPLES, 2)) < 0.4).astype(np.float32)
    outputs = 2 * y - 1 + RANDOM.normal(size=y.shape)
    found = evaluate_metrics(nn.Identity(), split_of(outputs, y, task))
    expected = sklearn.roc_auc_score(y[:, 0], outputs[:, 0].astype(np.float32))
    assert found.each["red"]["roc_auc"].value == pytest.approx(expected)
    mean = np.mean([label["roc_auc"].value for label in found.each.values()])
    assert found.metrics["roc_auc"].value == pytest.approx(mean)
    exact = ((outputs > 0) == y).all(1).mean()
    assert found.metrics["exact_match"].value == pytest.approx(exact)
    given = evaluate_metrics(nn.Identity(), split_of(outputs, y), objective=MultiLabel(), task=task)
    assert given.to_dict() == found.to_dict()


@pytest.mark.parametrize("kind", ["noise", "balanced", "useful"])
def test_learning_is_judged_by_more_than_accuracy(kind: str) -> None:
    """A rare class: noise has learned nothing; a balanced network is below the majority, but ranks samples well."""
    random = np.random.default_rng(1)
    y = (np.arange(1000) % 50 == 0).astype(int)
    signal = random.normal(size=1000) + (0 if kind == "noise" else 2.5 * y)
    shift = {"noise": -4.0, "balanced": -1.25, "useful": -5.5}[kind]
    steep = {"noise": 0.5, "balanced": 2.5, "useful": 1.5}[kind]
    found = evaluate_metrics(nn.Identity(), split_of(np.stack([0 * signal, steep * signal + shift], 1), y))
    assert found.metrics["accuracy"].value < 0.99
    assert found.has_learned == (kind != "noise")


def test_labels_that_all_or_no_samples_have_are_left_out_of_the_mean() -> None:
    task = Task("multilabel", ("always", "never", "sometimes"))
    y = np.stack([np.ones(SAMPLES), np.zeros(SAMPLES), np.arange(SAMPLES) % 2], 1).astype(np.float32)
    outputs = RANDOM.normal(size=y.shape) + y
    found = evaluate_metrics(nn.Identity(), split_of(outputs, y, task))
    assert math.isnan(found.each["always"]["roc_auc"].value)
    assert found.metrics["roc_auc"].value == found.each["sometimes"]["roc_auc"].value
    assert found.guess_loss == pytest.approx(math.log(2) / 3)
    single = evaluate_metrics(nn.Identity(), split_of(outputs[:, 2:], y[:, 2:], Task("multilabel", ("sometimes",))))
    assert single.metrics["roc_auc"].value == found.metrics["roc_auc"].value


@pytest.mark.parametrize("kind", ["classification", "multilabel", "regression"])
def test_outputs_that_are_not_numbers_have_no_metrics(kind: str) -> None:
    numbers = {"mean": (0.0, 0.0), "deviation": (1.0, 1.0)} if kind == "regression" else {}
    task = Task(kind, ("a", "b"), **numbers)  # type: ignore[arg-type]
    y = np.arange(10) % 2 if kind == "classification" else np.eye(2, dtype=np.float32)[np.arange(10) % 2]
    found = evaluate_metrics(nn.Identity(), split_of(np.full((10, 2), math.nan), y, task))
    assert not found.has_learned
    assert math.isnan(found.metrics["r2" if kind == "regression" else "log_loss"].value)
    json.dumps(found.to_dict(), allow_nan=False)
