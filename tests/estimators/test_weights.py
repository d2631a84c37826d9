"""Weights of samples and classes. Training is random, so what weights mean is tested on averages over seeds."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification  # type: ignore[import-untyped]
from sklearn.metrics import balanced_accuracy_score  # type: ignore[import-untyped]

from verydeep.sklearn import HighwayClassifier, HighwayRegressor

SEEDS = range(3)
SETTINGS: dict[str, Any] = {"depth": 3, "width": 8, "epochs": 40, "batch_size": 8, "optimiser": "adam", "lr": 0.02}
FULL: dict[str, Any] = {**SETTINGS, "validation_fraction": 0, "metric": "loss"}
# Four groups of six samples that only their group distinguishes; two of the six have the target 1, with weight 4.
X = np.repeat(np.eye(4), 6, axis=0)
Y = np.tile([0, 0, 0, 0, 1, 1], 4)
WEIGHT = np.tile([1, 1, 1, 1, 4, 4], 4)


def mean_answers(kind: type, x: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """The mean prediction for each group over several seeds."""
    answers = []
    for seed in SEEDS:
        model = kind(**FULL, random_state=seed).fit(x, y, sample_weight=weight)
        answers.append(model.predict(np.eye(4)) if kind is HighwayRegressor else model.predict_proba(np.eye(4))[:, 1])
    return np.asarray(np.mean(answers, axis=0))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [HighwayClassifier, HighwayRegressor])
def test_a_weight_counts_like_repetition(kind: type) -> None:
    repeated = mean_answers(kind, X.repeat(WEIGHT, axis=0), Y.repeat(WEIGHT), None)
    weighted = mean_answers(kind, X, Y, WEIGHT)
    unweighted = mean_answers(kind, X, Y, None)
    np.testing.assert_allclose(repeated, 8 / 12, atol=0.05)
    np.testing.assert_allclose(weighted, 8 / 12, atol=0.05)
    np.testing.assert_allclose(unweighted, 2 / 6, atol=0.05)


def test_a_weight_of_zero_is_the_same_as_leaving_the_sample_out() -> None:
    keep = np.arange(len(Y)) % 6 != 2
    weighted = HighwayRegressor(**SETTINGS, random_state=0).fit(X, Y, sample_weight=keep)
    without = HighwayRegressor(**SETTINGS, random_state=0).fit(X[keep], Y[keep], sample_weight=np.ones(keep.sum()))
    assert np.array_equal(weighted.predict(X), without.predict(X))


def test_the_scale_of_weights_does_not_matter() -> None:
    one, thousand = (HighwayClassifier(**FULL, random_state=0).fit(X, Y, WEIGHT * scale) for scale in (1, 1000))
    np.testing.assert_allclose(one.predict_proba(X), thousand.predict_proba(X), atol=1e-4)


def test_validation_is_weighted_too() -> None:
    settings: dict[str, Any] = {**SETTINGS, "epochs": 3, "validation_fraction": 0.5, "random_state": 0}
    plain = HighwayRegressor(**settings).fit(X, Y, np.ones(len(Y)))
    weighted = HighwayRegressor(**settings).fit(X, Y, np.where(Y == 1, 1e-6, 1.0))
    assert plain.validation_loss_curve_ is not None
    assert weighted.validation_loss_curve_ is not None
    assert weighted.validation_loss_curve_[0] < plain.validation_loss_curve_[0]


def test_balancing_helps_the_rare_class() -> None:
    x, y = make_classification(600, 5, n_informative=3, weights=[0.95], class_sep=0.6, random_state=0)
    settings: dict[str, Any] = {"depth": 3, "width": 8, "epochs": 20, "batch_size": 32, "lr": 0.05, "random_state": 0}
    scores = []
    for weight in (None, "balanced"):
        model = HighwayClassifier(**settings, class_weight=weight).fit(x[:400], y[:400])
        scores.append(balanced_accuracy_score(y[400:], model.predict(x[400:])))
    assert scores[1] > scores[0] + 0.1


def test_a_metric_can_be_selected_by_with_weights() -> None:
    model = HighwayClassifier(**SETTINGS, metric="balanced_accuracy", class_weight="balanced", random_state=0)
    assert model.fit(X, Y).n_iter_ == SETTINGS["epochs"]


def test_class_weights_multiply_sample_weights() -> None:
    both = HighwayClassifier(**FULL, class_weight={0: 3, 1: 1}, random_state=0).fit(X, Y, WEIGHT)
    product = HighwayClassifier(**FULL, random_state=0).fit(X, Y, WEIGHT * np.where(Y == 0, 3, 1))
    assert np.array_equal(both.predict_proba(X), product.predict_proba(X))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(3), "sample_weight.shape == \\(3,\\), expected \\(24,\\)"),
        (-np.ones(24), "Negative values"),
        (np.zeros(24), "All sample weights are zero"),
        (np.ones((24, 2)), "1D"),
        (Y, "only one class, .*1"),
    ],
)
def test_weights_that_make_no_sense_are_refused(weight: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        HighwayClassifier(**SETTINGS).fit(X, Y, weight)
