"""Search: many training runs with settings drawn from a space, on one machine or many, each counted once."""

from verydeep.search._budget import Budget
from verydeep.search._config import Halving, Options, SearchConfig, read_search, search_config
from verydeep.search._importance import importance, weighed
from verydeep.search._open import open_study, start_study
from verydeep.search._postgres import storage_errors
from verydeep.search._records import Record, ranked, records, to_csv, to_json
from verydeep.search._search import Ending, SearchReport, Workers, check_search, search
from verydeep.search._space import Choices, Range, Settings, Space, dotted, draw, read_space, with_settings
from verydeep.search._study import Study
from verydeep.search._trial import Data, Paused, train_trial
from verydeep.search._worker import work

__all__ = [
    "Budget",
    "Choices",
    "Data",
    "Ending",
    "Halving",
    "Options",
    "Paused",
    "Range",
    "Record",
    "SearchConfig",
    "SearchReport",
    "Settings",
    "Space",
    "Study",
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
    "search",
    "search_config",
    "start_study",
    "storage_errors",
    "to_csv",
    "to_json",
    "train_trial",
    "weighed",
    "with_settings",
    "work",
]
