"""What is shown while `how_deep` works: a bar with what is going on, and how long it still takes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from verydeep.depth._plan import DepthPlan
from verydeep.studies import StudyProgress, format_left
from verydeep.terminal import echo
from verydeep.training import NotebookText, in_notebook, is_terminal
from verydeep.words import plural

if TYPE_CHECKING:
    from collections.abc import Callable

    from verydeep.studies import TrainingRecord

_DRAW_EVERY = 0.5  # seconds
_TRAINING = 0.88  # the share of training in all that is done
_SAY_AFTER = 0.03  # the share after which the time left is known well enough to be shown
_BAR = 24  # characters


class DepthProgress(StudyProgress):
    """What `how_deep` reports while it works; this class shows nothing.

    Override the methods you want to use, and those of `StudyProgress`.

    Example:
        >>> from verydeep.depth import DepthProgress
        >>> class PrintPhases(DepthProgress):
        ...     def phase(self, text):
        ...         print(text)
    """

    def phase(self, text: str) -> None:
        """Called when something else begins, with what it is; often with the same text."""

    def plan(self, plan: DepthPlan, spent: Callable[[], float]) -> None:
        """Called when it is decided what will be trained.

        Args:
            plan: What will be trained.
            spent: Returns the fraction of it that has been trained.
        """

    def part(self, share: float) -> None:
        """Called with the fraction of the present phase that is done, if that is known."""

    def finish(self) -> None:
        """Called at the end, for any reason."""


class DepthLines(DepthProgress):
    """Lines for logs: what will be trained, what is going on, and what became of each network."""

    def __init__(self) -> None:
        self.last, self.ended = "", set[str]()

    def phase(self, text: str) -> None:
        if text and text != self.last:
            self.last = text
            echo(text, flush=True)

    def plan(self, plan: DepthPlan, spent: Callable[[], float]) -> None:
        echo(describe_plan(plan), flush=True)

    def update(self, records: list[TrainingRecord]) -> None:
        groups: dict[str, list[TrainingRecord]] = {}
        for record in records:
            groups.setdefault(record.group, []).append(record)
        for name, found in groups.items():
            if name in self.ended or not all(record.has_ended for record in found) or name.endswith("/default"):
                continue
            self.ended.add(name)
            values = [record.value for record in found if record.value is not None]
            if not values:
                echo(f"{name}: diverged", flush=True)
            elif name.startswith("settings/"):
                settings = plural(len(found), "setting")
                echo(f"{name.removeprefix('settings/')}: {settings} tried, best loss {min(values):.4g}", flush=True)
            else:
                mean = sum(values) / len(values)
                echo(f"{name.partition('/')[0]}: {plural(len(found), 'seed')}, mean loss {mean:.4g}", flush=True)


class DepthBar(DepthProgress):
    """One line in a terminal that updates itself.

    Args:
        now: Returns the time in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now, self.began, self.drawn = now, now(), -1.0
        self.text, self.share, self.begun_at = "", 0.0, 0.0
        self.spent: Callable[[], float] | None = None
        self.open()

    def open(self) -> None:
        """Prepare for drawing."""
        from rich.console import Console
        from rich.live import Live

        self.live = Live(console=Console(highlight=False), auto_refresh=False, transient=True)
        self.live.start()

    def draw(self) -> None:
        """Draw the line."""
        self.live.update(self.describe(self.live.console.width), refresh=True)

    def finish(self) -> None:
        """Remove the line."""
        self.live.stop()

    def phase(self, text: str) -> None:
        if text and text != self.text:
            self.text, self.begun_at = text, self.share
            self.draw()

    def plan(self, plan: DepthPlan, spent: Callable[[], float]) -> None:
        self.live.console.print(describe_plan(plan), soft_wrap=True)
        self.spent = spent

    def part(self, share: float) -> None:
        self.share = max(self.share, self.begun_at + share * (1 - self.begun_at) / 2)
        self.draw()

    def update(self, records: list[TrainingRecord]) -> None:
        if self.spent is not None:
            self.share = max(self.share, _TRAINING * min(1.0, self.spent()))
        self._draw_sometimes()

    def step(self, training: str, done: float, loss: float, accuracy: float) -> None:
        self._draw_sometimes()

    def _draw_sometimes(self) -> None:
        if self.now() - self.drawn >= _DRAW_EVERY:
            self.drawn = self.now()
            self.draw()

    def describe(self, width: int) -> str:
        """The line: a bar, what is going on, and the time left."""
        filled = round(_BAR * self.share)
        left = ""
        if self.share >= _SAY_AFTER:
            left = f", about {format_left((self.now() - self.began) * (1 - self.share) / self.share)} left"
        line = f"{'━' * filled}{'─' * (_BAR - filled)} {self.share:4.0%}  {self.text}{left}"
        return line if len(line) <= width else line[: width - 1] + "…"


class DepthNotebook(DepthBar):
    """The same line in a notebook."""

    def open(self) -> None:
        self.shown = NotebookText()

    def draw(self) -> None:
        self.shown.update(self.describe(110))

    def plan(self, plan: DepthPlan, spent: Callable[[], float]) -> None:
        self.spent = spent

    def finish(self) -> None:
        pass


def describe_plan(plan: DepthPlan) -> str:
    """What will be trained, in a sentence or two."""
    depths = ", ".join(map(str, plan.depths))
    folds = f", each holding out another of {plan.folds} parts of the data" if plan.folds else ""
    time = f" This takes about {plan.minutes:g} minutes." if plan.minutes is not None else ""
    return (
        f"Training highway and plain networks of depth {depths}: {plural(plan.trials, 'setting')} each, then "
        f"{plural(plan.seeds, 'seed')} for up to {plural(plan.epochs, 'epoch')}{folds}.{time}"
    )


def choose_depth_progress(progress: DepthProgress | bool | None) -> DepthProgress:
    """The display for a call from Python: True shows a bar in a terminal or a notebook, and nothing elsewhere."""
    if isinstance(progress, DepthProgress):
        return progress
    if not progress:
        return DepthProgress()
    return DepthNotebook() if in_notebook() else DepthBar() if is_terminal() else DepthProgress()


def make_depth_progress(quiet: bool) -> DepthProgress:
    """The display for a command: a bar in a terminal, lines for a file or pipe, nothing if quiet."""
    return DepthProgress() if quiet else DepthBar() if is_terminal() else DepthLines()
