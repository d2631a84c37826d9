"""Studies: many trainings on one machine or many, each done once, whoever is killed meanwhile.

A study is a folder with runs and a storage that records them: a journal file or a PostgreSQL server. `start_study`
gives it groups of trainings, `run_study` trains them with workers on this machine, `work` is a single worker, here or
elsewhere, and `Study.records` returns the results. `train_seeds` is a study of one configuration with several seeds.

`_group` describes the trainings, `_schedule` decides what is left to train, and `_claim` is what workers do with it.
`_progress` is what people see: an `_overview` of the study, as lines or as an `_overview_table`.
`worker/` holds the workers, `storage/` the storages, and `seeds/` what is special about several seeds.
"""

from typing import TYPE_CHECKING

from verydeep.lazy import lazy_imports

if TYPE_CHECKING:
    from verydeep.studies._budget import Budget
    from verydeep.studies._group import Group, Sampling, default_metric as default_metric
    from verydeep.studies._halving import Halving, Stages, stage_members as stage_members
    from verydeep.studies._open import open_study, start_study
    from verydeep.studies._progress import (
        StudyProgress,
        choose_study_progress as choose_study_progress,
        make_study_progress as make_study_progress,
    )
    from verydeep.studies._records import TrainingRecord
    from verydeep.studies._run_study import free_cores as free_cores, run_study
    from verydeep.studies._sampling import (
        draw as draw,
        encode_settings as encode_settings,
        optuna_distributions as optuna_distributions,
    )
    from verydeep.studies._schedule import Attempts as Attempts
    from verydeep.studies._space import (
        Choices,
        Range,
        Settings as Settings,
        Space,
        check_limits as check_limits,
        read_space as read_space,
        space_tables as space_tables,
        with_current_names as with_current_names,
        with_first_choices as with_first_choices,
        with_settings as with_settings,
    )
    from verydeep.studies._study import Study
    from verydeep.studies._words import (
        format_left as format_left,
        format_settings as format_settings,
        format_value as format_value,
        metric_label as metric_label,
    )
    from verydeep.studies.seeds._seeds import Seeds
    from verydeep.studies.seeds._train_seeds import SeedsInterrupted, resume_seeds, train_seeds
    from verydeep.studies.storage._postgres import (
        BUSY as BUSY,
        storage_errors as storage_errors,
        with_retry as with_retry,
    )
    from verydeep.studies.storage._store import HEARTBEAT as HEARTBEAT, quiet_optuna as quiet_optuna
    from verydeep.studies.worker._training import (
        DatasetCache as DatasetCache,
        ImpossibleError as ImpossibleError,
        check_training as check_training,
        checked_config as checked_config,
    )
    from verydeep.studies.worker._worker import work
else:
    __getattr__, __dir__ = lazy_imports(__name__)

__all__ = [
    "Budget",
    "Choices",
    "Group",
    "Halving",
    "Range",
    "Sampling",
    "Seeds",
    "SeedsInterrupted",
    "Space",
    "Stages",
    "Study",
    "StudyProgress",
    "TrainingRecord",
    "open_study",
    "resume_seeds",
    "run_study",
    "start_study",
    "train_seeds",
    "work",
]
