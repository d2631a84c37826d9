"""Training: runs that can be killed at any instant and continued bit for bit."""

from verydeep.training._checkpoint import Position
from verydeep.training._config import ModelConfig, OptimConfig, ScheduleConfig, TrainConfig
from verydeep.training._evaluate import Evaluation, evaluate
from verydeep.training._interrupt import Interrupt, interruptible
from verydeep.training._report import Bar, Lines, Report, clock, describe, make_report
from verydeep.training._run import Run
from verydeep.training._train import Interrupted, make_model, resume, train
from verydeep.training._world import World

__all__ = [
    "Bar",
    "Evaluation",
    "Interrupt",
    "Interrupted",
    "Lines",
    "ModelConfig",
    "OptimConfig",
    "Position",
    "Report",
    "Run",
    "ScheduleConfig",
    "TrainConfig",
    "World",
    "clock",
    "describe",
    "evaluate",
    "interruptible",
    "make_model",
    "make_report",
    "resume",
    "train",
]
