"""What is shown while a network trains: nothing, a line per epoch, or a live bar in a terminal or notebook."""

from __future__ import annotations

import math
import sys
import time
from typing import TYPE_CHECKING

from verydeep.terminal import echo
from verydeep.training.progress._notebook import NotebookText, in_notebook
from verydeep.words import METRIC_NAMES, metric_value, named_score

if TYPE_CHECKING:
    from torch import Tensor

    from verydeep.training.run._checkpoint import Position
    from verydeep.training.run._metrics import EpochMetrics
    from verydeep.training.run._run import Run

_BAR = 20  # characters of the bar in a notebook
_LINES, _SECONDS = 25, 5.0  # lines for short epochs, and how long an epoch must take to get its own
_EPOCHS = 12  # how many of the last epochs a notebook shows


class TrainingProgress:
    """What `train` reports while it trains; this class shows nothing but warnings.

    Override the methods you want to use. With several processes, only the first one calls them.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.training import ModelConfig, TrainConfig, TrainingProgress, train
        >>> class Epochs(TrainingProgress):
        ...     def epoch(self, metrics):
        ...         print("epoch", metrics.epoch)
        >>> config = TrainConfig(DataConfig("digits"), ModelConfig(depth=2, width=8), epochs=2)
        >>> run = train(config, "runs/digits", progress=Epochs())
        epoch 1
        epoch 2
    """

    def summary(self, lines: list[str]) -> None:
        """Called before a new run starts, with lines that describe its data, its network and its settings."""

    def start(self, run: Run, position: Position, batches: int) -> None:
        """Called when training begins or continues.

        Args:
            run: The run.
            position: The epochs and batches that are already done.
            batches: The number of batches per epoch.
        """

    def step(self, position: Position, result: Tensor, samples: int, lr: float) -> None:
        """Called after each batch, or for each of up to fifty batches after kernels have trained them together.

        Args:
            position: The epochs and batches that are done.
            result: The sum of the batch's losses, and the number of correct predictions; for a regression, the sum of
                1 minus the squared error of the standardised targets, which is close to R2 times the samples.
            samples: The number of samples in the batch.
            lr: The learning rate.
        """

    def epoch(self, metrics: EpochMetrics) -> None:
        """Called after each epoch, with its line of metrics.jsonl."""

    def note(self, message: str) -> None:
        """Called with a line worth knowing, such as which weights training starts from."""

    def warn(self, message: str) -> None:
        """Called when something went wrong that training could recover from; prints the message."""
        echo(f"verydeep: {message}", file=sys.stderr)

    def close(self) -> None:
        """Called when training stops, for any reason."""


class _Thinned:
    """Which of many short epochs get a line: 25 of them, evenly spaced, and every one that took long."""

    def __init__(self, epochs: int) -> None:
        self.every, self.shown = max(1, math.ceil(epochs / _LINES)), -math.inf

    def shows(self, metrics: EpochMetrics) -> bool:
        now = time.monotonic()
        if metrics.epoch % self.every and metrics.epoch != 1 and now - self.shown < _SECONDS:
            return False
        self.shown = now
        return True


class ProgressLines(TrainingProgress):
    """A line per epoch, for logs; if there are many short ones, a line for some of them."""

    def summary(self, lines: list[str]) -> None:
        echo("\n".join(lines), flush=True)

    def start(self, run: Run, position: Position, batches: int) -> None:
        self.epochs, self.lines = run.config.epochs, _Thinned(run.config.epochs)

    def epoch(self, metrics: EpochMetrics) -> None:
        if self.lines.shows(metrics):
            echo(describe(metrics, self.epochs), flush=True)

    def note(self, message: str) -> None:
        echo(message, flush=True)


class LiveProgress(TrainingProgress):
    """Speed, loss and remaining time a few times per second; subclasses draw them."""

    wide = False  # whether there is room for long words

    def start(self, run: Run, position: Position, batches: int) -> None:
        import torch

        self.epochs, self.batches, self.batch_size = run.config.epochs, batches, run.config.batch_size
        self.measure = run.measure
        self.done, self.began = position.epoch * batches + position.batch, time.monotonic()
        self.first, self.shown = self.done, 0.0
        self.totals, self.samples = torch.zeros(2, dtype=torch.float64), 0  # since the bar was last drawn

    def step(self, position: Position, result: Tensor, samples: int, lr: float) -> None:
        self.done += 1
        self.totals, self.samples = self.totals.to(result.device) + result, self.samples + samples
        now = time.monotonic()
        if position.batch == self.batches:
            self.draw(position, "evaluating")
            return
        if now - self.shown < 0.25:
            return
        self.shown = now
        loss, accuracy = (self.totals / self.samples).tolist()
        self.totals, self.samples = self.totals.new_zeros(2), 0
        speed = (self.done - self.first) / (now - self.began)
        left = (self.epochs * self.batches - self.done) / speed
        name, unit = ("accuracy", " samples/s") if self.wide else ("acc", "/s")
        score = f"{name} {accuracy:5.1%}" if self.measure == "accuracy" else named_score(self.measure, accuracy, 1)
        self.draw(
            position,
            f"loss {loss:.4f}  {score}  lr {lr:.3g}  {speed * self.batch_size:,.0f}{unit}  {clock(left)} left",
        )

    def draw(self, position: Position, text: str) -> None:
        """Show the epoch, how much of it is done, and a text about it."""
        raise NotImplementedError


