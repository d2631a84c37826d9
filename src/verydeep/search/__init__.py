"""Search: many trainings with settings drawn from a space, on one machine or many, each counted once.

A search is read from a TOML file: a training configuration, and the settings to vary. `start_study` keeps its trials
in a storage, `search` trains them with workers on this machine (`work` as a single worker, here or elsewhere), and
`records` returns the results. Workers may be killed at any time; their trials are trained again by others.
"""

from typing import TYPE_CHECKING

from verydeep.lazy import lazy_imports

if TYPE_CHECKING:
    from verydeep.search._budget import Budget
    from verydeep.search._config import Options, SearchConfig, read_search, search_config as search_config
    from verydeep.search._halving import Halving
    from verydeep.search._progress import SearchProgress
    from verydeep.search._results import TrialRecord, importance, ranked, records, scored as scored, to_csv, to_json
    from verydeep.search._sampling import draw as draw
    from verydeep.search._search import StopReason, check_search, search
    from verydeep.search._space import (
        Choices,
        Range,
        Settings as Settings,
        Space,
        dotted as dotted,
        read_space as read_space,
        with_settings as with_settings,
    )
    from verydeep.search.storage._postgres import storage_errors as storage_errors
    from verydeep.search.study._open import open_study, start_study
    from verydeep.search.study._study import Study
    from verydeep.search.worker._pool import Workers
    from verydeep.search.worker._trial import DatasetCache as DatasetCache, Paused as Paused, train_trial as train_trial
    from verydeep.search.worker._worker import work
else:
    __getattr__, __dir__ = lazy_imports(__name__)

__all__ = [
    "Budget",
    "Choices",
    "Halving",
    "Options",
    "Range",
    "SearchConfig",
    "SearchProgress",
    "Space",
    "StopReason",
    "Study",
    "TrialRecord",
    "Workers",
    "check_search",
    "importance",
    "open_study",
    "ranked",
    "read_search",
    "records",
    "search",
    "start_study",
    "to_csv",
    "to_json",
    "work",
]
