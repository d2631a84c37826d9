"""Settings that were not given, chosen for the data.

The paper's settings for its image datasets; for your own data, settings that suit its kind and size: a budget in
updates rather than epochs, because ten epochs of 150 rows are no training, and early stopping on validation data.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from verydeep.data import KNOWN_NAMES, DataConfig

if TYPE_CHECKING:  # configurations are read without torch
    from torch import nn

    from verydeep.data import Dataset
    from verydeep.training._config import ModelConfig, TrainConfig

_SMALL_KNOWN = ("digits",)  # known datasets that are trained like your own ones of the same size
DEPTH = 10  # of fully connected networks on your own data
_STACKS = ("highway-mlp", "plain-mlp", "residual-mlp", "lstm-highway")


_WORTH_SHARING = 10_000_000  # multiply-adds of a batch: a millisecond or more


def suggest_threads(model: nn.Module, batch_size: int) -> int | None:
    """One thread for small batches, where threads would mostly wait for each other; None for as many as torch uses."""
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return 1 if parameters * batch_size < _WORTH_SHARING else None


def hold_out_validation(data: DataConfig) -> DataConfig:
    """The data as training reads it: some of your own samples are held out for validation by default."""
    if data.validation is not None or data.names_validation or data.source in KNOWN_NAMES:
        return data
    return replace(data, validation="auto")


def choose_settings(config: TrainConfig, dataset: Dataset, user_supplied: bool = False) -> TrainConfig:
    """The configuration with every setting that was not given.

    Args:
        config: What the user gave.
        dataset: The data.
        user_supplied: Whether the data was given in Python, so that the configuration does not name it.
    """
    if user_supplied or config.data.source not in KNOWN_NAMES:
        return _own_settings(config, dataset)
    if config.data.source not in _SMALL_KNOWN:
        return paper_settings(config)
    rows = len(dataset.train)
    batch_size = config.batch_size or _batch_size(rows)
    lr = config.optim.lr or _learning_rate(rows, config.optim.name or "sgd", config.model.name)
    epochs = config.epochs or _epochs(_updates(rows), rows, batch_size)
    return paper_settings(replace(config, optim=replace(config.optim, lr=lr), epochs=epochs, batch_size=batch_size))


def _own_settings(config: TrainConfig, dataset: Dataset) -> TrainConfig:
    """The settings for your own data; samples of the shape (channels, height, width) are images."""
    rows, images, classes = len(dataset.train), dataset.train.x.ndim == 4, dataset.task.kind == "classification"
    optimiser = config.optim.name or ("muon" if images else "sgd")
    batch_size = config.batch_size or _batch_size(rows)
    updates = _updates(rows)
    stops_early = dataset.valid is not None and not config.distill.hint_epochs
    patience = _epochs(updates / 3, rows, batch_size) if stops_early else None
    weighed = 0 if config.class_weight else rows  # rare rows weigh much
    decay = _weight_decay(rows, dataset.task.kind) if optimiser == "sgd" else 0.1
    return replace(
        config,
        model=_own_model(config.model, images),
        optim=replace(
            config.optim,
            name=optimiser,
            lr=config.optim.lr or _learning_rate(weighed, optimiser, config.model.name),
            weight_decay=decay if config.optim.weight_decay is None else config.optim.weight_decay,
        ),
        schedule=replace(config.schedule, name=config.schedule.name or "one-cycle"),
        epochs=config.epochs or _epochs(updates, rows, batch_size),
        batch_size=batch_size,
        metric=config.metric or ("balanced_accuracy" if config.class_weight == ("balanced",) and classes else "loss"),
        evaluate_test=config.evaluate_test or "end",
        patience=patience if config.patience is None else config.patience,
    )


def _own_model(model: ModelConfig, images: bool) -> ModelConfig:
    """The network: convolutional for images, else with fewer layers than the paper's unless their number is given."""
    name = model.name or ("highway-conv" if images else "highway-mlp")
    depth = DEPTH if model.depth is None and name in _STACKS else model.depth
    return replace(model, name=name, depth=depth)


def _updates(rows: int) -> float:
    """The number of updates that training takes at most: more for more rows, but not in proportion."""
    return min(max(40 * math.sqrt(rows), 1000), 10_000)


def _batch_size(rows: int) -> int:
    return min(max(rows // 300, 32), 1000)


def _learning_rate(rows: int, optimiser: str, network: str | None) -> float:
    if optimiser == "sgd":  # small steps show early stopping more of the way that few rows need
        rate = min(max(0.002 * math.sqrt(rows), 0.02), 0.1)
        return min(rate, 0.01) if network == "residual-mlp" else rate  # its sums grow with depth and soon diverge
    return {"adam": 0.002, "muon": 0.01}[optimiser]


def _weight_decay(rows: int, task: str) -> float:
    """As in ridge regression, a penalty of the same weight counts less the more rows there are."""
    return min((5 if task == "regression" else 2) / rows, 0.05)


def _epochs(updates: float, rows: int, batch_size: int) -> int:
    """The number of epochs that come closest to a number of updates."""
    return max(1, round(updates / math.ceil(rows / batch_size)))


def complete_config(config: TrainConfig, dataset: Dataset | None = None) -> TrainConfig:
    """The configuration as `train` would run it, with every setting that was not given.

    Args:
        config: What the user gave.
        dataset: Its data; by default, it is loaded if settings depend on it.
    """
    config = replace(config, data=hold_out_validation(config.data))
    optim, schedule = config.optim, config.schedule
    needed = (config.model.name, optim.name, optim.lr, optim.weight_decay, schedule.name, config.epochs)
    if None not in (*needed, config.batch_size, config.evaluate_test):
        return config
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
        optim=replace(
            config.optim,
            name=config.optim.name or "sgd",
            lr=config.optim.lr or 0.01,
            weight_decay=config.optim.weight_decay or 0.0,
        ),
        schedule=replace(config.schedule, name=config.schedule.name or "constant"),
        epochs=config.epochs or 10,
        batch_size=config.batch_size or 100,
        evaluate_test=config.evaluate_test or "epoch",
    )
