"""How the gates differ between classes (Figure 3 of the paper), and how well they alone predict the class.

The samples of a multi-label task are grouped by label, those of a regression by ranges of the target.
"""

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from verydeep.analysis._data import Data, ModelAndData, Progress, as_batched, find_objective
from verydeep.analysis.activity._activity import Moments, Recorder, to_array
from verydeep.analysis.activity._activity_results import Array, ClassRouting, PerLayer
from verydeep.analysis.activity._routing_groups import Groups, find_groups
from verydeep.cpu import cpu_settings
from verydeep.data import Split
from verydeep.errors import UserError
from verydeep.objectives import Objective

_FOLDS = 3
_MOST_PROBED = 20  # labels or ranges that overlap; each needs a classifier of its own
_FREEDOM = 10.0  # shared by all gates, so that a thousand of them cannot fit noise


@cpu_settings()
def class_routing(
    model: nn.Module,
    data: Data,
    classes: Sequence[str] | None = None,
    probe_samples: int = 2000,
    progress: Progress | None = None,
    *,
    objective: Objective | None = None,
) -> ClassRouting:
    """Compare the mean gate activity of each class with that of all samples, in one pass.

    Classes without samples are left out. The samples of a multi-label task are grouped by the labels they have, those
    of a regression by the fifths of each target.

    Args:
        model: Any model with highway layers; it is not changed.
        data: A pair `(x, y)` of arrays or tensors, a split of a `Dataset`, or batches.
        classes: The names of the classes, labels or targets; by default, those of a split's labels or targets, or
            numbers.
        probe_samples: How many random samples the linear probe is trained and tested on.
        progress: Called with the fraction of the work that is done.
        objective: What is predicted; by default, the task of a split. Without a task, whole numbers are classes and
            fractions the targets of a regression.

    Returns:
        The differences with their standard errors, and the distances between classes.

    Example:
        >>> from verydeep.analysis import class_routing
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> routing = class_routing(model, data.test, data.classes)
        >>> routing.classes[:3], int(routing.counts.sum())
        (('0', '1', '2'), 359)
    """
    data = as_batched(data, model)
    if isinstance(data, Split) and len(data) and not data.y.is_floating_point():  # before the work, if possible
        Groups("class", None if classes is None else tuple(classes)).check_names(int(data.y.max()))
    subject = ModelAndData.of(model, data, find_objective(data, objective))
    groups = find_groups(subject, classes)
    if groups.may_overlap:
        return _overlapping(subject, groups, probe_samples, progress)
    moments, reservoir = None, _Reservoir(probe_samples)
    with torch.no_grad():
        for x, y in subject.batches(progress):
            gates, widths, outputs = _mean_gates(subject, x, y)
            number = groups.numbers(y)
            moments = moments or Moments(outputs if groups.by == "class" else len(groups.names or ()))
            moments.add(gates, number)
            reservoir.add(gates, number)
    assert moments is not None
    seen = moments.count[:, 0].nonzero()[:, 0].tolist()
    groups.check_names(max(seen))
    return _result(subject.model.layers, {c: groups.name(c) for c in seen}, moments, widths, reservoir, groups.by)


def _mean_gates(subject: ModelAndData, x: Tensor, y: Tensor) -> tuple[Tensor, list[int], int]:
    """The gates of every sample, averaged over positions, all layers side by side; their widths; the output count."""
    recorder = Recorder(len(x))
    outputs = subject.model.run(recorder, x)
    subject.objective.check(outputs, y)
    gates = [layer.t.flatten(2).mean(2) if layer.t.dim() > 2 else layer.t for layer in recorder.layers]
    return torch.cat(gates, 1), [gate.shape[1] for gate in gates], outputs.shape[1]


def _overlapping(subject: ModelAndData, groups: Groups, probe_samples: int, progress: Progress | None) -> ClassRouting:
    """The result for groups that share samples: each is compared with the samples outside it."""
    assert groups.names is not None
    moments, reservoir = [Moments(2) for _ in groups.names], _Reservoir(probe_samples)
    with torch.no_grad():
        for x, y in subject.batches(progress):
            gates, widths, _ = _mean_gates(subject, x, y)
            members = groups.members(y)
            for each, inside in zip(moments, members.T.long(), strict=True):
                each.add(gates, inside)
            reservoir.add(gates, members)
    seen = [number for number, each in enumerate(moments) if each.count[1, 0] > 0]
    if not seen:
        raise UserError("no sample has any of the labels, so there are no gates to compare")
    count = np.stack([to_array(moments[number].count)[:, 0] for number in seen])  # (group, outside and inside)
    mean = np.stack([to_array(moments[number].mean) for number in seen])
    squares = np.stack([to_array(moments[number].squares) for number in seen])
    outside = 1 - count[:, 1:] / count.sum(1, keepdims=True)
    overall = outside[0] * mean[0, 0] + (1 - outside[0]) * mean[0, 1]
    # The mean of a group minus that of all samples is, exactly, the part outside times the difference of both means.
    variance = squares / np.maximum(count - 1, 1)[..., None] / np.maximum(count, 1)[..., None]
    variance[:, 1][count[:, 1] < 2] = np.nan
    return _assemble(
        subject.model.layers,
        {number: groups.name(number) for number in seen},
        count[:, 1],
        (overall, mean[:, 1], outside * np.sqrt(variance.sum(1))),
        widths,
        _probe_each(reservoir),
        groups.by,
    )


