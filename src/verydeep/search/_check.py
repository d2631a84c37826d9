"""Checks of a search before anything is trained."""

from dataclasses import replace
from pathlib import Path

from verydeep.data import Dataset
from verydeep.errors import UserError
from verydeep.search._config import GROUP, SearchConfig
from verydeep.studies import DatasetCache, ImpossibleError, check_limits, checked_config, draw, with_settings
from verydeep.training import TrainConfig, complete_config, hold_out_validation, make_model


def check_search(config: SearchConfig, root: Path | None = None) -> SearchConfig:
    """Check that data and networks exist and fit together, before any process is started; fill in what was not given.

    The metric and settings that are not given depend on the data.

    Args:
        config: The search.
        root: Folder of the known datasets.

    Returns:
        The search with its metric and all settings.

    Raises:
        UserError: Something does not fit together; the message says what.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.search import Choices, SearchConfig, check_search
        >>> from verydeep.training import TrainConfig
        >>> space = {"model.depth": Choices((3, 5))}
        >>> config = SearchConfig(TrainConfig(DataConfig("digits", validation=0.2)), space)
        >>> check_search(config).metric
        'valid_accuracy'
    """
    data = DatasetCache(root)
    config = replace(config, train=replace(config.train, data=hold_out_validation(config.train.data)))
    first, dataset = _first_possible(config, data)
    config = config.with_settings_for(dataset).with_metric(dataset.valid is not None)
    first = complete_config(first, dataset)
    if config.metric.startswith("valid_") and dataset.valid is None:
        raise UserError(f"search.metric: {config.metric} needs validation data: set data.validation, such as 0.1")
    for name, domain in config.space.items():
        if name.startswith("model."):
            check_limits(name, domain, "search.space", lambda s: make_model(with_settings(config.train, s), dataset))
    make_model(first, dataset)
    return config


def _first_possible(config: SearchConfig, data: DatasetCache) -> tuple[TrainConfig, Dataset]:
    """The first trial whose settings are compatible, and its data; others that are not will fail as trials."""
    problem: ImpossibleError | None = None
    for number in range(config.options.trials):
        settings = draw(config.space, config.options.seed, number)
        try:
            return checked_config(config.group, number, settings, Path(GROUP), data)
        except ImpossibleError as error:
            problem = problem or error
    assert problem is not None
    raise problem
