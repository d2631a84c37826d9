"""Training: runs that can be killed at any instant and resumed with bit-identical results.

`train` takes a `TrainConfig` and returns a `Run`, a folder with the configuration, metrics, weights and checkpoints;
`resume` continues one. `_trainer` is the training loop, `step/` holds the parts of one step, `run/` everything on disk,
`evaluation/` measures a network, and `progress/` is what people see during training. `_interrupt` handles Ctrl-C.
"""

from typing import TYPE_CHECKING

from verydeep.lazy import lazy_imports

if TYPE_CHECKING:
    from verydeep.training._attention import Attention, learn_attention
    from verydeep.training._config import (
        CompanionConfig,
        DistillConfig,
        ModelConfig,
        OptimConfig,
        ScheduleConfig,
        TrainConfig,
        read_config,
    )
    from verydeep.training._continue import (
        chosen_settings as chosen_settings,
        differing_settings as differing_settings,
    )
    from verydeep.training._defaults import (
        choose_settings as choose_settings,
        complete_config as complete_config,
        hold_out_validation as hold_out_validation,
        is_paper_dataset as is_paper_dataset,
        suggest_threads as suggest_threads,
    )
    from verydeep.training._extend import check_new_total as check_new_total
    from verydeep.training._fit import Interrupted
    from verydeep.training._initial_weights import load_initial_weights as load_initial_weights
    from verydeep.training._interrupt import Interrupt as Interrupt, interruptible as interruptible
    from verydeep.training._objective import make_objective as make_objective, run_objective as run_objective
    from verydeep.training._threads import choose_threads as choose_threads
    from verydeep.training._torchrun import world_size as world_size
    from verydeep.training._train import make_model as make_model, resume, train
    from verydeep.training._train_in_memory import (
        TrainedNetwork as TrainedNetwork,
        train_in_memory as train_in_memory,
    )
    from verydeep.training.evaluation._estimates import (
        Calibration,
        Estimate,
        Evaluation,
        estimate_text as estimate_text,
        evaluate_metrics,
    )
    from verydeep.training.evaluation._evaluate import Confusion, confusion, evaluate
    from verydeep.training.evaluation._predict import Predictions as Predictions, Predictor as Predictor
    from verydeep.training.progress._notebook import (
        NotebookText as NotebookText,
        in_notebook as in_notebook,
        render_text as render_text,
    )
    from verydeep.training.progress._progress import (
        ProgressBar as ProgressBar,
        ProgressLines as ProgressLines,
        TrainingProgress,
        clock as clock,
        describe as describe,
        is_terminal as is_terminal,
        make_progress as make_progress,
    )
    from verydeep.training.progress._tensorboard import TensorBoard
    from verydeep.training.run._checkpoint import Position as Position
    from verydeep.training.run._compare import ComparedRun, RunComparison, compare_runs
    from verydeep.training.run._derived_run import derive_run as derive_run, derived_config as derived_config
    from verydeep.training.run._display import DAMAGE as DAMAGE, describe_run as describe_run, draw as draw
    from verydeep.training.run._environment import child_environment as child_environment, environment as environment
    from verydeep.training.run._listing import RunInfo, list_runs, list_studies as list_studies, run_info as run_info
    from verydeep.training.run._memory_run import TrainingState as TrainingState
    from verydeep.training.run._metrics import (
        EpochMetrics,
        RunSummary,
        Selection as Selection,
        best_epoch as best_epoch,
    )
    from verydeep.training.run._pretrained import (
        PREFIX as PREFIX,
        list_pretrained,
        resolve_pretrained as resolve_pretrained,
    )
    from verydeep.training.run._remove import check_removable as check_removable, remove_run
    from verydeep.training.run._run import (
        Run,
        numbered_folder as numbered_folder,
        require_free_folder as require_free_folder,
        reserve_number as reserve_number,
    )
    from verydeep.training.run._run_data import (
        RunData as RunData,
        load_data as load_data,
        load_own as load_own,
        load_own_with_raw as load_own_with_raw,
        split_of as split_of,
    )
    from verydeep.training.run._seed_runs import (
        SEEDS_FILE as SEEDS_FILE,
        SEEDS_FORMAT as SEEDS_FORMAT,
        holds_seeds as holds_seeds,
        read_seeds_file as read_seeds_file,
        seed_folder as seed_folder,
        seed_runs as seed_runs,
    )
    from verydeep.training.step._process_group import ProcessGroup as ProcessGroup
else:
    __getattr__, __dir__ = lazy_imports(__name__)

__all__ = [
    "Attention",
    "Calibration",
    "CompanionConfig",
    "ComparedRun",
    "Confusion",
    "DistillConfig",
    "EpochMetrics",
    "Estimate",
    "Evaluation",
    "Interrupted",
    "ModelConfig",
    "OptimConfig",
    "Run",
    "RunComparison",
    "RunInfo",
    "RunSummary",
    "ScheduleConfig",
    "TensorBoard",
    "TrainConfig",
    "TrainingProgress",
    "compare_runs",
    "confusion",
    "evaluate",
    "evaluate_metrics",
    "learn_attention",
    "list_pretrained",
    "list_runs",
    "read_config",
    "remove_run",
    "resume",
    "train",
]
