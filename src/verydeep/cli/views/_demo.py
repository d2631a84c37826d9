"""Progress of `verydeep demo`: a live table on a terminal, a line per epoch otherwise."""

import math
import time
from contextlib import AbstractContextManager
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from verydeep.paper import Epoch, Step
from verydeep.training import clock, describe

_WIDE = 90  # characters that the whole table needs


class LineView(AbstractContextManager["LineView"]):
    """Prints a line per epoch."""

    def __init__(self, epochs: dict[str, int]) -> None:
        self.epochs = epochs

    def show(self, event: Step | Epoch) -> None:
        """Print a completed epoch; single steps are not shown."""
        if isinstance(event, Epoch):
            print(f"{event.name:<8} {describe(event.metrics, self.epochs[event.name])}", flush=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Lines need no cleaning up."""


class LiveView(LineView):
    """Redraws a table with both networks at every event."""

    def __init__(self, epochs: dict[str, int]) -> None:
        super().__init__(epochs)
        self.began = time.monotonic()
        self.done = dict.fromkeys(epochs, 0.0)
        self.batch = dict.fromkeys(epochs, ("", ""))
        self.whole = dict.fromkeys(epochs, ("", "", ""))
        self.live = Live(console=Console(highlight=False), refresh_per_second=8)

    def __enter__(self) -> "LiveView":
        self.live.start()
        self.live.update(self._table())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.live.update(self._table())
        self.live.stop()

    def show(self, event: Step | Epoch) -> None:
        """Record an event and redraw the table."""
        if isinstance(event, Step):
            self.done[event.name] = event.done
            self.batch[event.name] = (f"{event.loss:.4f}", f"{event.accuracy:.0%}")
        else:
            self.done[event.name] = event.metrics.epoch
            loss, *right = (event.metrics.train_loss, event.metrics.train_accuracy, event.metrics.test_accuracy)
            trained = loss is not None and math.isfinite(loss)
            shown = [f"{loss:.4f}" if trained else "diverged", *("" if r is None else f"{r:.2%}" for r in right)]
            self.whole[event.name] = (shown[0], shown[1], shown[2])
        self.live.update(self._table())

    def _table(self) -> Table:
        wide = self.live.console.width >= _WIDE
        table = Table(*("network", "", "epoch"), *(("batch loss", "right") if wide else ()), box=None)
        for header in ("train loss", "train", "test", "left"):
            table.add_column(header)
        for name, epochs in self.epochs.items():
            bar = ProgressBar(epochs, self.done[name], width=16 if wide else 6)
            epoch = f"{min(int(self.done[name]) + 1, epochs)}/{epochs}"
            batch = self.batch[name] if wide else ()
            table.add_row(name, bar, epoch, *batch, *self.whole[name], self._left(name))
        return table

    def _left(self, name: str) -> str:
        done, spent = self.done[name], time.monotonic() - self.began
        return clock(spent * (self.epochs[name] - done) / done) if done else ""
