"""Lesions: measuring a network with one or two layers closed (Section 4.2 of the paper)."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from verydeep.analysis._data import Data, ModelAndData, Progress, subrange
from verydeep.analysis.blocks._blocks import Closed, ForwardMode
from verydeep.analysis.blocks._find_blocks import Blocks
from verydeep.analysis.lesions._lesion_results import LesionStudy, PairLesion, Score
from verydeep.analysis.lesions._paired import PairedSums
from verydeep.analysis.lesions._replay import CachingMode, ReplayMode, can_replay
from verydeep.cpu import cpu_settings
from verydeep.data import Split
from verydeep.errors import UserError
from verydeep.float64 import as_float64
from verydeep.objectives import Inputs, Objective, Totals

_CHECKED = 500  # samples on which reuse is compared with full passes
_CHECKED_OF_BATCH = 2  # of batches in any form, whose samples may be long sequences


@cpu_settings()
def lesion_study(
    model: nn.Module,
    data: Data,
    split: str = "",
    progress: Progress | None = None,
    *,
    objective: Objective | None = None,
    blocks: Blocks = None,
) -> LesionStudy:
    """Close each layer in turn and measure the network: highway layers with all gates at 0, and residual blocks.

    Everything before the closed layer is computed once for all lesions: L lesions cost about L / 2 passes, not L.

    Args:
        model: Any model with highway layers or residual blocks; it is not changed.
        data: A pair `(x, y)` of arrays or tensors, a split of a `Dataset`, or batches.
        split: What the result calls the data.
        progress: Called with the fraction of the work that is done.
        objective: What is measured; by default, the task of a split. Without a task, whole numbers are classes and
            fractions the targets of a regression.
        blocks: What is closed: the result of `find_blocks`, or patterns of names, such as `encoder.layer.*`. By
            default, highway layers and the residual blocks that `find_blocks` finds.

    Returns:
        Loss and error with each layer closed, and with none, and the standard error of each rise.

    Example:
        >>> from verydeep.analysis import lesion_study
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> lesions = lesion_study(model, (data.test.x, data.test.y), "test")
        >>> lesions
        <LesionStudy: 3 layers, 359 samples of the test set; error ..., and ... with layer ... closed, ...>
        >>> figure = lesions.plot("lesions.png")
    """
    runner = LesionRunner.of(ModelAndData.of(model, data, objective, blocks))
    layers = runner.subject.model.layers
    scores = runner.close_each(frozenset(), range(len(layers)), progress, paired=True)
    return LesionStudy(
        layers, split, scores.samples, scores.baseline, scores.loss, scores.error, scores.noise, scores.loss_noise
    )


@cpu_settings()
def pair_lesions(
    model: nn.Module,
    data: Data,
    split: str = "",
    progress: Progress | None = None,
    *,
    objective: Objective | None = None,
    blocks: Blocks = None,
) -> PairLesion:
    """Close every pair of layers and measure the network; about L ** 2 / 6 passes.

    Args:
        model: Any model with highway layers or residual blocks; it is not changed.
        data: A pair `(x, y)` of arrays or tensors, a split of a `Dataset`, or batches.
        split: What the result calls the data.
        progress: Called with the fraction of the work that is done.
        objective: What is measured; by default, the task of a split. Without a task, whole numbers are classes and
            fractions the targets of a regression.
        blocks: What is closed: the result of `find_blocks`, or patterns of names, such as `encoder.layer.*`. By
            default, highway layers and the residual blocks that `find_blocks` finds.

    Returns:
        Loss and error with every pair of layers closed, with each layer closed, and with none.

    Example:
        >>> from verydeep.analysis import pair_lesions
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> pair_lesions(model, data.test, "test").loss.shape
        (3, 3)
    """
    runner = LesionRunner.of(ModelAndData.of(model, data, objective, blocks))
    layers = runner.subject.model.layers
    count = len(layers)
    loss, error = np.empty((count, count)), np.empty((count, count))
    for row in range(count):
        share = subrange(progress, _pairs_done(row, count), _pairs_done(row + 1, count))
        scores = runner.close_each(frozenset({row}), range(row + 1, count), share)
        loss[row, row], error[row, row] = scores.baseline.loss, scores.baseline.error
        loss[row, row + 1 :] = loss[row + 1 :, row] = scores.loss
        error[row, row + 1 :] = error[row + 1 :, row] = scores.error
    unchanged = runner.close_each(frozenset(), ())
    return PairLesion(layers, split, unchanged.samples, unchanged.baseline, loss, error)


def _pairs_done(rows: int, count: int) -> float:
    return 1 - (1 - rows / count) ** 3


@dataclass(frozen=True)
class LesionScores:
    """The scores of a network with some layers closed, and with each of several candidates closed in addition.

    Attributes:
        baseline: Without a candidate closed.
        samples: How many samples were measured.
        loss: Mean loss with each candidate closed, `(candidate,)`.
        error: Fraction of wrong predictions, or 1 - R2, with each candidate closed, `(candidate,)`.
        noise: The standard error of the rise of the error by each candidate; None if it was not computed.
        loss_noise: Likewise of the loss.
    """

    baseline: Score
    samples: int
    loss: np.ndarray
    error: np.ndarray
    noise: np.ndarray | None = None
    loss_noise: np.ndarray | None = None


@dataclass(frozen=True)
class LesionRunner:
    """Measures a model with layers closed.

    Attributes:
        subject: The model and its data.
        reuse: Whether passes may start from the cached outputs of another pass.
    """

    subject: ModelAndData
    reuse: bool

    @classmethod
    def of(cls, subject: ModelAndData) -> "LesionRunner":
        """A runner that reuses outputs if that is exact for this model, which is checked on some samples."""
        with torch.no_grad():
            checked = _CHECKED if isinstance(subject.data, Split) else _CHECKED_OF_BATCH
            return cls(subject, can_replay(subject.model, subject.first(checked)))

    def close_each(
        self, closed: Closed, candidates: Sequence[int], progress: Progress | None = None, *, paired: bool = False
    ) -> LesionScores:
        """Close each candidate by itself, in addition to the layers that are closed already.

        Args:
            closed: The layers that are closed already.
            candidates: The other layers to close, one at a time.
            progress: Called with the fraction of the work that is done.
            paired: Whether to compute standard errors.
        """
        objective = self.subject.objective
        totals, samples = torch.zeros(1 + len(candidates), objective.size, dtype=torch.float64), 0
        errors = losses = None
        with torch.no_grad():
            for x, y in self.subject.batches(progress):
                sums: list[Tensor] = []
                wrong: list[Tensor] = []
                lost: list[Tensor | None] = []
                for outputs in self._outputs(x, closed, candidates):
                    if not sums:
                        objective.check(outputs, y)
                    if not paired:
                        sums.append(objective.totals(outputs, y))
                        continue
                    values, errors_of_samples, losses_of_samples = objective.totals_and_samples(outputs, y)
                    sums.append(values)
                    wrong.append(errors_of_samples)
                    lost.append(losses_of_samples)
                totals += torch.stack(sums).cpu()
                samples += len(y)
                if paired and candidates:
                    errors = _add_rises(errors, torch.stack(wrong))
                    each = [as_float64(loss[:, None]) for loss in lost if loss is not None]
                    losses = _add_rises(losses, torch.stack(each)) if each else None
        rows = [Totals(row, samples, objective) for row in totals]
        loss, error = np.array([row.loss for row in rows]), np.array([row.error for row in rows])
        baseline = Score(float(loss[0]), float(error[0]), objective.measure)
        if not closed and not np.isfinite(baseline.loss):
            raise UserError(
                f"the loss of this network on these samples is {baseline.loss}, so closing layers would tell nothing; "
                "check its weights and the samples for numbers that are not finite"
            )
        noise = None if errors is None else errors.standard_errors(objective.error_weights(totals[0], samples))
        loss_noise = None if losses is None else losses.standard_errors(objective.loss_weights(totals[0], samples))
        return LesionScores(baseline, samples, loss[1:], error[1:], noise, loss_noise)

    def _outputs(self, x: Inputs, closed: Closed, candidates: Collection[int]) -> Iterator[Tensor]:
        """The outputs for a batch, without and then with each candidate."""
        model = self.subject.model
        if not self.reuse:
            yield model.run(ForwardMode(closed), x)
            for layer in candidates:
                yield model.run(ForwardMode(closed | {layer}), x)
            return
        cache = CachingMode(closed, model.group_of(max(candidates)) if candidates else model.groups[0])
        yield model.run(cache, x)
        for layer in candidates:
            yield model.run(ReplayMode(cache, model.group_of(layer), layer), x)


def _add_rises(sums: PairedSums | None, values: Tensor) -> PairedSums:
    """Add what each candidate adds to the values of the baseline, which come first: `(1 + candidate, sample, part)`."""
    sums = sums or PairedSums(len(values) - 1, values.shape[2])
    sums.add(values[1:] - values[0])
    return sums
