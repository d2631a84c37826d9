"""Intervals of metrics by the bootstrap: samples are drawn again with replacement, as weights that count the draws.

Metrics of many draws are computed at once from the weights `(draw, sample)`. With all weights 1 they are those of
scikit-learn, which a test checks.
"""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verydeep.objectives import draw_samples

Array = NDArray[np.float64]
Draws = dict[str, Array]  # by metric, (draw,) or (draw, column)

_DRAWS, _FEWEST = 1000, 100
_MOST = 20_000_000  # weights in all, before fewer draws are made
_MOST_RANKED = 10_000_000  # likewise of the metrics that depend on the order of samples, times their columns
_MOST_SAMPLES = 500_000  # with more, the interval is narrower than anybody reads
BINS = 10


def intervals(
    samples: int, columns: int, metrics: Callable[[Array], Draws], ranked: Callable[[Array], Draws] | None = None
) -> dict[str, tuple[Array, Array]]:
    """The 95 % interval of each metric: its 2.5th and 97.5th percentiles over 1,000 draws, or fewer if that is slow.

    Args:
        samples: The number of samples.
        columns: For how many classes or labels the ranked metrics are computed.
        metrics: Computes metrics from weights, `(draw, sample)`.
        ranked: Likewise for metrics that depend on the order of samples, which take longer.
    """
    if not 1 < samples <= _MOST_SAMPLES:
        return {}
    parts = [_concatenate(map(metrics, _weights(samples, _count(_MOST // samples))))]
    if ranked is not None and samples * columns * _FEWEST <= 5 * _MOST_RANKED:
        count = _count(_MOST_RANKED // (samples * columns))
        parts.append(_concatenate(map(ranked, _weights(samples, count))))
    return {name: _percentiles(values) for part in parts for name, values in part.items()}


def _count(affordable: int) -> int:
    return min(_DRAWS, max(_FEWEST, affordable))


def _weights(samples: int, draws: int) -> Iterator[Array]:
    """How often each sample is drawn, in chunks `(draw, sample)`; always the same."""
    for _rows, counts in draw_samples(samples, draws, np.random.default_rng(0)):
        yield counts.astype(np.float64)


def _concatenate(parts: Iterator[Draws]) -> Draws:
    chunks = list(parts)
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}


def _percentiles(values: Array) -> tuple[Array, Array]:
    """Draws for which a metric is not defined, such as ROC-AUC of a single class, do not count."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # defined for no draw: NaN
        low, high = np.nanpercentile(values, (2.5, 97.5), axis=0)
    return low, high


def of_classes(y: NDArray[Any], answers: NDArray[Any], probabilities: Array) -> Callable[[Array], Draws]:
    """Accuracy, balanced accuracy, F1, log loss, its reduction, and calibration of classes."""
    classes = probabilities.shape[1]
    true, predicted = np.eye(classes)[y], np.eye(classes)[answers]
    surprise = -np.log(np.clip(probabilities[np.arange(len(y)), y], np.finfo(float).eps, 1))
    guess = true.mean(0)
    blind = -np.log(guess[y])
    confidence, right = confidence_of(y, answers, probabilities)
    calibrate = _calibration(confidence[:, None], right[:, None])

    def metrics(weights: Array) -> Draws:
        total = weights.sum(1)
        rows, columns, correct = weights @ true, weights @ predicted, weights @ (true * predicted)
        f1 = _ratio(2 * correct, rows + columns)
        means = weights @ np.stack([surprise, blind], 1)
        return {
            "accuracy": correct.sum(1) / total,
            "balanced_accuracy": _mean(_ratio(correct, rows)),
            "f1": np.nan_to_num(f1[:, 1]) if classes == 2 else _mean(f1),
            "log_loss": means[:, 0] / total,
            "skill": 1 - _ratio(means[:, 0], means[:, 1]),
            **calibrate(weights),
        }

    return metrics


def of_labels(y: Array, answers: Array, probabilities: Array) -> Callable[[Array], Draws]:
    """Accuracy, exact matches, F1, log loss, its reduction and calibration of labels, on average and of each."""
    labels = y.shape[1]
    p = np.clip(probabilities, np.finfo(float).eps, 1 - np.finfo(float).eps)
    surprise = -(y * np.log(p) + (1 - y) * np.log(1 - p))
    guess = np.clip(y.mean(0), np.finfo(float).eps, 1 - np.finfo(float).eps)
    blind = -(y * np.log(guess) + (1 - y) * np.log(1 - guess))
    right, exact = (answers == y).astype(float), (answers == y).all(1).astype(float)
    calibrate = _calibration(probabilities, y)

    def metrics(weights: Array) -> Draws:
        total = weights.sum(1, keepdims=True)
        correct, losses, blindly = (weights @ values / total for values in (right, surprise, blind))
        f1 = np.nan_to_num(_ratio(2 * (weights @ (y * answers)), weights @ (y + answers)))
        return {
            "accuracy": correct.mean(1),
            "exact_match": (weights @ exact) / total[:, 0],
            "f1": f1.mean(1),
            "log_loss": losses.mean(1),
            "skill": 1 - _ratio(losses.sum(1), blindly.sum(1)),
            "accuracy of each": correct,
            "f1 of each": f1,
            "log_loss of each": losses,
            **calibrate(weights),
        }

    assert labels == probabilities.shape[1]
    return metrics


def of_numbers(y: Array, predictions: Array) -> Callable[[Array], Draws]:
    """RMSE, MAE and R2 of numbers, on average and of each target."""
    difference, centred = predictions - y, y - y.mean(0)

    def metrics(weights: Array) -> Draws:
        total = weights.sum(1, keepdims=True)
        squared = weights @ difference**2
        variation = weights @ centred**2 - (weights @ centred) ** 2 / total
        each = {
            "rmse": np.sqrt(squared / total),
            "mae": weights @ np.abs(difference) / total,
            "r2": 1 - _ratio(squared, variation),
        }
        mean = {name: _mean(values) for name, values in each.items()}
        return mean | {f"{name} of each": values for name, values in each.items()} | {"skill": mean["r2"]}

    return metrics


def of_ranking(y: Array, probabilities: Array) -> Callable[[Array], Draws]:
    """ROC-AUC and average precision, on average and of each column.

    Args:
        y: Which samples are positive, 0 or 1, `(sample, column)`.
        probabilities: The probability of being positive, likewise.
    """
    columns = [(y[:, number] > 0, _Order(probabilities[:, number])) for number in range(y.shape[1])]

    def metrics(weights: Array) -> Draws:
        both = [order.roc_auc_and_precision(positive, weights) for positive, order in columns]
        each = {"roc_auc": np.stack([a for a, _ in both], 1), "average_precision": np.stack([p for _, p in both], 1)}
        return {name: _mean(values) for name, values in each.items()} | {
            f"{name} of each": values for name, values in each.items()
        }

    return metrics


class _Order:
    """The order of samples by a score, lowest first, and where equal scores begin and end."""

    def __init__(self, scores: Array) -> None:
        self.order = np.argsort(scores, kind="stable")
        ordered = scores[self.order]
        self.first = np.searchsorted(ordered, ordered, "left")
        self.end = np.searchsorted(ordered, ordered, "right")

    def roc_auc_and_precision(self, positive: NDArray[np.bool_], weights: Array) -> tuple[Array, Array]:
        """Both of every draw, `(draw,)`."""
        chosen = positive[self.order]
        weights = weights[:, self.order]
        inside = weights * chosen
        outside = weights - inside
        below = np.cumsum(outside, 1)
        below = np.concatenate([np.zeros((len(weights), 1)), below], 1)
        hits = np.concatenate([np.zeros((len(weights), 1)), np.cumsum(inside, 1)], 1)
        positives, negatives = hits[:, -1], below[:, -1]
        lower = (below[:, self.first[chosen]] + below[:, self.end[chosen]]) / 2  # equal scores count half
        auc = _ratio((inside[:, chosen] * lower).sum(1), positives * negatives)
        above = positives[:, None] - hits[:, self.first[chosen]]  # positives of at least this score
        wrong = negatives[:, None] - below[:, self.first[chosen]]
        precision = (inside[:, chosen] * np.nan_to_num(_ratio(above, above + wrong))).sum(1)
        return auc, np.nan_to_num(_ratio(precision, positives))


def confidence_of(y: NDArray[Any], answers: NDArray[Any], probabilities: Array) -> tuple[Array, Array]:
    """The probabilities whose calibration counts, and what happened: of the second of two classes, or of the answer."""
    if probabilities.shape[1] == 2:
        return probabilities[:, 1], (y == 1).astype(float)
    return probabilities[np.arange(len(y)), answers], (y == answers).astype(float)


def bin_of(probabilities: Array) -> NDArray[np.int64]:
    """The tenth of each probability, as in scikit-learn's `calibration_curve`."""
    return np.searchsorted(np.linspace(0, 1, BINS + 1)[1:-1], probabilities).astype(np.int64)


def _calibration(probabilities: Array, happened: Array) -> Callable[[Array], Draws]:
    """The expected calibration error: the mean over bins of how far apart prediction and frequency are."""
    place = bin_of(probabilities)
    inside = (place[..., None] == np.arange(BINS)).astype(float)  # (sample, column, bin)
    count = inside.sum(1)
    gap = ((probabilities - happened)[..., None] * inside).sum(1)

    def metrics(weights: Array) -> Draws:
        return {"calibration_error": np.abs(weights @ gap).sum(1) / (weights @ count).sum(1)}

    return metrics


def _ratio(above: Array, below: Array) -> Array:
    """A quotient, NaN where it is not defined."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(below > 0, above / below, np.nan)


def _mean(values: Array) -> Array:
    """The mean over columns in which a metric is defined."""
    known = ~np.isnan(values)
    return _ratio(np.where(known, values, 0).sum(1), known.sum(1).astype(float))
