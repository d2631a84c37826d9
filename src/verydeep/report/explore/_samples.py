"""The samples inside the page: random ones of held-out data, wrong answers first."""

from dataclasses import dataclass
from math import prod

import numpy as np
import torch
from torch import Tensor

from verydeep.cpu import cpu_settings
from verydeep.data import Split, Table, Task, UnpreparedSplit
from verydeep.errors import UserError
from verydeep.models import Network, multiply_adds
from verydeep.report.explore._baseline import Baseline, measure_baseline

_MOST, _FEWEST, _MORE_WRONG = 200, 16, 24
_WORK = 350e6  # multiply-adds for which a browser on one core takes about a third of a second
_BYTES = 300_000  # of raw samples
_SEARCHED = 20e9  # multiply-adds that looking for wrong answers may take here
_BATCH_SIZE = 500


@dataclass(frozen=True)
class EmbeddedSamples:
    """Samples for the page, in the order in which it shows them.

    Attributes:
        raw: The samples as they were read.
        x: The samples as the network sees them.
        targets: Class numbers, numbers in their original units, or labels.
        outputs: The network's outputs.
        scored: Which of them were drawn at random, so that the score over them is unbiased; the others were added
            because their answers are wrong.
        of: The number of samples they were drawn from.
        baseline: Whether the network is better than an answer which is always the same.
    """

    raw: Tensor | Table
    x: Tensor
    targets: Tensor
    outputs: Tensor
    scored: np.ndarray
    of: int
    baseline: Baseline


def choose_samples(model: Network, split: Split, raw: UnpreparedSplit, task: Task) -> EmbeddedSamples:
    """Choose as many samples as a browser evaluates in a third of a second, and some more with wrong answers.

    Args:
        model: The network.
        split: The prepared samples to choose from.
        raw: The same samples as they were read.
        task: What the network predicts.
    """
    if len(split) == 0:
        raise UserError("there are no held-out samples to show")
    work = multiply_adds(model)
    size = 8 if isinstance(raw.x, Table) else prod(raw.x.shape[1:])
    count = int(max(_FEWEST, min(_MOST, _WORK // max(work, 1), _BYTES // size)))
    searched = int(max(count, min(2000, _SEARCHED // max(work, 1))))
    rows = np.random.default_rng(0).permutation(len(split))[:searched]
    outputs, y = _outputs(model, split, torch.from_numpy(rows)), split.y[torch.from_numpy(rows)]
    mistakes = _mistakes(outputs, y, task)
    places = np.arange(len(rows))
    scored = places < count
    most = min(_MORE_WRONG, count // 2) if task.kind == "classification" else 0
    more = places[~scored & (mistakes > 0)][:most]
    chosen = np.concatenate([places[scored], more])
    chosen = chosen[np.argsort(-mistakes[chosen], kind="stable")]
    index = torch.from_numpy(rows[chosen])
    return EmbeddedSamples(
        raw=raw.x[index],
        x=split.prepared(split.x[index]),
        targets=raw.y[index],
        outputs=outputs[chosen],
        scored=scored[chosen],
        of=len(split),
        baseline=measure_baseline(outputs, y, task),
    )


def _outputs(model: Network, split: Split, rows: Tensor) -> Tensor:
    with cpu_settings(), torch.inference_mode():
        batches = (split.prepared(split.x[part]).float() for part in rows.split(_BATCH_SIZE))
        return torch.cat([model(batch).float() for batch in batches])


def _mistakes(outputs: Tensor, y: Tensor, task: Task) -> np.ndarray:
    """How wrong each answer is, 0 for a correct one: 1, the number of wrong labels, or the size of the error."""
    if task.kind == "classification":
        found = (outputs.argmax(1) != y).double()
    elif task.kind == "multilabel":
        found = ((outputs > 0) != (y > 0.5)).sum(1).double()
    else:
        found = (outputs - y).abs().sum(1).double()
    return np.asarray(found.numpy())
