"""What a worker does with a training: claim it, report its epochs, and record its result or release it."""

import json
import math
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState, create_trial

from verydeep.studies._group import Group
from verydeep.studies._halving import Halving, Stages, continues, is_rung
from verydeep.studies._records import best_value
from verydeep.studies._sampling import (
    RANDOM_FIRST,
    decode_settings,
    draw,
    encode_settings,
    optuna_distributions,
    suggest_tpe,
)
from verydeep.studies._schedule import EPOCHS, Attempts, StudyTask
from verydeep.studies._space import Settings
from verydeep.studies._study import Study
from verydeep.studies.storage._dead_workers import fail_attempt
from verydeep.training import EpochMetrics


class LostTraining(Exception):  # noqa: N818 - not an error
    """The training was given to another worker because this one was silent for too long."""


@dataclass(frozen=True)
class Claim:
    """A training that this worker, and no other, is to train.

    Attributes:
        name: Its name.
        group: Its group.
        number: Its seed, or its number in a search.
        goal: The epoch up to which it is to be trained.
        trial_id: The attempt in Optuna's storage.
        settings: The searched settings to train with.
        deaths: How many workers have died on it since it last made progress.
        reached: How many of its epochs earlier attempts have reported.
        problem: Why the last attempt was given up, if a worker said so.
    """

    name: str
    group: Group
    number: int
    goal: int
    trial_id: int
    settings: Settings
    deaths: int = 0
    reached: int = 0
    problem: str = ""


def claim_training(
    study: Study,
    worker: str,
    is_here: Callable[[str], bool] = lambda _: True,
    only: Collection[str] | None = None,
    avoid: Collection[str] = (),
    patient: bool = False,
) -> Claim | None:
    """Claim a training that is ready; None if there is none at present.

    Args:
        study: The study.
        worker: The name of the worker.
        is_here: Whether a training's run is on this machine.
        only: The names of groups or single trainings to train; by default, all.
        avoid: The names of trainings that this worker cannot train.
        patient: Leave trainings that were begun on other machines to their workers, which have the checkpoints.
    """
    with study.store.claiming():
        study.store.release_dead(study.optuna)
        ready = [task for task in study.tasks(only) if task.state == "ready" and task.name not in avoid]
        for task in sorted(ready, key=lambda task: _priority(study, task, is_here)):
            if patient and _is_elsewhere(task, is_here):
                continue
            attempt = task.attempts.open or _add_attempt(study, task)
            if attempt is not None and attempt.state == TrialState.WAITING and _take(study, attempt, worker):
                settings = _settings(study, task, attempt)
                tried = task.attempts
                return Claim(
                    task.name,
                    task.group,
                    task.number,
                    task.goal,
                    attempt._trial_id,
                    settings,
                    tried.deaths,
                    tried.epochs,
                    tried.problem,
                )
    return None


def _priority(study: Study, task: StudyTask, is_here: Callable[[str], bool]) -> tuple[int, ...]:
    """Which trainings come first: not those begun elsewhere, those of early stages, then the order of the study."""
    stage = task.goal if isinstance(task.group.halving, Stages) else 0
    place = task.group.numbers.index(task.number) if study.breadth_first else 0
    return int(_is_elsewhere(task, is_here)), stage, place


def _is_elsewhere(task: StudyTask, is_here: Callable[[str], bool]) -> bool:
    return task.attempts.epochs > 0 and not is_here(task.name)


def _add_attempt(study: Study, task: StudyTask) -> FrozenTrial | None:
    """Add an attempt that waits for a worker; if several workers add one at once, return the earliest.

    None if another worker was so much faster that its attempt has ended: there may be nothing left to train.
    """
    sampling, params, distributions = task.group.sampling, {}, {}
    if sampling is not None:
        known = (decode_settings(sampling.space, attempt.params) for attempt in task.attempts.trials)
        settings = next((settings for settings in known if settings is not None), None)
        if settings is None and not _uses_tpe(task):
            settings = draw(sampling.space, sampling.seed, task.number)
        if settings is not None:
            params, distributions = encode_settings(sampling.space, settings), optuna_distributions(sampling.space)
    study.optuna.add_trial(
        create_trial(
            state=TrialState.WAITING,
            params=params,
            distributions=distributions,
            user_attrs={"training": task.name},
        )
    )
    now = study.attempts()[task.name]
    has_ended = any(trial.state.is_finished() for trial in now.trials[len(task.attempts.trials) :])
    return None if has_ended else now.open


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


def _uses_tpe(task: StudyTask) -> bool:
    return task.group.sampling is not None and task.group.sampling.sampler == "tpe" and task.number >= RANDOM_FIRST


def _settings(study: Study, task: StudyTask, attempt: FrozenTrial) -> Settings:
    sampling = task.group.sampling
    if sampling is None:
        return {}
    params = dict(attempt.params)
    if not params:
        seed = (sampling.seed * 100_003 + task.number) % 2**32
        params = suggest_tpe(study.optuna, attempt, sampling.space, seed)
    settings = decode_settings(sampling.space, params)
    assert settings is not None
    return settings


