"""Numbers and metrics as people write them."""

import math

MEASURES = {"accuracy": "accuracy", "token_accuracy": "token accuracy", "r2": "R²"}
_LARGE = 1000  # R² of a network that diverges can have any number of digits
LOWER_IS_BETTER = frozenset({"loss", "log_loss", "rmse", "mae"})


def plural(count: int, noun: str) -> str:
    """Count things: 1 epoch, 2 epochs."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def score(measure: str, value: float, digits: int = 2) -> str:
    """The value of a score alone: 97.50% for an accuracy, 0.4512 for R² and others.

    Args:
        measure: What the score is called, such as `accuracy` or `r2`.
        value: The score.
        digits: Digits of a percentage after the point; other scores have two more.
    """
    if "accuracy" in measure:
        return f"{value:.{digits}%}"
    return f"{value:.{digits + 2}f}" if abs(value) < _LARGE else f"{value:.{digits + 2}g}"


def named_score(measure: str, value: float, digits: int = 2) -> str:
    """A score with its name: accuracy 97.50%, R² 0.4512."""
    return f"{MEASURES.get(measure, measure.replace('_', ' '))} {score(measure, value, digits)}"


def higher_is_better(metric: str) -> bool:
    """Whether the highest value of a metric is the best, given its name, such as `valid_accuracy` or `train_loss`."""
    return measure_of(metric) not in LOWER_IS_BETTER


def measure_of(metric: str) -> str:
    """A metric without the name of the split: `accuracy` for `valid_accuracy`."""
    first, _, rest = metric.partition("_")
    return rest if first in ("train", "valid", "test") else metric


def error_name(measure: str) -> str:
    """What 1 minus a score is called: the error of an accuracy, or 1 − R²."""
    return "error" if "accuracy" in measure else f"1 − {MEASURES.get(measure, measure)}"


def loss_name(measure: str) -> str:
    """What the loss is called beside a score: that of a regression may be squared, Huber or absolute."""
    return "mean cross-entropy" if "accuracy" in measure else "mean loss"


METRIC_NAMES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "exact_match": "all labels correct",
    "f1": "F1",
    "roc_auc": "ROC-AUC",
    "average_precision": "average precision",
    "log_loss": "log loss",
    "calibration_error": "expected calibration error",
    "rmse": "RMSE",
    "mae": "MAE",
    "r2": "R²",
}


def metric_value(name: str, value: float) -> str:
    """A metric alone: a percentage if it is a fraction of samples; numbers of any size for errors in units."""
    if math.isnan(value):
        return "undefined"
    if name in ("rmse", "mae"):
        return f"{value:.4g}"
    return score("accuracy" if name == "exact_match" else name, value)


def is_number(text: str) -> bool:
    """Whether a text is a number as Python reads it."""
    try:
        float(text)
    except ValueError:
        return False
    return True
