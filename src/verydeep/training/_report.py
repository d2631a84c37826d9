"""What people see while a network trains: nothing, a line an epoch, or a live bar."""

import sys
import time
from typing import Any

import torch
from torch import Tensor

from verydeep.training._checkpoint import Position
from verydeep.training._run import Run


class Report:
    """Silent but for warnings; the base of the others."""

    def start(self, run: Run, position: Position, batches: int) -> None:
        """Training begins or goes on."""

    def step(self, position: Position, found: Tensor, samples: int, lr: float) -> None:
        """One batch is done; `found` is its loss and how many of its samples were right."""

    def epoch(self, metrics: dict[str, Any]) -> None:
        """One epoch is done."""

    def warn(self, message: str) -> None:
        """Something went wrong that training could mend."""
        print(f"verydeep: {message}", file=sys.stderr)

    def close(self) -> None:
        """Training has ended, however it did."""


class Lines(Report):
    """A line an epoch, for logs."""

    def start(self, run: Run, position: Position, batches: int) -> None:
        self.epochs = run.config.epochs

    def epoch(self, metrics: dict[str, Any]) -> None:
        print(describe(metrics, self.epochs), flush=True)


class Bar(Report):
    """A live bar for the present epoch, and a line for every one before."""

    def start(self, run: Run, position: Position, batches: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self.epochs, self.batches, self.batch_size = run.config.epochs, batches, run.config.batch_size
        self.done, self.began = position.epoch * batches + position.batch, time.monotonic()
        self.first, self.shown = self.done, 0.0
        self.found, self.samples = torch.zeros(2, dtype=torch.float64), 0  # since the bar was last drawn
        columns = ("{task.description}", BarColumn(bar_width=None), "{task.percentage:>3.0f}%", "{task.fields[facts]}")
        self.progress = Progress(
            *(TextColumn(c) if isinstance(c, str) else c for c in columns),
            console=Console(),
            transient=True,
            expand=True,  # the bar takes what room the words leave
            auto_refresh=False,  # drawing costs milliseconds, which a thread of its own would take from training
        )
        self.task = self.progress.add_task(f"epoch {position.epoch + 1}/{self.epochs}", total=batches, facts="")
        self.progress.start()

    def step(self, position: Position, found: Tensor, samples: int, lr: float) -> None:
        self.done += 1
        self.found, self.samples = self.found.to(found.device) + found, self.samples + samples
        description = f"epoch {position.epoch + 1}/{self.epochs}"
        now = time.monotonic()
        if position.batch == self.batches:
            self.progress.update(
                self.task, completed=self.batches, description=description, facts="measuring", refresh=True
            )
            return
        if now - self.shown < 0.25:
            return
        self.shown = now
        loss, right = (self.found / self.samples).tolist()
        self.found, self.samples = torch.zeros_like(self.found), 0
        speed = (self.done - self.first) / (now - self.began)
        left = (self.epochs * self.batches - self.done) / speed
        accuracy, samples_a_second = ("accuracy", " samples/s") if self.progress.console.width >= 100 else ("acc", "/s")
        facts = (
            f"loss {loss:.4f}  {accuracy} {right:5.1%}  lr {lr:.3g}  "
            f"{speed * self.batch_size:,.0f}{samples_a_second}  {clock(left)} left"
        )
        self.progress.update(self.task, completed=position.batch, description=description, facts=facts, refresh=True)

    def epoch(self, metrics: dict[str, Any]) -> None:
        self.progress.console.print(describe(metrics, self.epochs), highlight=False)

    def close(self) -> None:
        if hasattr(self, "progress"):
            self.progress.stop()


def make_report(quiet: bool) -> Report:
    """A bar for people, lines for files, nothing when asked for."""
    return Report() if quiet else Bar() if sys.stdout.isatty() else Lines()


def describe(metrics: dict[str, Any], epochs: int) -> str:
    """An epoch in one line."""
    parts = [f"epoch {metrics['epoch']:>{len(str(epochs))}}/{epochs}"]
    while_learning = () if "train_loss" in metrics else (("", "loss"),)  # what the whole set says is worth more
    for name, label in (*while_learning, ("train_", "train"), ("valid_", "valid"), ("test_", "test")):
        if f"{name}loss" in metrics:
            loss, accuracy = metrics[f"{name}loss"], metrics[f"{name}accuracy"]
            parts.append(f"{label} " + ("diverged" if loss is None else f"{loss:.4g} {accuracy:.2%}"))
    return "  ".join([*parts, f"lr {metrics['lr']:.3g}", clock(metrics["seconds"])])


def clock(seconds: float) -> str:
    """Seconds as people read time."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
