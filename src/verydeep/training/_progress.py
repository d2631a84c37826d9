"""What is shown while a network trains: nothing, a line per epoch, or a live bar."""

from __future__ import annotations

import math
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from verydeep.training.run._checkpoint import Position
    from verydeep.training.run._metrics import EpochMetrics
    from verydeep.training.run._run import Run


class TrainingProgress:
    """Shows nothing but warnings. Override what you want to see; training calls every method on rank 0."""

    def start(self, run: Run, position: Position, batches: int) -> None:
        """Training begins or continues; `batches` is the number of batches per epoch."""

    def step(self, position: Position, result: Tensor, samples: int, lr: float) -> None:
        """One batch is done; `result` holds the sum of its losses and the number of correct answers."""

    def epoch(self, metrics: EpochMetrics) -> None:
        """One epoch is done; `metrics` is its line in metrics.jsonl."""

    def warn(self, message: str) -> None:
        """Something went wrong that training could recover from."""
        print(f"verydeep: {message}", file=sys.stderr)

    def close(self) -> None:
        """Training has ended, for whatever reason."""


class ProgressLines(TrainingProgress):
    """A line per epoch, for logs."""

    def start(self, run: Run, position: Position, batches: int) -> None:
        self.epochs = run.config.epochs

    def epoch(self, metrics: EpochMetrics) -> None:
        print(describe(metrics, self.epochs), flush=True)


class ProgressBar(TrainingProgress):
    """A live bar for the current epoch, and a line for each epoch before."""

    def start(self, run: Run, position: Position, batches: int) -> None:
        import torch
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self.epochs, self.batches, self.batch_size = run.config.epochs, batches, run.config.batch_size
        self.done, self.began = position.epoch * batches + position.batch, time.monotonic()
        self.first, self.shown = self.done, 0.0
        self.totals, self.samples = torch.zeros(2, dtype=torch.float64), 0  # since the bar was last drawn
        columns = ("{task.description}", BarColumn(bar_width=None), "{task.percentage:>3.0f}%", "{task.fields[text]}")
        self.progress = Progress(
            *(TextColumn(c) if isinstance(c, str) else c for c in columns),
            console=Console(),
            transient=True,
            expand=True,  # the bar takes the room that the text leaves
            auto_refresh=False,  # drawing takes milliseconds, which a separate thread would take from training
        )
        self.task = self.progress.add_task(f"epoch {position.epoch + 1}/{self.epochs}", total=batches, text="")
        self.progress.start()

    def step(self, position: Position, result: Tensor, samples: int, lr: float) -> None:
        self.done += 1
        self.totals, self.samples = self.totals.to(result.device) + result, self.samples + samples
        description = f"epoch {position.epoch + 1}/{self.epochs}"
        now = time.monotonic()
        if position.batch == self.batches:
            self.progress.update(
                self.task, completed=self.batches, description=description, text="evaluating", refresh=True
            )
            return
        if now - self.shown < 0.25:
            return
        self.shown = now
        loss, accuracy = (self.totals / self.samples).tolist()
        self.totals, self.samples = self.totals.new_zeros(2), 0
        speed = (self.done - self.first) / (now - self.began)
        left = (self.epochs * self.batches - self.done) / speed
        name, unit = ("accuracy", " samples/s") if self.progress.console.width >= 100 else ("acc", "/s")
        text = (
            f"loss {loss:.4f}  {name} {accuracy:5.1%}  lr {lr:.3g}  "
            f"{speed * self.batch_size:,.0f}{unit}  {clock(left)} left"
        )
        self.progress.update(self.task, completed=position.batch, description=description, text=text, refresh=True)

    def epoch(self, metrics: EpochMetrics) -> None:
        self.progress.console.print(describe(metrics, self.epochs), highlight=False)

    def close(self) -> None:
        if hasattr(self, "progress"):
            self.progress.stop()


def make_progress(quiet: bool) -> TrainingProgress:
    """A bar in a terminal, lines in a file, nothing if quiet."""
    return TrainingProgress() if quiet else ProgressBar() if sys.stdout.isatty() else ProgressLines()


def describe(metrics: EpochMetrics, epochs: int) -> str:
    """An epoch's metrics in one line."""
    parts = [f"epoch {metrics.epoch:>{len(str(epochs))}}/{epochs}"]
    shown = {
        "loss": (metrics.loss, metrics.accuracy),
        "train": (metrics.train_loss, metrics.train_accuracy),
        "valid": (metrics.valid_loss, metrics.valid_accuracy),
        "test": (metrics.test_loss, metrics.test_accuracy),
    }
    if metrics.train_loss is not None:  # an evaluation of the whole set says more
        del shown["loss"]
    for label, (loss, accuracy) in shown.items():
        if loss is not None:
            parts.append(f"{label} " + (f"{loss:.4g} {accuracy:.2%}" if math.isfinite(loss) else "diverged"))
    return "  ".join([*parts, f"lr {metrics.lr:.3g}", clock(metrics.seconds)])


def clock(seconds: float) -> str:
    """Seconds as minutes and seconds, or with hours."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
