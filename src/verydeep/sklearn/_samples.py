"""From what a user passes to an estimator to the tensors that a network takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.utils.validation import check_array, validate_data  # type: ignore[import-untyped]
from torch import Tensor

from verydeep.data import (
    ArrayPreparation,
    DataConfig,
    Table,
    TablePreparation,
    fit_arrays,
    fit_table,
    is_dataframe,
    table_of,
)
from verydeep.errors import UserError

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator  # type: ignore[import-untyped]

Samples = Table | Tensor
Preparation = ArrayPreparation | TablePreparation


def check_samples(estimator: BaseEstimator, X: Any, fitted: Preparation | None, least: int = 1) -> Samples:  # noqa: ANN401, N803
    """Raw samples: the columns of a DataFrame, or an array of numbers as float64.

    Args:
        estimator: The estimator, which remembers the number and the names of features, or compares them.
        X: What the user passed.
        fitted: The preparation that the samples are for; None if it is still to be fitted.
        least: The smallest number of samples that is accepted.
    """
    if is_dataframe(X) and not isinstance(fitted, ArrayPreparation):
        validate_data(estimator, X, skip_check_array=True, reset=fitted is None)
        if len(X) < least:
            raise ValueError(f"Found a DataFrame with {len(X)} sample(s) while a minimum of {least} is required.")
        return table_of(X)
    array = validate_data(estimator, X, dtype=np.float64, ensure_min_samples=least, reset=fitted is None)
    if isinstance(fitted, TablePreparation):
        names = getattr(estimator, "feature_names_in_", range(array.shape[1]))
        return Table(
            "X", {str(name): column for name, column in zip(names, array.T, strict=True)}, np.arange(len(array))
        )
    return torch.tensor(array)


def fit_samples(train: Samples, categorical: tuple[str, ...]) -> Preparation:
    """Fit the preparation of samples: tables as `verydeep train` prepares them, arrays standardised."""
    if isinstance(train, Tensor):
        if categorical:
            raise UserError("categorical names columns of a DataFrame, but X is an array")
        return fit_arrays(train, "standardise")
    for name in categorical:
        train.check_has(name, "categorical")
    return fit_table(train, DataConfig("X", categorical=categorical))


def prepare_samples(preparation: Preparation, samples: Samples) -> Tensor:
    """Samples as the network takes them, float32."""
    if isinstance(preparation, ArrayPreparation):
        assert isinstance(samples, Tensor)
        return preparation.whole(samples, "X")
    assert isinstance(samples, Table)
    return preparation(samples)


def check_weights(sample_weight: Any, count: int) -> np.ndarray | None:  # noqa: ANN401
    """Weights of samples, float64; at least one is positive.

    Args:
        sample_weight: What the user passed.
        count: The number of samples.
    """
    if sample_weight is None:
        return None
    weights: np.ndarray = check_array(
        sample_weight, dtype=np.float64, ensure_2d=False, input_name="sample_weight", copy=True
    )
    if weights.ndim == 0:
        weights = np.full(count, float(weights))
    if weights.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    if len(weights) != count:
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(count,)}")
    if (weights < 0).any():
        raise ValueError("Negative values in sample_weight; weights must be 0 or more")
    if not weights.any():
        raise ValueError("All sample weights are zero; at least one must be positive")
    return weights


def check_targets(y: Any, count: int, name: str) -> np.ndarray:  # noqa: ANN401
    """Targets as an array `(n,)` or `(n, targets)`, without missing or infinite values.

    Args:
        y: What the user passed.
        count: The number of samples.
        name: The estimator, for messages.
    """
    if y is None:
        raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None.")
    array: Any = check_array(
        y, accept_sparse="csr", ensure_2d=False, dtype=None, ensure_min_samples=0, input_name="y", estimator=name
    )
    targets: np.ndarray = array.toarray() if hasattr(array, "toarray") else array
    if targets.ndim == 0 or len(targets) != count:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {[count, targets.size]}")
    if targets.ndim > 2:
        raise ValueError(f"y must have one or two dimensions, got shape {targets.shape}")
    return targets
