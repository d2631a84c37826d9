"""The results of every kind and depth, as the answer shows them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from verydeep.config import dotted, to_dict
from verydeep.depth._answer import DepthPoint
from verydeep.depth._held_out import HeldOut
from verydeep.depth._phases import Finalist
from verydeep.depth._rule import FEWEST_SEEDS, Choice, bootstrap_means
from verydeep.models import multiply_adds
from verydeep.studies import Study, TrainingRecord

_WORST = -1e30  # R2 of a network that predicts infinity


def make_points(study: Study, best: Sequence[Finalist], choice: Choice, held_out: HeldOut) -> tuple[DepthPoint, ...]:
    """The results of each network.

    Args:
        study: The study.
        best: One network for every kind and depth.
        choice: Which of them is enough.
        held_out: What they have been measured on.
    """
    records: dict[str, list[TrainingRecord]] = {}
    for record in study.records([each.group for each in best]):
        records.setdefault(record.group, []).append(record)
    scores = held_out.scores(best)
    ends = None
    if len(scores) >= FEWEST_SEEDS:
        draws = bootstrap_means(scores)
        ends = np.clip(np.percentile(draws, (2.5, 97.5), axis=0), _WORST, None)
    return tuple(_point(number, each, choice, held_out, records[each.group], ends) for number, each in enumerate(best))


def _point(
    number: int,
    finalist: Finalist,
    choice: Choice,
    held_out: HeldOut,
    records: Sequence[TrainingRecord],
    ends: np.ndarray | None,
) -> DepthPoint:
    measured = held_out.of(finalist)
    losses, scores = [each.loss for each in measured], [max(each.score, _WORST) for each in measured]
    run = next((run for seed in held_out.seeds if (run := held_out.run(finalist, seed))), None)
    sample = held_out.problem.dataset.train.prepared(held_out.problem.dataset.train.x[:1])
    ended = [record for record in records if record.curve]
    return DepthPoint(
        kind=finalist.candidate.kind,
        depth=finalist.candidate.depth,
        loss=float(np.mean(losses)),
        score=float(np.mean(scores)),
        excess=float(choice.excess[number]),
        excess_error=float(choice.error[number]),
        score_low=None if ends is None else float(ends[0, number]),
        score_high=None if ends is None else float(ends[1, number]),
        seed_losses=tuple(losses),
        seed_scores=tuple(scores),
        seeds=held_out.seeds,
        diverged=sum(record.status == "diverged" for record in records),
        settings=_settings(finalist, held_out),
        parameters=0 if run is None else sum(parameter.numel() for parameter in run.model.parameters()),
        multiply_adds=0 if run is None else multiply_adds(run.model, sample),
        epochs=float(np.mean([record.epochs for record in ended])) if ended else 0.0,
        seconds=float(np.mean([record.seconds for record in ended])) if ended else 0.0,
    )


def _settings(finalist: Finalist, held_out: HeldOut) -> tuple[str, ...]:
    """The settings that were searched, the default ones included."""
    config = held_out.problem.config(finalist.candidate, 1, 1)
    names = list(held_out.problem.space(finalist.candidate, config))
    if held_out.problem.width is not None and finalist.candidate.depth:
        names.append("model.width")
    if held_out.problem.network == "conv":
        names.append("model.depth")  # the number of hidden layers, not of layers per stage
    flat = dotted(to_dict(config)) | finalist.settings
    return tuple(f"{name}={flat[name]}" for name in names)
