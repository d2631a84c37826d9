"""Training: runs that can be killed at any instant and resumed with bit-identical results.

`train` takes a `TrainConfig` and returns a `Run`, a folder with the configuration, metrics, weights and checkpoints;
`resume` continues one. `_trainer` is the training loop, `step/` holds the parts of one step, `run/` everything on disk,
and `seeds/` trains one configuration with several seeds. `_evaluate` measures a network, `_progress` is what people see
during training, and `_interrupt` handles Ctrl-C.
"""

from verydeep.training._config import DistillConfig, ModelConfig, OptimConfig, ScheduleConfig, TrainConfig, read_config
from verydeep.training._evaluate import Confusion, confusion, evaluate
from verydeep.training._interrupt import Interrupt, interruptible
from verydeep.training._progress import ProgressBar, ProgressLines, TrainingProgress, clock, describe, make_progress
from verydeep.training._tensorboard import TensorBoard
from verydeep.training._train import Interrupted, make_model, resume, train
from verydeep.training.run._checkpoint import Position
from verydeep.training.run._derived_run import derive_run, derived_config
from verydeep.training.run._environment import environment
from verydeep.training.run._listing import RunInfo, list_runs, list_studies
from verydeep.training.run._run import Run, require_free_folder
from verydeep.training.run._run_data import RunData, load_data, load_own, split_of
from verydeep.training.seeds._seeds_folder import Seeds
from verydeep.training.seeds._seeds_progress import SeedsProgress, make_seeds_progress
from verydeep.training.seeds._train_seeds import SeedsInterrupted, resume_seeds, train_seeds
from verydeep.training.step._process_group import ProcessGroup

__all__ = [
    "Confusion",
    "DistillConfig",
    "Interrupt",
    "Interrupted",
    "ModelConfig",
    "OptimConfig",
    "Position",
    "ProcessGroup",
    "ProgressBar",
    "ProgressLines",
    "Run",
    "RunData",
    "RunInfo",
    "ScheduleConfig",
    "Seeds",
    "SeedsInterrupted",
    "SeedsProgress",
    "TensorBoard",
    "TrainConfig",
    "TrainingProgress",
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
    "make_progress",
    "make_seeds_progress",
    "read_config",
    "require_free_folder",
    "resume",
    "resume_seeds",
    "split_of",
    "train",
    "train_seeds",
]
