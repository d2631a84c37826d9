"""The configuration of a search: an ordinary training configuration with a `[search]` table."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from verydeep.config import find_config, from_dict, read_settings, to_dict
from verydeep.data import KNOWN_NAMES
from verydeep.errors import UserError, shorten, unknown
from verydeep.studies import (
    Group,
    Halving,
    Sampling,
    Space,
    Stages,
    default_metric,
    read_space,
    space_tables,
    with_current_names,
    with_first_choices,
)
from verydeep.training import TrainConfig, complete_config
from verydeep.words import higher_is_better, measure_of

if TYPE_CHECKING:
    from verydeep.data import Dataset

Hint = Callable[[str], None]
_MOST_TRIALS = 100_000
GROUP = "trials"  # the name of a search's group

_MEASURES = ("loss", "accuracy", "r2")
_ON_VALIDATION_DATA = ("balanced_accuracy", "f1", "roc_auc", "average_precision", "log_loss", "rmse", "mae")
_METRICS = (
    *(f"{split}{measure}" for split in ("", "train_", "valid_") for measure in _MEASURES),
    *(f"valid_{measure}" for measure in _ON_VALIDATION_DATA),
)


@dataclass(frozen=True)
class Options:
    """How settings are searched: the `[search]` table of a file.

    Attributes:
        metric: Metric by which trials are ranked, taken at their best epoch, such as `valid_accuracy`, `valid_loss` or
            `valid_roc_auc`. The default is the metric that selects the best epoch of a training or, without validation
            data, the training loss. Metrics of the test set are refused.
        sampler: `random` (as in the paper) or `tpe` (Optuna's sampler, which learns from earlier trials).
        seed: Seed for drawing settings.
        trials: The number of trials.
        halving: Successive halving, which stops the worse trials early; off by default.

    Example:
        >>> from verydeep.search import Halving, Options
        >>> Options(trials=30, halving=Halving(first=2, keep=3)).sampler
        'random'
    """

    metric: str = ""
    sampler: Literal["random", "tpe"] = "random"
    seed: int = 0
    trials: int = 100
    halving: Halving | None = None

    def __post_init__(self) -> None:
        if self.metric.startswith("test_"):
            raise UserError(f"search.metric: {self.metric} would select on the test set; use valid_accuracy")
        if self.metric and self.metric not in _METRICS:
            raise unknown("metric", self.metric, _METRICS)
        if self.trials < 1:
            raise UserError(f"search.trials must be at least 1, got {self.trials}")
        if self.trials > _MOST_TRIALS:
            raise UserError(f"search.trials must be at most {_MOST_TRIALS:,}, got {shorten(self.trials)}")


@dataclass(frozen=True)
class SearchConfig:
    """A search: what is trained, which settings vary, and how they are searched.

    Attributes:
        train: The settings that all trials have in common.
        space: The settings that vary, by name.
        options: How they are searched.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.search import Choices, Options, Range, SearchConfig
        >>> from verydeep.training import TrainConfig
        >>> space = {"optim.lr": Range(0.001, 1.0, log=True), "model.depth": Choices((5, 10, 20))}
        >>> config = SearchConfig(TrainConfig(DataConfig("digits", validation=0.2)), space, Options(trials=20))
        >>> config.metric, config.maximise
        ('valid_accuracy', True)
    """

    train: TrainConfig
    space: Space
    options: Options = Options()

    @property
    def metric(self) -> str:
        """What trials are compared by, as far as it is known before the data is loaded; see `with_metric`."""
        if self.options.metric:
            return self.options.metric
        return default_metric(self.train, self.train.data.names_validation)

    def with_metric(self, validated: bool) -> "SearchConfig":
        """The same search with its metric filled in, given whether the data has validation samples."""
        metric = self.options.metric or default_metric(self.train, validated)
        train, measure = self.train, measure_of(metric)
        if measure in _ON_VALIDATION_DATA and train.metric != measure:
            raise UserError(f"search.metric: {metric} is only computed if metric = '{measure}', not '{train.metric}'")
        return replace(self, options=replace(self.options, metric=metric))

    def with_settings_for(self, dataset: "Dataset") -> "SearchConfig":
        """The same search with every setting that was not given chosen for the data."""
        return replace(self, train=complete_config(self._common_settings(), dataset))

    def _common_settings(self) -> TrainConfig:
        """The settings of all trials; those that were not given follow the metric of the search."""
        train, measure = self.train, measure_of(self.options.metric)
        if train.evaluate_test is None and train.data.source not in KNOWN_NAMES:
            train = replace(train, evaluate_test="never")  # or one would choose among trials by looking at it
        if train.metric is None and self.options.metric.startswith("valid_") and measure in _ON_VALIDATION_DATA:
            train = replace(train, metric=measure)
        return train

    @property
    def maximise(self) -> bool:
        """Whether higher values of the metric are better."""
        return higher_is_better(self.metric)

    @property
    def group(self) -> Group:
        """The search as the group of a study."""
        options = self.options
        sampling = Sampling(self.space, options.trials, options.seed, options.sampler)
        return Group(GROUP, self._common_settings(), sampling=sampling, halving=options.halving)

    @classmethod
    def from_group(cls, group: Group, metric: str) -> "SearchConfig":
        """The search that a group stands for."""
        sampling, halving = group.sampling, group.halving
        assert sampling is not None
        assert not isinstance(halving, Stages)
        options = Options(metric, sampling.sampler, sampling.seed, sampling.trials, halving)
        return cls(group.config, sampling.space, options)

    def as_dict(self) -> dict[str, Any]:
        """Plain values that `search_config` reads back."""
        return {**to_dict(self.train), "search": {**to_dict(self.options), "space": space_tables(self.space)}}


def read_search(path: str | Path) -> SearchConfig:
    """Read a search from a TOML file; settings under a former name are read with a warning.

    Args:
        path: The file, or the name of a configuration that comes with verydeep, such as `search-digits`.

    Example:
        >>> from verydeep.search import read_search
        >>> config = read_search("search-digits")
        >>> config.options.trials, list(config.space)
        (30, ['optim.lr', 'model.depth', 'model.activation', 'model.gate_bias'])
    """
    hints: list[str] = []
    file = find_config(path)
    config = search_config(read_settings(file), str(file), hints.append)
    for line in hints:
        warnings.warn(line, FutureWarning, stacklevel=2)
    return config


def search_config(values: dict[str, Any], where: str, hint: Hint | None = None) -> SearchConfig:
    """Read a search from plain values.

    Args:
        values: What a file or a stored study contains.
        where: What error messages call it.
        hint: Called with one line for each setting that has a former name.
    """
    table = values.get("search")
    rest = with_current_names({key: value for key, value in values.items() if key != "search"}, where, hint)
    if not isinstance(table, dict):
        known = {field.name for field in fields(TrainConfig)}
        if near := get_close_matches("search", rest.keys() - known, n=1):
            raise UserError(f"{where}: unknown table '{near[0]}'; did you mean [search]?")
        from_dict(TrainConfig, rest, where)
        raise UserError(f"{where}: [search.space] is missing or empty: name at least one setting to search")
    train, filled = _base_configs(rest, table.get("space", {}), where)
    options = from_dict(Options, {k: v for k, v in table.items() if k != "space"}, f"{where}: search")
    space_hint = None if hint is None else lambda line: hint(f"{where}: {line}")
    space = read_space(table.get("space", {}), filled, "search.space", space_hint)
    config = SearchConfig(train, space, options)
    if config.metric.startswith("train_") and not train.evaluate_train:
        raise UserError(f"search.metric: {config.metric} needs evaluate_train = true")
    return config


def _base_configs(values: dict[str, Any], space: object, where: str) -> tuple[TrainConfig, TrainConfig]:
    """What every trial has in common, and the same with a choice for each field that only the space gives."""
    try:
        choices = with_first_choices(values, space if isinstance(space, dict) else {})
        filled = from_dict(TrainConfig, choices, where)
    except UserError:  # if the space is at fault, `read_space` reports it
        filled = from_dict(TrainConfig, values, where)
    try:
        return from_dict(TrainConfig, values, where), filled
    except UserError:
        return filled, filled