def _result(
    layers: tuple[str, ...],
    classes: Mapping[int, str],
    moments: Moments,
    widths: list[int],
    reservoir: "_Reservoir",
    by: str,
) -> ClassRouting:
    seen = list(classes)
    count, mean = to_array(moments.count)[seen], to_array(moments.mean)[seen]
    share = count / count.sum()
    errors = _standard_error(share, count, to_array(moments.squares)[seen])
    means = (share * mean).sum(0), mean, errors
    return _assemble(layers, classes, count[:, 0], means, widths, _probe(reservoir), by)


def _assemble(
    layers: tuple[str, ...],
    classes: Mapping[int, str],
    count: Array,
    means: tuple[Array, Array, Array],
    widths: list[int],
    probe: tuple[float, float, int],
    by: str,
) -> ClassRouting:
    """The result, from the overall mean, the mean of each group, and the standard errors of their differences."""
    from scipy.cluster import hierarchy  # type: ignore[import-untyped]
    from scipy.spatial.distance import pdist, squareform  # type: ignore[import-untyped]

    overall, mean, errors = means
    pairs = pdist(mean) / np.sqrt(mean.shape[1])  # pair by pair: all at once take gigabytes for 1000 classes
    linkage = hierarchy.linkage(pairs, "average") if len(classes) > 1 else np.empty((0, 4))
    accuracy, chance, samples = probe
    return ClassRouting(
        layers=layers,
        classes=tuple(classes.values()),
        counts=count.astype(np.int64),
        mean=_per_layer(overall, widths),
        difference=_per_layer(mean - overall, widths),
        standard_error=_per_layer(errors, widths),
        distance=squareform(pairs),
        linkage=linkage,
        probe_accuracy=accuracy,
        probe_chance=chance,
        probe_samples=samples,
        grouped_by=by,
    )


def _standard_error(share: Array, count: Array, squares: Array) -> Array:
    """The standard error of class mean minus overall mean, which includes the class itself.

    With p the shares and v the variances of the class means, it is the root of (1 - p_c)^2 v_c plus the sum of p^2 v
    over the other classes. A class of one sample has unknown variance and adds nothing to the sum.
    """
    variance = squares / np.maximum(count - 1, 1) / count
    variance[count[:, 0] < 2] = np.nan
    known = np.nan_to_num(share**2 * variance)
    result: Array = np.sqrt((1 - share) ** 2 * variance + known.sum(0) - known)
    return result


def _per_layer(values: Array, widths: list[int]) -> PerLayer:
    return tuple(np.ascontiguousarray(part) for part in np.split(values, np.cumsum(widths)[:-1], axis=-1))


class _Reservoir:
    """A random sample of rows that arrive in batches: every row is equally likely to be kept."""

    def __init__(self, size: int, seed: int = 0) -> None:
        self.size = size
        self.random = torch.Generator().manual_seed(seed)
        self.keys, self.rows, self.y = torch.empty(0), torch.empty(0, 0), torch.empty(0, dtype=torch.int64)

    def add(self, rows: Tensor, y: Tensor) -> None:
        """Offer a batch: every row draws a random key, and those with the smallest keys stay."""
        rows = rows.cpu()
        keys = torch.cat([self.keys, torch.rand(len(rows), generator=self.random)])
        kept = keys.argsort()[: self.size]
        self.rows = torch.cat([self.rows.reshape(-1, rows.shape[1]).to(rows.dtype), rows])[kept]
        self.keys, self.y = keys[kept], torch.cat([self.y.reshape(-1, *y.shape[1:]).to(y.dtype), y.cpu()])[kept]


def _probe(reservoir: _Reservoir) -> tuple[float, float, int]:
    """The cross-validated accuracy of a linear classifier on gates alone, that of guessing, and the sample count.

    Guessing always names the most frequent class. Classes with fewer samples than folds are left out; the accuracy is
    NaN if fewer than two classes remain.
    """
    x, y = reservoir.rows.float().numpy(), reservoir.y.numpy()
    counts = np.bincount(y)
    kept = counts[y] >= _FOLDS
    x, y = x[kept], y[kept]
    if len(np.unique(y)) < 2:
        return float("nan"), float("nan"), len(y)
    return _cross_validated(x, y), float(counts.max() / len(y)), len(y)


def _probe_each(reservoir: _Reservoir) -> tuple[float, float, int]:
    """The same for groups that overlap: the mean over groups of predicting who belongs to each."""
    x, members = reservoir.rows.float().numpy(), reservoir.y.numpy()
    counts = members.sum(0)
    probed = np.flatnonzero(np.minimum(counts, len(members) - counts) >= _FOLDS)[:_MOST_PROBED]
    if not len(probed):
        return float("nan"), float("nan"), len(members)
    accuracies = [_cross_validated(x, members[:, group].astype(np.int64)) for group in probed]
    share = counts[probed] / len(members)
    return float(np.mean(accuracies)), float(np.maximum(share, 1 - share).mean()), len(members)


def _cross_validated(x: NDArray[np.float32], y: NDArray[np.int64]) -> float:
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]
    from sklearn.model_selection import StratifiedKFold  # type: ignore[import-untyped]
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # comes with scikit-learn

    correct = 0
    for train, test in StratifiedKFold(_FOLDS, shuffle=True, random_state=0).split(x, y):
        mean, deviation = x[train].mean(0), x[train].std(0) + 1e-12
        x_train, x_test = (x[train] - mean) / deviation, (x[test] - mean) / deviation
        # A hundred steps are enough for a probe, and several threads only make them slower.
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            classifier = LogisticRegression(C=_FREEDOM / x.shape[1], max_iter=100, tol=1e-3).fit(x_train, y[train])
        correct += int((classifier.predict(x_test) == y[test]).sum())
    return correct / len(y)
