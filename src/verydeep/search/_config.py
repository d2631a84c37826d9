"""A search, as a file says it: an ordinary training configuration with a `[search]` table beside it."""

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from verydeep.config import from_dict, to_dict
from verydeep.errors import UserError, unknown
from verydeep.files import read_toml
from verydeep.search._space import Space, dotted, read_space, space_tables, with_first_choices
from verydeep.training import TrainConfig

_METRICS = ("loss", "accuracy", "train_loss", "train_accuracy", "valid_loss", "valid_accuracy")


@dataclass(frozen=True)
class Halving:
    """Successive halving: after so many epochs, and then each time training is that many times longer, some go on.

    Attributes:
        first: Epochs before a trial is first compared with the others.
        keep: One in so many goes on; the next comparison is after so many times the epochs.
    """

    first: int = 1
    keep: int = 3

    def __post_init__(self) -> None:
        if self.first < 1 or self.keep < 2:
            raise UserError(f"halving: first must be at least 1 and keep at least 2, got {self.first} and {self.keep}")


@dataclass(frozen=True)
class Options:
    """How is searched.

    Attributes:
        metric: What is best: a loss (the lowest) or an accuracy (the highest) of the epoch where it is best. Unless
            given, the validation accuracy; without validation data, the training loss. The test set decides nothing.
        sampler: At random as in the paper, or by Optuna's TPE, which learns from the trials before.
        seed: Decides the settings of every trial.
        trials: How many.
        halving: Stop trials early that are worse than others; never, unless given.
    """

    metric: str = ""
    sampler: Literal["random", "tpe"] = "random"
    seed: int = 0
    trials: int = 100
    halving: Halving | None = None

    def __post_init__(self) -> None:
        if self.metric.startswith("test_"):
            raise UserError(f"search.metric: {self.metric} would choose by the test set; take valid_accuracy")
        if self.metric and self.metric not in _METRICS:
            raise unknown("metric", self.metric, _METRICS)
        if self.trials < 1:
            raise UserError(f"search.trials must be at least 1, got {self.trials}")


@dataclass(frozen=True)
class SearchConfig:
    """A search: what is trained, what is varied, and how."""

    train: TrainConfig
    space: Space
    options: Options

    @property
    def metric(self) -> str:
        """What is best; data with validation samples of its own is known only to `judged`, which loads it."""
        if self.options.metric:
            return self.options.metric
        return self._usual(self.train.data.validation is not None or self.train.data.valid_path is not None)

    def judged(self, validated: bool) -> "SearchConfig":
        """The same search with its metric written down, now that it is known whether there is validation data."""
        metric = self.options.metric or self._usual(validated)
        return replace(self, options=replace(self.options, metric=metric))

    def _usual(self, validated: bool) -> str:
        return "valid_accuracy" if validated else "train_loss" if self.train.evaluate_train else "loss"

    @property
    def maximise(self) -> bool:
        """Whether more of the metric is better."""
        return self.metric.endswith("accuracy")

    def as_dict(self) -> dict[str, Any]:
        """Plain values that `search_config` reads back."""
        return {**to_dict(self.train), "search": {**to_dict(self.options), "space": space_tables(self.space)}}


def read_search(path: str | Path) -> SearchConfig:
    """A search's configuration file."""
    return search_config(read_toml(Path(path)), str(path))


def search_config(values: dict[str, Any], where: str) -> SearchConfig:
    """A search from plain values; `where` names the place in errors."""
    table, rest = values.get("search"), {key: value for key, value in values.items() if key != "search"}
    if not isinstance(table, dict):
        known = {field.name for field in fields(TrainConfig)} | {"search"}
        if wrong := [key for key in rest if key not in known]:
            raise unknown(f"key in {where}", wrong[0], known)
        raise UserError(f"{where}: no [search.space] table, so there is nothing to search")
    train, filled = _bases(rest, table.get("space", {}), where)
    options = from_dict(Options, {k: v for k, v in table.items() if k != "space"}, f"{where}: search")
    config = SearchConfig(train, read_space(table.get("space", {}), filled, "search.space"), options)
    if config.metric.startswith("train_") and not train.evaluate_train:
        raise UserError(f"search.metric: {config.metric} needs evaluate_train = true")
    return config


def _bases(values: dict[str, Any], space: object, where: str) -> tuple[TrainConfig, TrainConfig]:
    """What every trial has in common, and the same with a choice for each field that the space alone gives."""
    try:
        filled = from_dict(TrainConfig, with_first_choices(values, space if isinstance(space, dict) else {}), where)
    except UserError:  # the space is at fault, and `read_space` says so, or the base
        filled = from_dict(TrainConfig, values, where)
    try:
        return from_dict(TrainConfig, values, where), filled
    except UserError:
        return filled, filled


def differences(before: SearchConfig, now: SearchConfig) -> list[str]:
    """What two searches do not have in common; more trials of the same search are no difference."""
    old, new = (dotted(config.as_dict()) | {"search.metric": config.metric} for config in (before, now))
    return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name) and name != _TRIALS)


_TRIALS = "search.trials"
