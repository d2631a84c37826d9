"""A study: the trials of a search, each claimed by one worker, counted once.

A trial here is a setting's number, 0 to `trials - 1`. In Optuna each attempt at a setting is a trial of its own: one
that was given up (its worker died or was stopped) has failed there, and the setting is free again. Of several live
attempts at one setting, which two workers may add at the same instant, the earliest counts and the others are never
run.
"""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState, create_trial

from verydeep.search._attempts import best, deaths, epochs, live, value_at
from verydeep.search._config import SearchConfig
from verydeep.search._distributions import decoded, distribution, encoded
from verydeep.search._halving import goes_on, is_rung
from verydeep.search._space import Settings, draw
from verydeep.search._storage import Store, fail, quiet_optuna

_RANDOM_FIRST = 10  # trials before TPE has something to learn from


class LostTrial(Exception):  # noqa: N818 - not an error
    """The trial was given to another worker, because this one was silent for too long."""


@dataclass(frozen=True)
class Claim:
    """A trial that this worker, and no other, is to train.

    Attributes:
        setting: Its number.
        trial_id: The attempt in Optuna's storage.
        settings: What it trains with.
        deaths: How many workers have died over it since it last got further.
        reached: How many epochs of it earlier attempts have reported.
    """

    setting: int
    trial_id: int
    settings: Settings
    deaths: int = 0
    reached: int = 0


class Study:
    """A search's trials in its storage."""

    def __init__(self, name: str, config: SearchConfig, store: Store) -> None:
        self.name, self.config, self.store = name, config, store
        with quiet_optuna():
            self.optuna = optuna.load_study(study_name=name, storage=store.storage)
        self.distributions = {field: distribution(way) for field, way in config.space.items()}

    @property
    def trials(self) -> int:
        """How many settings there are to train."""
        return int(self.optuna.user_attrs.get("trials", self.config.options.trials))

    def attempts(self) -> list[list[FrozenTrial]]:
        """Of every setting, the attempts there were, the first one first."""
        found: list[list[FrozenTrial]] = [[] for _ in range(self.trials)]
        for trial in self.optuna.get_trials(deepcopy=False):
            if trial.user_attrs["setting"] < len(found):
                found[trial.user_attrs["setting"]].append(trial)
        return found

    def unfinished(self) -> int:
        """How many settings have no result yet."""
        return sum((trial := live(tries)) is None or not trial.state.is_finished() for tries in self.attempts())

    def claim(self, worker: str) -> Claim | None:
        """Take the first setting that nobody trains or has trained; None when there is none at present."""
        with self.store.claiming():
            self.store.release_dead(self.optuna)
            for setting, tries in enumerate(self.attempts()):
                trial = live(tries) or self._add(setting, tries)
                if trial.state == TrialState.WAITING and self._take(trial, worker):
                    settings = self._settings(setting, trial)
                    return Claim(setting, trial._trial_id, settings, deaths(tries), max(map(epochs, tries), default=0))
        return None

    def _add(self, setting: int, tries: list[FrozenTrial]) -> FrozenTrial:
        """A new attempt, waiting to be taken; of those that several workers add at once, the earliest."""
        known = next((t for t in tries if t.params.keys() == self.distributions.keys()), None)
        settings = None if known is None else known.params
        if settings is None and not self._learns(setting):
            settings = encoded(self.config.space, draw(self.config.space, self.config.options.seed, setting))
        self.optuna.add_trial(
            create_trial(
                state=TrialState.WAITING,
                params=settings or {},
                distributions=self.distributions if settings else {},
                user_attrs={"setting": setting},
            )
        )
        added = live(self.attempts()[setting])
        assert added is not None
        return added

    def _take(self, trial: FrozenTrial, worker: str) -> bool:
        """Whether it is ours; of several workers who try, one succeeds."""
        self.store.beat(trial._trial_id)  # before it runs, so that a trial that runs always has a heartbeat
        try:
            taken = self.store.storage.set_trial_state_values(trial._trial_id, TrialState.RUNNING)
            if taken:
                self.store.storage.set_trial_user_attr(trial._trial_id, "worker", worker)
        except UpdateFinishedTrialError:
            return False
        return taken

    def _settings(self, setting: int, trial: FrozenTrial) -> Settings:
        params = dict(trial.params)
        if not params:
            params = self._learnt(setting, trial)
        return decoded(self.config.space, params)

    def _learns(self, setting: int) -> bool:
        return self.config.options.sampler == "tpe" and setting >= _RANDOM_FIRST

    def _learnt(self, setting: int, trial: FrozenTrial) -> dict[str, Any]:
        """What TPE suggests, kept with the trial so that whoever takes it later trains the same."""
        from optuna.samplers import TPESampler

        with quiet_optuna():
            sampler = TPESampler(seed=(self.config.options.seed * 100_003 + setting) % 2**32, constant_liar=True)
            study = optuna.load_study(study_name=self.name, storage=self.store.storage, sampler=sampler)
            found = {n: sampler.sample_independent(study, trial, n, d) for n, d in self.distributions.items()}
        for name, value in found.items():
            internal = self.distributions[name].to_internal_repr(value)
            self.store.storage.set_trial_param(trial._trial_id, name, internal, self.distributions[name])
        return found

    def report(self, claim: Claim, epoch: int, value: float | None) -> bool:
        """Add an epoch to a trial's curve; return whether successive halving ends it here."""
        with _ours(claim):
            worst = self.worst if value is None else value
            self.store.storage.set_trial_intermediate_value(claim.trial_id, epoch, worst)
            return epoch > claim.reached and self._is_outdone(claim, epoch, worst)

    def _is_outdone(self, claim: Claim, epoch: int, value: float) -> bool:
        """Whether others have done better by then; each setting counts once, however often it was begun."""
        halving = self.config.options.halving
        if halving is None or not is_rung(halving, epoch):
            return False
        found = {setting: value_at(epoch, tries) for setting, tries in enumerate(self.attempts())}
        others = [other for setting, other in found.items() if other is not None and setting != claim.setting]
        return not goes_on(value, others, halving.keep, self.config.maximise)

    def finish(self, claim: Claim, result: dict[str, Any]) -> None:
        """Record a trial's result: from here on it is counted, once."""
        curve = [line.get(self.config.metric) for line in result["curve"]]
        value = (
            best(curve, self.config.maximise) if result["status"] in ("finished", "stopped early", "pruned") else None
        )
        state = TrialState.PRUNED if result["status"] == "pruned" else TrialState.COMPLETE
        with _ours(claim):
            self.store.storage.set_trial_user_attr(claim.trial_id, "result", json.dumps(result))
            values = [self.worst if value is None else value]
            self.store.storage.set_trial_state_values(claim.trial_id, state, values)

    def leave(self, claim: Claim, died: bool = False) -> None:
        """Give a trial back: another worker, or this one later, goes on with it.

        Args:
            claim: The trial.
            died: Whether it counts as a worker's death.
        """
        try:
            self.store.storage.set_trial_user_attr(claim.trial_id, "left", not died)
        except UpdateFinishedTrialError:
            return
        fail(self.store.storage, claim.trial_id)

    @property
    def worst(self) -> float:
        """What a diverged run is worth."""
        return -math.inf if self.config.maximise else math.inf


@contextmanager
def _ours(claim: Claim) -> Iterator[None]:
    try:
        yield
    except UpdateFinishedTrialError as error:
        raise LostTrial(claim.setting) from error
