"""What a search called from Python shows: one line that replaces itself, in a terminal or a notebook."""

from __future__ import annotations

import time

from verydeep.search._results import TrialRecord, ranked, records
from verydeep.search.study._study import Study
from verydeep.training import NotebookText, in_notebook, is_terminal

_EVERY = 2.0  # seconds, because reading a large study from a server takes a while


class SearchProgress:
    """What `search` reports while it runs; this class shows nothing.

    Override the methods you want to use.

    Example:
        >>> from verydeep.search import SearchProgress
        >>> class Dots(SearchProgress):
        ...     def update(self):
        ...         print(".", end="", flush=True)
    """

    def start(self, study: Study, jobs: int) -> None:
        """Called when the search starts or continues, with the number of workers."""

    def update(self) -> None:
        """Called twice a second."""

    def close(self) -> None:
        """Called when the search stops, for any reason."""


class SearchStatus(SearchProgress):
    """How many trials are done and which is the best, in one line; subclasses show it."""

    def start(self, study: Study, jobs: int) -> None:
        self.study, self.seen = study, 0.0
        self.update()

    def update(self) -> None:
        if time.monotonic() - self.seen >= _EVERY:
            self.show(describe_search(self.study))
            self.seen = time.monotonic()

    def close(self) -> None:
        self.show(describe_search(self.study))

    def show(self, line: str) -> None:
        """Show the line in place of the one before."""
        raise NotImplementedError


class SearchLive(SearchStatus):
    """The line in a terminal."""

    def start(self, study: Study, jobs: int) -> None:
        from rich.live import Live

        self.live = Live(auto_refresh=False)
        self.live.start()
        super().start(study, jobs)

    def show(self, line: str) -> None:
        from rich.text import Text

        self.live.update(Text(line), refresh=True)

    def close(self) -> None:
        super().close()
        self.live.stop()


class SearchNotebook(SearchStatus):
    """The line in a notebook."""

    def start(self, study: Study, jobs: int) -> None:
        self.text = NotebookText()
        super().start(study, jobs)

    def show(self, line: str) -> None:
        self.text.update(line)


def choose_search_progress(progress: SearchProgress | bool | None) -> SearchProgress:
    """The display for a call from Python: True shows progress in a terminal or a notebook, and nothing elsewhere."""
    if progress is None or progress is False:
        return SearchProgress()
    if progress is not True:
        return progress
    return SearchNotebook() if in_notebook() else SearchLive() if is_terminal() else SearchProgress()


def describe_search(study: Study) -> str:
    """How far a search is, and its best trial, in one line."""
    found = records(study)
    ended = ranked(found, study.config.maximise)
    running = sum(record.status == "training" for record in found)
    text = f"{study.name}: {len(ended)} of {len(found)} trials done, {running} in training"
    if ended and ended[0].value is not None:
        text += f"; best: {describe_trial(ended[0], study.config.metric)}"
    return text


def describe_trial(record: TrialRecord, metric: str) -> str:
    """A trial's result and settings in one line."""
    value = "" if record.value is None else f"{record.value:.2%}" if "accuracy" in metric else f"{record.value:.4g}"
    name = metric.replace("valid_", "validation ").replace("_", " ")
    settings = ", ".join(f"{name}={_short(value)}" for name, value in record.settings.items())
    return f"trial {record.trial} with {name} {value} ({settings})"


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