def report_start(study: Study, claim: Claim, environment: dict[str, Any], position: float) -> None:
    """Store the machine that trains, and after how many epochs it starts or continues."""
    with _lost_if_finished(claim):
        study.store.storage.set_trial_user_attr(claim.trial_id, "environment", json.dumps(environment))
        study.store.storage.set_trial_user_attr(claim.trial_id, "from", position)


def report_teacher(study: Study, claim: Claim, position: float) -> None:
    """Store that the teacher is trained again on this machine, and after how many epochs it starts or continues."""
    with _lost_if_finished(claim):
        study.store.storage.set_trial_user_attr(claim.trial_id, "teacher_from", position)


def report_epochs(study: Study, claim: Claim, *lines: EpochMetrics) -> bool:
    """Add consecutive epochs to a training's curve; return whether successive halving ends it after the last one."""
    values = [line.get(study.metric) for line in lines]
    reported = [study.worst if value is None or not math.isfinite(value) else value for value in values]
    last, storage = lines[-1].epoch, study.store.storage
    if len(lines) == 1:
        name, content = f"metrics:{last}", lines[0].to_dict()
    else:  # in a single attribute, because every write to a storage takes a while
        name, content = f"{EPOCHS}{lines[0].epoch}", {"values": reported, "curve": [line.to_dict() for line in lines]}
    with _lost_if_finished(claim):
        # The metrics first: what counts as reported then always has them.
        storage.set_trial_user_attr(claim.trial_id, name, json.dumps(content))
        storage.set_trial_intermediate_value(claim.trial_id, last, reported[-1])
        return last > claim.reached and _is_halved(study, claim, last, reported[-1])


def is_compared(claim: Claim, epoch: int) -> bool:
    """Whether a training is compared with others after an epoch, or has reached its goal."""
    halving = claim.group.halving
    return epoch >= claim.goal or (isinstance(halving, Halving) and is_rung(halving, epoch))


def _is_halved(study: Study, claim: Claim, epoch: int, value: float) -> bool:
    """Whether too many other trainings were better after this epoch; each counts once, whatever its attempts."""
    halving = claim.group.halving
    if not isinstance(halving, Halving) or not is_rung(halving, epoch):
        return False
    attempts = study.attempts()
    none = Attempts((), study.maximise)
    values = {name: attempts.get(name, none).value_at(epoch) for name in claim.group.training_names}
    others = [other for name, other in values.items() if other is not None and name != claim.name]
    return not continues(value, others, halving.keep, study.maximise)


def upload_run(study: Study, claim: Claim) -> None:
    """Share a finished run through the artifact store."""
    assert study.artifacts is not None
    trial = next(trial for trial in study.attempts()[claim.name].trials if trial._trial_id == claim.trial_id)
    with _lost_if_finished(claim):
        study.artifacts.upload(study.store.storage, trial, study.run_path(claim.name))


def finish_training(
    study: Study,
    claim: Claim,
    result: dict[str, Any],
    curve: list[EpochMetrics],
    tested: EpochMetrics | None = None,
) -> None:
    """Record a training's result: from here on it is counted, once.

    Args:
        study: The study.
        claim: The training.
        result: How it ended.
        curve: The metrics of its epochs.
        tested: The metrics of its saved weights, which may have been tested at the end only.
    """
    has_value = result["status"] not in ("diverged", "failed")
    value = best_value([line.get(study.metric) for line in curve], study.maximise) if has_value else None
    state = TrialState.PRUNED if result["status"] in ("pruned", "paused") else TrialState.COMPLETE
    storage = study.store.storage
    with _lost_if_finished(claim):
        if tested is not None and tested.epoch > 0 and tested != curve[tested.epoch - 1]:
            storage.set_trial_user_attr(claim.trial_id, f"metrics:{tested.epoch}", json.dumps(tested.to_dict()))
        storage.set_trial_user_attr(claim.trial_id, "result", json.dumps(result))
        values = [study.worst if value is None else value]
        storage.set_trial_state_values(claim.trial_id, state, values)


def release_training(study: Study, claim: Claim, *, died: bool = False, problem: str = "") -> None:
    """Give a training back, so that another worker, or this one later, continues it.

    Args:
        study: The study.
        claim: The training.
        died: Whether this counts as the death of a worker.
        problem: Why this worker cannot train it.
    """
    try:
        study.store.storage.set_trial_user_attr(claim.trial_id, "left", not died)
        if problem:
            study.store.storage.set_trial_user_attr(claim.trial_id, "problem", problem)
    except UpdateFinishedTrialError:
        return
    fail_attempt(study.store.storage, claim.trial_id)


@contextmanager
def _lost_if_finished(claim: Claim) -> Iterator[None]:
    """An attempt that someone else ended was abandoned: the training now belongs to another worker."""
    try:
        yield
    except UpdateFinishedTrialError as error:
        raise LostTraining(claim.name) from error
