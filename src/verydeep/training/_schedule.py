"""Learning-rate schedules as functions of where training stands, so that there is nothing to save or restore."""

import math

from verydeep.training._config import ScheduleConfig


def rate(schedule: ScheduleConfig, epoch: float, progress: float) -> float:
    """The factor on the learning rate.

    Args:
        schedule: Which schedule.
        epoch: Epochs completed; in a stage of a run, as if the stage were as long as the run.
        progress: The share of all steps completed, 0 to 1.
    """
    match schedule.name:
        case "exponential":
            return float(schedule.factor**epoch)
        case "multistep":
            return schedule.factor ** sum(milestone <= epoch for milestone in schedule.milestones)
        case "one-cycle" | "cosine" if progress < schedule.warmup:
            return progress / schedule.warmup
        case "one-cycle":
            return 1 - (progress - schedule.warmup) / (1 - schedule.warmup)
        case "cosine":
            return (1 + math.cos(math.pi * (progress - schedule.warmup) / (1 - schedule.warmup))) / 2
        case _:
            return 1.0
