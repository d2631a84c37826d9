"""A study: the trials of a search, and the attempts at each of them.

A trial here is a number from 0 to `trials - 1`, which decides its settings. In Optuna, each attempt at it is a separate
trial. An attempt abandoned because its worker died or was stopped is marked as failed there, and the trial is free
again. If two workers add an attempt at the same instant, the earlier one counts and the other is never run.
"""

import math
import os
from typing import TYPE_CHECKING, Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from verydeep.search._config import SearchConfig
from verydeep.search._sampling import optuna_distributions
from verydeep.search.storage._store import Store, quiet_optuna

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Study:
    """The trials of a search in their storage. `start_study` creates one, and `open_study` opens it.

    Args:
        name: Its name in the storage.
        config: The search.
        store: The storage.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.search import Choices, Options, SearchConfig, start_study
        >>> from verydeep.training import TrainConfig
        >>> base, space = TrainConfig(DataConfig("digits")), {"model.depth": Choices((3, 5))}
        >>> config = SearchConfig(base, space, Options(trials=2))
        >>> study = start_study("runs/depths", config)
        >>> study.unfinished()
        2
    """

    def __init__(self, name: str, config: SearchConfig, store: Store) -> None:
        self.name, self.config, self.store = name, config, store
        with quiet_optuna():
            self.optuna = optuna.load_study(study_name=name, storage=store.storage)
        self.distributions = optuna_distributions(config.space)

    def __repr__(self) -> str:
        count, names = self.config.options.trials, list(self.config.space)
        trials = f"{count:,} {'trial' if count == 1 else 'trials'}"
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        return f"Study({self.name!r}, {trials} of {', '.join(names[:3])}{more}, by {self.config.metric})"

    def _repr_html_(self) -> str:
        from verydeep.search._display import study_html

        return study_html(self)

    def plot(self, path: str | os.PathLike[str] | None = None, **options: Any) -> "Figure":  # noqa: ANN401
        """Draw the result of every trial against each setting. A notebook shows the figure.

        Args:
            path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
            **options: Options of `verydeep.report.plot_slices`, such as `theme="dark"`.
        """
        from verydeep.search._display import plot_study

        return plot_study(self, path, **options)

    @property
    def trials(self) -> int:
        """The number of trials."""
        return int(self.optuna.user_attrs.get("trials", self.config.options.trials))

    def attempts(self) -> list[list[FrozenTrial]]:
        """The attempts at every trial, the first one first."""
        found: list[list[FrozenTrial]] = [[] for _ in range(self.trials)]
        for trial in self.optuna.get_trials(deepcopy=False):
            if trial.user_attrs["setting"] < len(found):
                found[trial.user_attrs["setting"]].append(trial)
        return found

    def unfinished(self) -> int:
        """The number of trials without a result."""
        current = [current_attempt(attempts) for attempts in self.attempts()]
        return sum(attempt is None or not attempt.state.is_finished() for attempt in current)

    @property
    def worst(self) -> float:
        """The value of a diverged run."""
        return -math.inf if self.config.maximise else math.inf


def current_attempt(attempts: list[FrozenTrial]) -> FrozenTrial | None:
    """The attempt that counts: the earliest one that was not abandoned."""
    return next((attempt for attempt in attempts if attempt.state != TrialState.FAIL), None)


def epochs_reported(attempt: FrozenTrial) -> int:
    """The number of epochs that an attempt has reported."""
    return max(attempt.intermediate_values, default=0)


def epochs_reached(attempts: list[FrozenTrial]) -> int:
    """The number of epochs that any attempt has reported."""
    return max(map(epochs_reported, attempts), default=0)


def count_deaths(attempts: list[FrozenTrial]) -> int:
    """How many workers have died while training a trial since an attempt last got further than those before it."""
    count = reached = 0
    for attempt in attempts:
        if epochs_reported(attempt) > reached:  # a long training may be killed often through no fault of its settings
            count, reached = 0, epochs_reported(attempt)
        count += attempt.state == TrialState.FAIL and not attempt.user_attrs.get("left")
    return count


def value_at(epoch: int, attempts: list[FrozenTrial]) -> float | None:
    """A trial's value after an epoch, which is the same in all attempts that got so far."""
    return next((a.intermediate_values[epoch] for a in attempts if epoch in a.intermediate_values), None)


def best_value(curve: list[float | None], maximise: bool) -> float | None:
    """The best value of a curve; None if it has none."""
    values = [value for value in curve if value is not None]
    return (max if maximise else min)(values) if values else None
