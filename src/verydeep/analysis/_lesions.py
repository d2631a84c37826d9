"""Lesions: layers closed, one, two or more at a time (Section 4.2 of the paper)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from verydeep.analysis._data import Data, Progress, Subject, device, first_samples, part
from verydeep.analysis._replay import Record, Replay, can_replay
from verydeep.analysis._results import LesionStudy, PairLesion, Score
from verydeep.analysis._score import check_classes, losses
from verydeep.analysis._view import Closed, Pass
from verydeep.errors import UserError

_CHECKED = 500  # samples on which reuse is compared with the long way


def lesion_study(model: nn.Module, data: Data, split: str = "", progress: Progress | None = None) -> LesionStudy:
    """Close each highway layer in turn, with all its transform gates at 0, and measure.

    What lies below the closed layer is computed once for all lesions: L of them cost about L / 2 passes, not L.

    Args:
        model: Anything with highway layers that returns logits; it is not changed.
        data: What to measure on: a `Split`, or batches.
        split: What the data is called in the result.
        progress: Is told the share that is done.
    """
    surgeon = Surgeon.of(Subject.of(model, data))
    layers = surgeon.subject.view.layers
    found = surgeon.each(frozenset(), range(len(layers)), progress)
    return LesionStudy(layers, split, found.samples, found.baseline, found.loss, found.error)


def pair_lesions(model: nn.Module, data: Data, split: str = "", progress: Progress | None = None) -> PairLesion:
    """Close every two highway layers together; about L ** 2 / 6 passes.

    The arguments are those of `lesion_study`.
    """
    surgeon = Surgeon.of(Subject.of(model, data))
    layers = surgeon.subject.view.layers
    count = len(layers)
    loss, error = np.empty((count, count)), np.empty((count, count))
    for row in range(count):
        share = part(progress, _pairs_done(row, count), _pairs_done(row + 1, count))
        found = surgeon.each(frozenset({row}), range(row + 1, count), share)
        loss[row, row], error[row, row] = found.baseline.loss, found.baseline.error
        loss[row, row + 1 :] = loss[row + 1 :, row] = found.loss
        error[row, row + 1 :] = error[row + 1 :, row] = found.error
    whole = surgeon.each(frozenset(), ())
    return PairLesion(layers, split, whole.samples, whole.baseline, loss, error)


def _pairs_done(rows: int, count: int) -> float:
    return 1 - (1 - rows / count) ** 3


@dataclass(frozen=True)
class Found:
    """What single further lesions do to a network that has some layers closed already."""

    baseline: Score  # without a further one
    samples: int
    loss: np.ndarray  # (candidate,)
    error: np.ndarray


@dataclass(frozen=True)
class Surgeon:
    """Closes layers of a subject."""

    subject: Subject
    reuse: bool  # whether passes may start from what another one has computed

    @classmethod
    def of(cls, subject: Subject) -> "Surgeon":
        """Find out on some samples whether reuse is exact for this model."""
        with torch.no_grad():
            x = first_samples(subject.data, _CHECKED).to(device(subject.view.model))
            return cls(subject, can_replay(subject.view, x))

    def each(self, closed: Closed, candidates: Sequence[int], progress: Progress | None = None) -> Found:
        """Close each candidate by itself, on top of the layers that are closed already."""
        total, samples = torch.zeros(1 + len(candidates), 2, dtype=torch.float64), 0
        with torch.no_grad():
            for x, y in self.subject.batches(progress):
                total += self._batch(x, y, closed, candidates).cpu()
                samples += len(y)
        mean = (total / samples).numpy()
        return Found(Score(*mean[0].tolist()), samples, mean[1:, 0], mean[1:, 1])

    def _batch(self, x: Tensor, y: Tensor, closed: Closed, candidates: Collection[int]) -> Tensor:
        view, record = self.subject.view, Record(closed)
        logits = view.run(record, x)
        check_classes(logits, y)
        rows = [losses(logits, y)]
        for layer in candidates:
            how = Replay(record, view.unit(layer), layer) if self.reuse else Pass(closed | {layer})
            rows.append(losses(view.run(how, x), y))
        return torch.stack(rows)


def check_layers(layers: Collection[int], depth: int) -> None:
    """Refuse numbers of layers that are not there."""
    wrong = sorted(layer for layer in layers if not 0 <= layer < depth)
    if wrong:
        raise UserError(f"there is no highway layer {wrong[0]}: they are numbered 0 to {depth - 1}")
