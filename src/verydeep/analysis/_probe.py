"""How much of the class the gates alone tell: a linear classifier that sees nothing else."""

import warnings

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_FOLDS = 3
_FREEDOM = 10.0  # shared by all gates, so that a thousand of them are not free to fit noise


class Reservoir:
    """A random sample of rows that come in batches: each is as likely as any other to be kept."""

    def __init__(self, size: int, seed: int = 0) -> None:
        self.size = size
        self.random = torch.Generator().manual_seed(seed)
        self.keys, self.rows, self.y = torch.empty(0), torch.empty(0, 0), torch.empty(0, dtype=torch.int64)

    def add(self, rows: Tensor, y: Tensor) -> None:
        """Offer a batch: every row draws a number, and the smallest stay."""
        rows = rows.cpu()
        keys = torch.cat([self.keys, torch.rand(len(rows), generator=self.random)])
        kept = keys.argsort()[: self.size]
        self.rows = torch.cat([self.rows.reshape(-1, rows.shape[1]).to(rows.dtype), rows])[kept]
        self.keys, self.y = keys[kept], torch.cat([self.y, y.cpu()])[kept]


def probe(reservoir: Reservoir) -> tuple[float, float, int]:
    """Accuracy of a logistic regression, cross-validated; that of the most frequent class; and how many samples.

    Classes with fewer samples than folds are left out; the accuracy is NaN where fewer than two remain.
    """
    x, y = reservoir.rows.float().numpy(), reservoir.y.numpy()
    counts = np.bincount(y)
    kept = counts[y] >= _FOLDS
    x, y = x[kept], y[kept]
    if len(np.unique(y)) < 2:
        return float("nan"), float("nan"), len(y)
    return _cross_validated(x, y), float(counts.max() / len(y)), len(y)


def _cross_validated(x: NDArray[np.float32], y: NDArray[np.int64]) -> float:
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]
    from sklearn.model_selection import StratifiedKFold  # type: ignore[import-untyped]
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # comes with scikit-learn

    right = 0
    for learn, test in StratifiedKFold(_FOLDS, shuffle=True, random_state=0).split(x, y):
        mean, deviation = x[learn].mean(0), x[learn].std(0) + 1e-12
        known, new = (x[learn] - mean) / deviation, (x[test] - mean) / deviation
        # a hundred steps are near enough for a probe, and threads that wait for each other make them slow
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            classifier = LogisticRegression(C=_FREEDOM / x.shape[1], max_iter=100, tol=1e-3).fit(known, y[learn])
        right += int((classifier.predict(new) == y[test]).sum())
    return right / len(y)
