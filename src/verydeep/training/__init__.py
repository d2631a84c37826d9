"""Training: runs that can be killed at any instant and continued bit for bit."""

from verydeep.training._checkpoint import Position
from verydeep.training._config import DistillConfig, ModelConfig, OptimConfig, ScheduleConfig, TrainConfig, read_config
from verydeep.training._confusion import Confusion, confusion
from verydeep.training._data import RunData, load_data, load_own, split_of
from verydeep.training._derive import derive_run, derived_config
from verydeep.training._environment import environment
from verydeep.training._evaluate import Evaluation, evaluate
from verydeep.training._interrupt import Interrupt, interruptible
from verydeep.training._report import Bar, Lines, Report, clock, describe, make_report
from verydeep.training._run import Run, require_free_folder
from verydeep.training._runs import RunInfo, list_runs, list_studies
from verydeep.training._seeds import SeedsInterrupted, resume_seeds, train_seeds
from verydeep.training._seeds_folder import Seeds
from verydeep.training._seeds_report import SeedsReport, make_seeds_report
from verydeep.training._tensorboard import TensorBoard
from verydeep.training._train import Interrupted, make_model, resume, train
from verydeep.training._world import ProcessGroup

__all__ = [
    "Bar",
    "Confusion",
    "DistillConfig",
    "Evaluation",
    "Interrupt",
    "Interrupted",
    "Lines",
    "ModelConfig",
    "OptimConfig",
    "Position",
    "ProcessGroup",
    "Report",
    "Run",
    "RunData",
    "RunInfo",
    "ScheduleConfig",
    "Seeds",
    "SeedsInterrupted",
    "SeedsReport",
    "TensorBoard",
    "TrainConfig",
    "clock",
    "confusion",
    "derive_run",
    "derived_config",
    "describe",
    "environment",
    "evaluate",
    "interruptible",
    "list_runs",
    "list_studies",
    "load_data",
    "load_own",
    "make_model",
    "make_report",
    "make_seeds_report",
    "read_config",
    "require_free_folder",
    "resume",
    "resume_seeds",
    "split_of",
    "train",
    "train_seeds",
]
