"""Settings that were not given, chosen for the data.

The paper's settings for its image datasets; for your own data, settings that suit its kind and size: a budget in
updates rather than epochs, because ten epochs of 150 rows are no training, and early stopping on validation data.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from verydeep.data import KNOWN_NAMES, DataConfig

if TYPE_CHECKING:  # configurations are read without torch
    from verydeep.data import Dataset
    from verydeep.training._config import TrainConfig

_SMALL_KNOWN = ("digits",)  # known datasets that are trained like your own ones of the same size


def hold_out_validation(data: DataConfig) -> DataConfig:
    """The data as training reads it: some of your own samples are held out for validation by default."""
    if data.validation is not None or data.valid_path is not None or data.source in KNOWN_NAMES:
        return data
    return replace(data, validation="auto")


def choose_settings(config: TrainConfig, dataset: Dataset, user_supplied: bool = False) -> TrainConfig:
    """The configuration with every setting that was not given.

    Args:
        config: What the user gave.
        dataset: The data.
        user_supplied: Whether the data was given in Python, so that the configuration does not name it.
    """
    return paper_settings(config)


def complete_config(config: TrainConfig, dataset: Dataset | None = None) -> TrainConfig:
    """The configuration as `train` would run it, with every setting that was not given.

    Args:
        config: What the user gave.
        dataset: Its data; by default, it is loaded if settings depend on it.
    """
    config = replace(config, data=hold_out_validation(config.data))
    if None not in (config.model.name, config.optim.lr, config.epochs, config.batch_size):
        return config if config.metric else choose_settings(config, dataset) if dataset else config
    if dataset is None and is_paper_dataset(config.data):
        return paper_settings(config)
    from verydeep.data import load_dataset

    return choose_settings(config, load_dataset(config.data) if dataset is None else dataset)


def is_paper_dataset(data: DataConfig) -> bool:
    """Whether the data is one of the paper's, for which settings do not depend on its size."""
    return data.source in KNOWN_NAMES and data.source not in _SMALL_KNOWN


def paper_settings(config: TrainConfig) -> TrainConfig:
    """The configuration with the settings for known datasets in place of those that were not given."""
    return replace(
        config,
        model=replace(config.model, name=config.model.name or "highway-mlp"),
        optim=replace(config.optim, lr=config.optim.lr or 0.01),
        epochs=config.epochs or 10,
        batch_size=config.batch_size or 100,
        evaluate_test=config.evaluate_test or "epoch",
    )
