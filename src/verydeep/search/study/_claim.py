"""What a worker does with a trial: claim it, report its epochs, and record its result or release it."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState, create_trial

from verydeep.search._halving import continues, is_rung
from verydeep.search._sampling import RANDOM_FIRST, decode_settings, draw, encode_settings, suggest_tpe
from verydeep.search._space import Settings
from verydeep.search.storage._dead_workers import fail_attempt
from verydeep.search.study._study import (
    Study,
    best_value,
    count_deaths,
    current_attempt,
    epochs_reached,
    value_at,
)


class LostTrial(Exception):  # noqa: N818 - not an error
    """The trial was given to another worker because this one was silent for too long."""


@dataclass(frozen=True)
class Claim:
    """A trial that this worker, and no other, is to train.

    Attributes:
        trial: Its number.
        trial_id: The attempt in Optuna's storage.
        settings: The settings to train with.
        deaths: How many workers have died on it since it last made progress.
        reached: How many of its epochs earlier attempts have reported.
    """

    trial: int
    trial_id: int
    settings: Settings
    deaths: int = 0
    reached: int = 0


def claim_trial(study: Study, worker: str) -> Claim | None:
    """Claim the first trial that is neither trained nor being trained; None if there is none at present."""
    with study.store.claiming():
        study.store.release_dead(study.optuna)
        for trial, attempts in enumerate(study.attempts()):
            attempt = current_attempt(attempts) or add_attempt(study, trial, attempts)
            if attempt.state == TrialState.WAITING and _take(study, attempt, worker):
                settings = _settings(study, trial, attempt)
                return Claim(trial, attempt._trial_id, settings, count_deaths(attempts), epochs_reached(attempts))
    return None


def add_attempt(study: Study, trial: int, attempts: list[FrozenTrial]) -> FrozenTrial:
    """Add an attempt that waits for a worker; if several workers add one at once, return the earliest."""
    config = study.config
    known = (decode_settings(config.space, attempt.params) for attempt in attempts)
    settings = next((settings for settings in known if settings is not None), None)
    if settings is None and not _uses_tpe(study, trial):
        settings = draw(config.space, config.options.seed, trial)
    study.optuna.add_trial(
        create_trial(
            state=TrialState.WAITING,
            params=encode_settings(config.space, settings) if settings else {},
            distributions=study.distributions if settings else {},
            user_attrs={"setting": trial},
        )
    )
    added = current_attempt(study.attempts()[trial])
    assert added is not None
    return added


def _take(study: Study, attempt: FrozenTrial, worker: str) -> bool:
    """Whether this worker gets the attempt; of several that try, one succeeds."""
    study.store.heartbeat(attempt._trial_id)  # before it runs, so that a running attempt always has a heartbeat
    try:
        taken = study.store.storage.set_trial_state_values(attempt._trial_id, TrialState.RUNNING)
        if taken:
            study.store.storage.set_trial_user_attr(attempt._trial_id, "worker", worker)
    except UpdateFinishedTrialError:
        return False
    return taken


def _uses_tpe(study: Study, trial: int) -> bool:
    return study.config.options.sampler == "tpe" and trial >= RANDOM_FIRST


def _settings(study: Study, trial: int, attempt: FrozenTrial) -> Settings:
    space, params = study.config.space, dict(attempt.params)
    if not params:
        seed = (study.config.options.seed * 100_003 + trial) % 2**32
        params = suggest_tpe(study.name, study.store.storage, attempt, space, seed)
    settings = decode_settings(space, params)
    assert settings is not None
    return settings


def report_epoch(study: Study, claim: Claim, epoch: int, value: float | None) -> bool:
    """Add an epoch to a trial's curve; return whether successive halving ends the trial here."""
    with _lost_if_finished(claim):
        reported = study.worst if value is None or not math.isfinite(value) else value
        study.store.storage.set_trial_intermediate_value(claim.trial_id, epoch, reported)
        return epoch > claim.reached and _is_halved(study, claim, epoch, reported)


def _is_halved(study: Study, claim: Claim, epoch: int, value: float) -> bool:
    """Whether too many other trials were better after this epoch; each counts once, however many attempts it has."""
    halving = study.config.options.halving
    if halving is None or not is_rung(halving, epoch):
        return False
    values = {trial: value_at(epoch, attempts) for trial, attempts in enumerate(study.attempts())}
    others = [other for trial, other in values.items() if other is not None and trial != claim.trial]
    return not continues(value, others, halving.keep, study.config.maximise)


def finish_trial(study: Study, claim: Claim, result: dict[str, Any]) -> None:
    """Record a trial's result: from here on it is counted, once."""
    has_value = result["status"] in ("finished", "stopped early", "pruned")
    curve = [line.get(study.config.metric) for line in result["curve"]]
    value = best_value(curve, study.config.maximise) if has_value else None
    state = TrialState.PRUNED if result["status"] == "pruned" else TrialState.COMPLETE
    with _lost_if_finished(claim):
        study.store.storage.set_trial_user_attr(claim.trial_id, "result", json.dumps(result))
        values = [study.worst if value is None else value]
        study.store.storage.set_trial_state_values(claim.trial_id, state, values)


def release_trial(study: Study, claim: Claim, died: bool = False) -> None:
    """Give a trial back, so that another worker, or this one later, continues it.

    Args:
        study: The study.
        claim: The trial.
        died: Whether this counts as the death of a worker.
    """
    try:
        study.store.storage.set_trial_user_attr(claim.trial_id, "left", not died)
    except UpdateFinishedTrialError:
        return
    fail_attempt(study.store.storage, claim.trial_id)


@contextmanager
def _lost_if_finished(claim: Claim) -> Iterator[None]:
    """An attempt that someone else ended was abandoned: the trial now belongs to another worker."""
    try:
        yield
    except UpdateFinishedTrialError as error:
        raise LostTrial(claim.trial) from error