class ProgressBar(LiveProgress):
    """A live bar for the current epoch, and lines for the epochs before."""

    def summary(self, lines: list[str]) -> None:
        echo("\n".join(lines), flush=True)

    def start(self, run: Run, position: Position, batches: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        super().start(run, position, batches)
        columns = ("{task.description}", BarColumn(bar_width=None), "{task.percentage:>3.0f}%", "{task.fields[text]}")
        self.progress = Progress(
            *(TextColumn(c) if isinstance(c, str) else c for c in columns),
            console=Console(),
            transient=True,
            expand=True,  # the bar takes the room that the text leaves
            auto_refresh=False,  # drawing takes milliseconds, which a separate thread would take from training
        )
        self.wide = self.progress.console.width >= 100
        self.lines = _Thinned(self.epochs)
        self.task = self.progress.add_task(f"epoch {position.epoch + 1}/{self.epochs}", total=batches, text="")
        self.progress.start()

    def draw(self, position: Position, text: str) -> None:
        description = f"epoch {position.epoch + 1}/{self.epochs}"
        self.progress.update(self.task, completed=position.batch, description=description, text=text, refresh=True)

    def epoch(self, metrics: EpochMetrics) -> None:
        if self.lines.shows(metrics):
            self.progress.console.print(describe(metrics, self.epochs), highlight=False, soft_wrap=True)

    def note(self, message: str) -> None:
        echo(message, flush=True)

    def close(self) -> None:
        if hasattr(self, "progress"):
            self.progress.stop()


class NotebookProgress(LiveProgress):
    """The last epochs and a bar for the current one, as a text that replaces itself."""

    def __init__(self) -> None:
        self.text, self.lines, self.notes = NotebookText(), list[str](), list[str]()

    def summary(self, lines: list[str]) -> None:
        self.notes += lines

    def start(self, run: Run, position: Position, batches: int) -> None:
        super().start(run, position, batches)
        self.draw(position, "")

    def draw(self, position: Position, text: str) -> None:
        filled = round(_BAR * position.batch / self.batches)
        bar = "█" * filled + "░" * (_BAR - filled)
        self._update(f"epoch {position.epoch + 1}/{self.epochs}  {bar}  {text}")

    def epoch(self, metrics: EpochMetrics) -> None:
        self.lines.append(describe(metrics, self.epochs))
        self._update()

    def note(self, message: str) -> None:
        self.notes.append(message)

    def close(self) -> None:
        self._update()

    def _update(self, *last: str) -> None:
        hidden = len(self.lines) - _EPOCHS
        before = [f"... {hidden} earlier {'epoch' if hidden == 1 else 'epochs'}"] if hidden > 0 else []
        self.text.update("\n".join([*self.notes, *before, *self.lines[-_EPOCHS:], *last]))


def make_progress(quiet: bool) -> TrainingProgress:
    """A bar in a terminal, lines in a file, nothing if quiet."""
    return TrainingProgress() if quiet else ProgressBar() if is_terminal() else ProgressLines()


def choose_progress(progress: TrainingProgress | bool | None) -> TrainingProgress:
    """The display for a call from Python: True shows progress in a terminal or a notebook, and nothing elsewhere."""
    if progress is None or progress is False:
        return TrainingProgress()
    if progress is not True:
        return progress
    return NotebookProgress() if in_notebook() else ProgressBar() if is_terminal() else TrainingProgress()


def is_terminal() -> bool:
    """Whether people see what is printed."""
    return sys.stdout is not None and sys.stdout.isatty()


def describe(metrics: EpochMetrics, epochs: int) -> str:
    """An epoch's metrics in one line."""
    parts = [f"epoch {metrics.epoch:>{len(str(epochs))}}/{epochs}"]
    measure = "accuracy" if metrics.accuracy is not None or "r2" not in metrics.extra else "r2"
    for split, label in {"": "loss", "train_": "train", "valid_": "valid", "test_": "test"}.items():
        loss, score = metrics.get(f"{split}loss"), metrics.get(f"{split}{measure}")
        if loss is None or (split == "" and metrics.train_loss is not None):  # an evaluation of the whole set says more
            continue
        if not math.isfinite(loss):
            parts.append(f"{label} diverged")
        elif score is not None:
            shown = f"{score:.2%}" if measure == "accuracy" else named_score(measure, score)
            parts.append(" ".join([f"{label} {loss:.4g} {shown}", *_further(metrics, split)]))
    return "  ".join([*parts, f"lr {metrics.lr:.3g}", clock(metrics.seconds)])


def _further(metrics: EpochMetrics, split: str) -> list[str]:
    """The further metrics of validation data, such as the one that selects the best epoch."""
    if split != "valid_":
        return []
    names = [name.removeprefix(split) for name in metrics.extra if name.startswith(split) and name != "valid_r2"]
    values = {name: metrics.get(split + name) for name in names}
    return [
        f"{METRIC_NAMES.get(name, name)} {metric_value(name, value)}"
        for name, value in values.items()
        if value is not None
    ]


def clock(seconds: float) -> str:
    """Seconds as minutes and seconds, or with hours."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
