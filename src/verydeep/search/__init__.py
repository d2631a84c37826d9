"""Search: many trainings with settings drawn from a space, on one machine or many, each counted once.

A search is read from a TOML file: a training configuration, and the settings to vary. `start_study` keeps its trials
in a storage, `search` trains them with workers on this machine (`work` as a single worker, here or elsewhere), and
`records` returns the results. Workers may be killed at any time; their trials are trained again by others.
"""

from verydeep.search._budget import Budget
from verydeep.search._config import Options, SearchConfig, read_search, search_config
from verydeep.search._halving import Halving
from verydeep.search._results import TrialRecord, importance, ranked, records, scored, to_csv, to_json
from verydeep.search._sampling import draw
from verydeep.search._search import SearchProgress, StopReason, check_search, search
from verydeep.search._space import Choices, Range, Settings, Space, dotted, read_space, with_settings
from verydeep.search.storage._postgres import storage_errors
from verydeep.search.study._open import open_study, start_study
from verydeep.search.study._study import Study
from verydeep.search.worker._pool import Workers
from verydeep.search.worker._trial import DatasetCache, Paused, train_trial
from verydeep.search.worker._worker import work

__all__ = [
    "Budget",
    "Choices",
    "DatasetCache",
    "Halving",
    "Options",
    "Paused",
    "Range",
    "SearchConfig",
    "SearchProgress",
    "Settings",
    "Space",
    "StopReason",
    "Study",
    "TrialRecord",
    "Workers",
    "check_search",
    "dotted",
    "draw",
    "importance",
    "open_study",
    "ranked",
    "read_search",
    "read_space",
    "records",
    "scored",
    "search",
    "search_config",
    "start_study",
    "storage_errors",
    "to_csv",
    "to_json",
    "train_trial",
    "with_settings",
    "work",
]
