"""Settings that were not given, chosen for the data.

The paper's settings for its image datasets; for your own data, settings that suit its kind and size: a budget in
updates rather than epochs, because ten epochs of 150 rows are no training, and early stopping on validation data.
"""

import math
from dataclasses import replace

from verydeep.data import KNOWN_NAMES, DataConfig, Dataset
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
    known = config.data.source in KNOWN_NAMES and not user_supplied
    return paper_settings(config)


def paper_settings(config: TrainConfig) -> TrainConfig:
    """The configuration with the settings for known datasets in place of those that were not given."""
    return replace(
        config,
        model=replace(config.model, name=config.model.name or "highway-mlp"),
        optim=replace(config.optim, lr=config.optim.lr or 0.01),
        epochs=config.epochs or 10,
        batch_size=config.batch_size or 100,
        metric=config.metric or "accuracy",
        evaluate_test=config.evaluate_test or "epoch",
    )
