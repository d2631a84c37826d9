"""How the gates tell classes apart (Figure 3 of the paper)."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from verydeep.analysis._data import Data, Progress, Subject
from verydeep.analysis._moments import Moments, array
from verydeep.analysis._probe import Reservoir, probe
from verydeep.analysis._results import Array, ClassRouting, PerLayer
from verydeep.analysis._score import check_classes
from verydeep.analysis._watch import Watch
from verydeep.data import Split
from verydeep.errors import UserError


def class_routing(
    model: nn.Module,
    data: Data,
    classes: Sequence[str] | None = None,
    probe_samples: int = 2000,
    progress: Progress | None = None,
) -> ClassRouting:
    """Compare the mean gate activity of each class with that of all samples, in one pass.

    Classes that have no samples here are left out.

    Args:
        model: Anything with highway layers that returns logits; it is not changed.
        data: What to look at: a `Split`, or batches.
        classes: The classes' names; their numbers unless given.
        probe_samples: How many random samples the linear probe is trained and tested on.
        progress: Is told the share that is done.
    """
    if isinstance(data, Split) and len(data):  # before the work, where that is possible
        _check_names(int(data.y.max()), classes)
    subject = Subject.of(model, data)
    moments, reservoir = None, Reservoir(probe_samples)
    with torch.no_grad():
        for x, y in subject.batches(progress):
            gates, widths, outputs = _gates(subject, x, y)
            moments = moments or Moments(outputs)
            moments.add(gates, y)
            reservoir.add(gates, y)
    assert moments is not None
    seen = moments.count[:, 0].nonzero()[:, 0].tolist()
    _check_names(max(seen), classes)
    names = {c: str(c) if classes is None else classes[c] for c in seen}
    return _result(subject.view.layers, names, moments, widths, reservoir)


def _gates(subject: Subject, x: Tensor, y: Tensor) -> tuple[Tensor, list[int], int]:
    """The mean gates of every sample, all layers beside each other; the layers' widths; how many classes there are."""
    watch = Watch(len(x))
    logits = subject.view.run(watch, x)
    check_classes(logits, y)
    gates = [look.t.flatten(2).mean(2) if look.t.dim() > 2 else look.t for look in watch.looks]
    return torch.cat(gates, 1), [gate.shape[1] for gate in gates], logits.shape[1]


def _check_names(most: int, classes: Sequence[str] | None) -> None:
    if classes is not None and most >= len(classes):
        raise UserError(f"the data has a class number {most}, and there are names for {len(classes)} classes")


def _result(
    layers: tuple[str, ...], classes: Mapping[int, str], moments: Moments, widths: list[int], reservoir: Reservoir
) -> ClassRouting:
    from scipy.cluster import hierarchy  # type: ignore[import-untyped]
    from scipy.spatial.distance import pdist, squareform  # type: ignore[import-untyped]

    seen = list(classes)
    count, mean = array(moments.count)[seen], array(moments.mean)[seen]
    share = count / count.sum()
    overall = (share * mean).sum(0)
    pairs = pdist(mean) / np.sqrt(mean.shape[1])  # each by itself: all at once take gigabytes for 1000 classes
    several = hierarchy.linkage(pairs, "average") if len(seen) > 1 else np.empty((0, 4))
    accuracy, chance, samples = probe(reservoir)
    return ClassRouting(
        layers=layers,
        classes=tuple(classes.values()),
        counts=count[:, 0].astype(np.int64),
        mean=_per_layer(overall, widths),
        difference=_per_layer(mean - overall, widths),
        standard_error=_per_layer(_standard_error(share, count, array(moments.squares)[seen]), widths),
        distance=squareform(pairs),
        linkage=several,
        probe_accuracy=accuracy,
        probe_chance=chance,
        probe_samples=samples,
    )


def _standard_error(share: Array, count: Array, squares: Array) -> Array:
    """Of class mean minus overall mean, which contains the class itself; classes vary each by itself.

    With p the shares and v the variances of the classes' means: (1 - p_c)^2 v_c + the sum over others of p^2 v, where
    a class of one sample, whose variance nobody knows, adds nothing.
    """
    variance = squares / np.maximum(count - 1, 1) / count
    variance[count[:, 0] < 2] = np.nan
    known = np.nan_to_num(share**2 * variance)
    result: Array = np.sqrt((1 - share) ** 2 * variance + known.sum(0) - known)
    return result


def _per_layer(values: Array, widths: list[int]) -> PerLayer:
    return tuple(np.ascontiguousarray(part) for part in np.split(values, np.cumsum(widths)[:-1], axis=-1))
