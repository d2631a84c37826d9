"""Models of other kinds on the same data, so that people see whether a deep network is any use for it."""

from __future__ import annotations

import math
import time
import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from verydeep.data import Batches, Dataset, Split
from verydeep.depth._answer import OtherModel
from verydeep.depth._rule import bootstrap_means

Array = NDArray[np.float64]
_SECONDS = 1.2e-6  # that gradient boosting takes for a number in the training table and a class
_FASTER = 50  # times: how much faster a linear model is
_FEWEST_ROWS = 200  # if no more rows than these fit, a comparison would say nothing
_Z = 1.959964  # standard deviations on both sides of the mean that hold 95 % of a normal distribution
_WORTH_THREADS = 5000  # rows, below which threads mostly wait for each other


def other_models(dataset: Dataset, seed: int, seconds: float) -> tuple[OtherModel, ...]:
    """Fit a linear model and gradient boosting from scikit-learn, and test them once.

    Args:
        dataset: The data, with the same training samples that the recommended network has.
        seed: The seed of gradient boosting, and of the choice of rows if there are too many.
        seconds: About how long each may take on a large table; some of its rows are used if that is too little.
    """
    linear = "ridge regression" if dataset.task.kind == "regression" else "logistic regression"
    return (
        _compare(linear, _linear(dataset), dataset, seed, seconds * _FASTER),
        _compare("gradient boosting", _boosting(dataset, seed), dataset, seed, seconds),
    )


def _compare(name: str, model: Any, dataset: Dataset, seed: int, seconds: float) -> OtherModel:  # noqa: ANN401
    rows, every = _affordable_rows(dataset, seconds), len(dataset.train)
    if rows < min(every, _FEWEST_ROWS):
        return OtherModel(name, None, all_rows=every, note="left out: the samples are too large for it")
    x, y = _table(dataset.train, rows, seed)
    began = time.perf_counter()
    threads = 1 if rows < _WORTH_THREADS else None
    with warnings.catch_warnings(), threadpool_limits(threads):
        warnings.simplefilter("ignore")  # about convergence, and classes of a single row
        try:
            model.fit(x, y)
        except ValueError as error:
            return OtherModel(name, None, rows=rows, all_rows=every, note=f"left out: {str(error).splitlines()[0]}")
        seconds = time.perf_counter() - began
        tested, truth = _table(dataset.test, len(dataset.test), seed)
        predictions = model.predict(tested)
    value, low, high = score_with_interval(_contributions(dataset, predictions, truth))
    return OtherModel(name, value, low, high, rows, every, seconds)


def _linear(dataset: Dataset) -> Any:  # noqa: ANN401
    from sklearn.linear_model import (  # type: ignore[import-untyped]
        LogisticRegression,
        LogisticRegressionCV,
        RidgeCV,
    )
    from sklearn.multioutput import MultiOutputClassifier  # type: ignore[import-untyped]

    if dataset.task.kind == "regression":
        return RidgeCV(np.logspace(-3, 4, 15))
    small = len(dataset.train) * dataset.train.x[0].numel() <= 200_000
    one = LogisticRegressionCV(Cs=6, cv=3, max_iter=300, l1_ratios=(0,), use_legacy_attributes=False) if small else None
    one = one or LogisticRegression(max_iter=60)
    return MultiOutputClassifier(one) if dataset.task.kind == "multilabel" else one


def _boosting(dataset: Dataset, seed: int) -> Any:  # noqa: ANN401
    from sklearn.ensemble import (  # type: ignore[import-untyped]
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
    )
    from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor

    if dataset.task.kind == "regression":
        model = HistGradientBoostingRegressor(early_stopping=True, random_state=seed)
        return model if dataset.task.outputs == 1 else MultiOutputRegressor(model)
    model = HistGradientBoostingClassifier(early_stopping=len(dataset.train) >= 100, random_state=seed)
    return MultiOutputClassifier(model) if dataset.task.kind == "multilabel" else model


def _affordable_rows(dataset: Dataset, seconds: float) -> int:
    features, outputs = dataset.train.x[0].numel(), dataset.task.outputs
    return min(len(dataset.train), max(1, int(seconds / (_SECONDS * features * outputs))))


def _table(split: Split, rows: int, seed: int) -> tuple[Array, Array]:
    """Some rows as a table of numbers."""
    if rows < len(split):
        chosen = np.random.default_rng(seed).choice(len(split), rows, replace=False)
        index = torch.from_numpy(np.sort(chosen))
        split = Split(split.x[index], split.y[index], split.prepare, task=split.task)
    parts = [x.flatten(1).numpy() for x, _ in Batches(split, 1000, seed=0, shuffle=False).epoch(0)]
    y = split.y.numpy()
    return np.concatenate(parts), y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y


def _contributions(dataset: Dataset, predictions: Array, truth: Array) -> Array:
    """What each sample contributes to the accuracy, or R2, of which it is the mean."""
    if dataset.task.kind != "regression":
        right: Array = (predictions == truth).astype(float)
        return right if right.ndim == 1 else np.mean(right, 1)
    truth, predictions = truth.reshape(len(truth), -1), predictions.reshape(len(truth), -1)
    variance = ((truth - truth.mean(0)) ** 2).mean(0)
    explained: Array = (1 - (predictions - truth) ** 2 / np.where(variance > 0, variance, 1)).mean(1)
    return explained


def score_with_interval(contributions: Array) -> tuple[float, float, float]:
    """The mean over samples, and its 95 % interval.

    The interval of an accuracy is Wilson's, which is right for few errors, too; otherwise it is the range of the mean
    over 1,000 draws of samples.
    """
    mean, samples = float(contributions.mean()), len(contributions)
    if np.isin(contributions, (0.0, 1.0)).all():
        low, high = _wilson(mean, samples)
    else:
        low, high = np.percentile(bootstrap_means([contributions[:, None]])[:, 0], (2.5, 97.5))
    return mean, float(low), float(high)


def _wilson(share: float, samples: int) -> tuple[float, float]:
    middle = (share + _Z**2 / (2 * samples)) / (1 + _Z**2 / samples)
    half = _Z * math.sqrt(share * (1 - share) / samples + (_Z / (2 * samples)) ** 2) / (1 + _Z**2 / samples)
    return max(0.0, middle - half), min(1.0, middle + half)
