"""What is going to be trained, in a few lines that a person checks at a glance before it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from verydeep.data import KNOWN_NAMES, TablePreparation
from verydeep.errors import shorten
from verydeep.kernels import has_bfloat16
from verydeep.models import Network
from verydeep.words import MEASURES, is_number, plural

if TYPE_CHECKING:
    from torch import nn

    from verydeep.data import Dataset
    from verydeep.training._config import TrainConfig
    from verydeep.training._threads import ChosenThreads

_MOST_NAMES = 5  # of classes, labels or targets


def summary_lines(
    config: TrainConfig,
    model: nn.Module,
    dataset: Dataset,
    batches: int,
    is_own: bool,
    threads: ChosenThreads | None = None,
) -> list[str]:
    """Describe the data, the task, the splits, the network, the number of updates and the threads.

    Args:
        config: The completed configuration.
        model: The network.
        dataset: The data.
        batches: The number of updates per epoch.
        is_own: Whether the data was given in Python.
        threads: The number of threads if it was chosen and not given.
    """
    named = dataset.name if is_own else config.data.source
    network = config.model.name if isinstance(model, Network) else type(model).__name__
    lines = [*_data(dataset), _target(config, dataset), _splits(dataset), _network(config, model)]
    lines += [_updates(config, batches), *_precision(config, model), *([] if threads is None else [_threads(threads)])]
    return [f"training {network} on {named}", *(f"  {line}" for line in lines)]


def _data(dataset: Dataset) -> list[str]:
    rows = sum(len(split) for split in (dataset.train, dataset.valid, dataset.test) if split is not None)
    shape = tuple(dataset.train.x.shape[1:])
    if isinstance(dataset.preparation, TablePreparation):
        return [f"{plural(rows, 'row')}, {plural(shape[0], 'feature')}", *dataset.preparation.describe()]
    if len(shape) == 3:
        channels = {1: "grey", 3: "colour"}.get(shape[0], f"{shape[0]}-channel")
        return [f"{rows:,} {channels} images of {shape[2]} x {shape[1]} pixels"]
    return [f"{plural(rows, 'sample')} of shape {shape}"]


def _target(config: TrainConfig, dataset: Dataset) -> str:
    """The task, how it can be overridden, and the shares or ranges of the target."""
    task, y = dataset.task, dataset.train.y
    columns = f"target {_listed(task.target)}: " if task.target else ""
    given = config.data.task is not None or config.data.source in KNOWN_NAMES
    if task.kind == "classification":
        counts = torch.bincount(y, minlength=task.outputs)
        largest = int(counts.argmax())
        share = f"{counts[largest] / len(y):.1%} of the training samples are {shorten(task.names[largest])}"
        may_be_number = not given and all(is_number(name) for name in task.names) and task.outputs > 2
        other = "; for numbers: --task regression" if may_be_number and task.target else ""
        return f"{columns}classification, {plural(task.outputs, 'class').replace('classs', 'classes')}; {share}{other}"
    if task.kind == "multilabel":
        ones = [f"{shorten(name)} {share:.1%}" for name, share in zip(task.names, y.mean(0).tolist(), strict=True)]
        return f"multilabel, {plural(task.outputs, 'label')}; share of the training samples that have it: {_cut(ones)}"
    original = task.restore(y)
    low, high = original.amin(0).tolist(), original.amax(0).tolist()
    ranges = [f"{a:g} to {b:g}" for a, b in zip(low, high, strict=True)]
    named = (
        ranges if task.outputs == 1 else [f"{shorten(name)} {r}" for name, r in zip(task.names, ranges, strict=True)]
    )
    rounded = original.round()
    whole = task.target and not given and task.outputs == 1 and torch.allclose(original, rounded, rtol=1e-6)
    values = f", {len(rounded.unique()):,} different whole numbers; for classes: --task classification" * bool(whole)
    return f"{columns if task.outputs == 1 else ''}regression, {_cut(named)}{values}"


def _splits(dataset: Dataset) -> str:
    valid = f"{len(dataset.valid):,} for validation" if dataset.valid is not None else "none for validation"
    return f"{len(dataset.train):,} for training, {valid}, {len(dataset.test):,} for testing"


def _network(config: TrainConfig, model: nn.Module) -> str:
    parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
    parts = [f"{parameters:,} parameters"]
    if isinstance(model, Network):
        depth, width = model.config.depth, getattr(model.config, "width", None)
        layers = [plural(depth, "hidden layer")] + ([f"{width} units each"] if isinstance(width, int) else [])
        parts = [*(layers if depth else ["a linear model"]), *parts]
    return ", ".join(parts)


def _updates(config: TrainConfig, batches: int) -> str:
    total = f"{config.epochs * batches:,} updates"
    text = f"{total}: {plural(config.epochs, 'epoch')} of {plural(batches, 'batch').replace('batchs', 'batches')} "
    text += f"of {config.batch_size:,}; {config.optim.name}, learning rate {config.optim.lr:g}"
    if config.patience and config.patience < config.epochs:
        metric = config.metric or "accuracy"
        name = MEASURES.get(metric, metric.replace("_", " "))
        text += f"; stops early after {plural(config.patience, 'epoch')} without a better validation {name}"
    return text


def _precision(config: TrainConfig, model: nn.Module) -> list[str]:
    """A warning if bfloat16 costs time instead of saving it."""
    on_cpu = all(parameter.is_cpu for parameter in model.parameters())
    if config.precision == "float32" or not on_cpu or has_bfloat16():
        return []
    return ["bfloat16 is probably slower than float32 here: this processor has no instructions for it (AVX512-BF16)"]


def _threads(threads: ChosenThreads) -> str:
    return f"{plural(threads.number, 'thread')}: {threads.reason}; another number: --threads N"


def _listed(names: tuple[str, ...]) -> str:
    return _cut([shorten(name) for name in names])


def _cut(parts: list[str]) -> str:
    more = f" and {len(parts) - _MOST_NAMES} more" if len(parts) > _MOST_NAMES else ""
    return ", ".join(parts[:_MOST_NAMES]) + more
