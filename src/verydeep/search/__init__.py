"""Search: trainings with settings drawn from a space, ranked by a metric of held-out or training data.

A search is read from a TOML file: a training configuration, and the settings to vary. `start_search` makes it a study,
which `verydeep.studies.run_study` trains on this machine or on many; `ranked` and `importance` say what was found.
"""

from typing import TYPE_CHECKING

from verydeep.lazy import lazy_imports

if TYPE_CHECKING:
    from verydeep.search._check import check_search
    from verydeep.search._config import Options, SearchConfig, read_search, search_config as search_config
    from verydeep.search._results import importance, ranked, scored as scored, to_csv, to_json
    from verydeep.search._study import SearchStudy, open_search, start_search
    from verydeep.studies import Choices, Halving, Range, Space
else:
    __getattr__, __dir__ = lazy_imports(__name__)

__all__ = [
    "Choices",
    "Halving",
    "Options",
    "Range",
    "SearchConfig",
    "SearchStudy",
    "Space",
    "check_search",
    "importance",
    "open_search",
    "ranked",
    "read_search",
    "start_search",
    "to_csv",
    "to_json",
]
