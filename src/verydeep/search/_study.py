"""The study of a search: a single group, whose settings are drawn from a space."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verydeep.errors import UserError
from verydeep.search._config import GROUP, SearchConfig
from verydeep.studies import HEARTBEAT, Study, open_study, start_study

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from optuna.artifacts._protocol import ArtifactStore


class SearchStudy(Study):
    """The trials of a search. `start_search` creates one, and `open_search` opens it.

    Args:
        name: Its name in the storage.
        folder: Where the runs of this machine are.
        store: The storage.
        artifacts: Where workers on several machines exchange weights, if anywhere.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.search import Choices, Options, SearchConfig, start_search
        >>> from verydeep.training import TrainConfig
        >>> base, space = TrainConfig(DataConfig("digits")), {"model.depth": Choices((3, 5))}
        >>> study = start_search("runs/depths", SearchConfig(base, space, Options(trials=2)))
        >>> study.unfinished()
        2
    """

    def __repr__(self) -> str:
        count, names = self.trials, list(self.config.space)
        trials = f"{count:,} {'trial' if count == 1 else 'trials'}"
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        return f"SearchStudy({self.name!r}, {trials} of {', '.join(names[:3])}{more}, by {self.metric})"

    def _repr_html_(self) -> str:
        from verydeep.search._display import study_html

        return study_html(self)

    def plot(self, path: str | os.PathLike[str] | None = None, **options: Any) -> Figure:  # noqa: ANN401
        """Draw the result of every trial against each setting. A notebook shows the figure.

        Args:
            path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
            **options: Options of `verydeep.report.plot_slices`, such as `theme="dark"`.
        """
        from verydeep.search._display import plot_study

        return plot_study(self, path, **options)

    @property
    def config(self) -> SearchConfig:
        """The search."""
        return SearchConfig.from_group(next(group for group in self.groups if group.name == GROUP), self.metric)

    @property
    def trials(self) -> int:
        """The number of trials."""
        return self.config.options.trials


def start_search(
    folder: str | Path,
    config: SearchConfig,
    *,
    storage: str | None = None,
    artifacts: str | Path | ArtifactStore | None = None,
    heartbeat: int = HEARTBEAT,
) -> SearchStudy:
    """Create the study of a search, or open an existing one of the same search and add trials to it.

    Args:
        folder: Where the runs go; on a server, the study keeps the name that this folder has now.
        config: The search.
        storage: A PostgreSQL server's address; by default, a journal file in the folder records the trials.
        artifacts: A folder that all machines share, or one of Optuna's artifact stores, for the weights of the best.
        heartbeat: Seconds between the heartbeats that workers send to a server.

    Raises:
        UserError: The folder or the storage holds something else, or the study of another search.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.search import Choices, Options, SearchConfig, start_search
        >>> from verydeep.training import TrainConfig
        >>> base, space = TrainConfig(DataConfig("digits")), {"model.depth": Choices((3, 5))}
        >>> start_search("runs/depths", SearchConfig(base, space, Options(trials=2)))
        SearchStudy('depths', 2 trials of model.depth, by loss)
    """
    study = start_study(
        folder, [config.group], metric=config.metric, storage=storage, artifacts=artifacts, heartbeat=heartbeat
    )
    return SearchStudy(study.name, study.folder, study.store, study.artifacts)


def open_search(
    folder: str | Path,
    *,
    storage: str | None = None,
    artifacts: str | Path | ArtifactStore | None = None,
    heartbeat: int = HEARTBEAT,
) -> SearchStudy:
    """Open the study of a search that was started here or on another machine.

    Args:
        folder: The study's folder; with a server, its name selects the study.
        storage: The PostgreSQL server's address; by default, the one that the study was started with.
        artifacts: The artifact store, if it is not at the place that the study was started with.
        heartbeat: The number of seconds that the study was started with.

    Raises:
        UserError: There is no such study, or it is not that of a search.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.search import Choices, Options, SearchConfig, open_search, start_search
        >>> from verydeep.training import TrainConfig
        >>> base, space = TrainConfig(DataConfig("digits")), {"model.depth": Choices((3, 5))}
        >>> study = start_search("runs/depths", SearchConfig(base, space, Options(trials=2)))
        >>> open_search("runs/depths").trials
        2
    """
    study = open_study(folder, storage=storage, artifacts=artifacts, heartbeat=heartbeat)
    if [group.name for group in study.groups] != [GROUP]:
        raise UserError(f"{folder} is a study, but not that of a search; verydeep runs lists its runs")
    return SearchStudy(study.name, study.folder, study.store, study.artifacts)
