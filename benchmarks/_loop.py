"""The trainer's own loop on random images, for any number of steps."""

from pathlib import Path

import torch

from verydeep.data import Dataset, Split
from verydeep.training import Interrupt, ProcessGroup, Run, TrainConfig, TrainingProgress, make_model
from verydeep.training._trainer import Trainer


def random_images(samples: int, shape: tuple[int, ...], classes: int) -> Dataset:
    x, y = torch.rand(samples, *shape), torch.randint(0, classes, (samples,))
    names = tuple(str(number) for number in range(classes))
    return Dataset("random", Split(x, y), None, Split(x[:100], y[:100]), names)


def make_trainer(config: TrainConfig, data: Dataset, folder: str, progress: TrainingProgress) -> Trainer:
    model = make_model(config, data)
    run = Run.create(Path(folder) / "run", config, model, {})
    return Trainer(run, model, data, ProcessGroup(0, 1, torch.device("cpu")), progress)


def train_steps(trainer: Trainer, epoch: int, steps: int) -> None:
    """Train the last steps of an epoch, so that the start of an epoch (the order of samples) is timed as well."""
    trainer.state.position.epoch, trainer.state.position.batch = epoch, len(trainer.batches) - steps
    assert not trainer.train_epoch(Interrupt())
    assert trainer.state.position.batch == len(trainer.batches)
