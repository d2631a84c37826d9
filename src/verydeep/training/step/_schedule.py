"""Learning-rate schedules as functions of the position in training, so that there is no state to save."""

import math
from dataclasses import dataclass

from verydeep.training._config import ScheduleConfig, TrainConfig


@dataclass(frozen=True)
class Stage:
    """Epochs that go through the schedule once. Only training with hints has two stages; other training has one.

    Attributes:
        first: The first epoch, counted from 0.
        epochs: How many there are.
    """

    first: int
    epochs: int

    @classmethod
    def at(cls, config: TrainConfig, epoch: int) -> "Stage":
        """The stage that an epoch belongs to."""
        hints = config.distill.hint_epochs
        return cls(0, hints) if epoch < hints else cls(hints, config.epochs - hints)

    def fraction(self, epoch: int, batch: int, batches: int) -> float:
        """The fraction of the stage's steps that are done, from 0 to 1."""
        return (epoch - self.first + batch / batches) / self.epochs


def learning_rate_factor(config: TrainConfig, stage: Stage, epoch: int, fraction: float) -> float:
    """The factor on the learning rate at a position; each stage goes through the whole schedule."""
    return schedule_factor(config.schedule, (epoch - stage.first) * config.epochs / stage.epochs, fraction)


def schedule_factor(schedule: ScheduleConfig, epoch: float, fraction: float) -> float:
    """The factor on the learning rate.

    Args:
        schedule: Which schedule.
        epoch: Epochs completed, out of all epochs of the run.
        fraction: The fraction of all steps completed, from 0 to 1.
    """
    match schedule.name:
        case "exponential":
            return _at_start(schedule, epoch) * float(schedule.factor**epoch)
        case "multistep":
            return _at_start(schedule, epoch) * schedule.factor ** sum(each <= epoch for each in schedule.milestones)
        case "one-cycle" | "cosine" if fraction < schedule.warmup:
            return fraction / schedule.warmup
        case "one-cycle":
            return 1 - (fraction - schedule.warmup) / (1 - schedule.warmup)
        case "cosine":
            return (1 + math.cos(math.pi * (fraction - schedule.warmup) / (1 - schedule.warmup))) / 2
        case _:
            return _at_start(schedule, epoch)


def _at_start(schedule: ScheduleConfig, epoch: float) -> float:
    return schedule.first_epoch if epoch < 1 else 1.0
