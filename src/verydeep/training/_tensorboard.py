"""TensorBoard events of a run, in its folder; metrics.jsonl stays what counts, and the events follow from it."""

from importlib.util import find_spec
from typing import Any

from torch import Tensor

from verydeep.errors import UserError
from verydeep.training._checkpoint import Position
from verydeep.training._report import Report
from verydeep.training._run import Run


class TensorBoard(Report):
    """Writes every metric of every epoch to RUN/tensorboard, beside another report.

    Args:
        report: What people see.
    """

    def __init__(self, report: Report) -> None:
        self.check_installed()
        self.report = report

    @staticmethod
    def check_installed() -> None:
        """Say how to get it if it is not there."""
        if find_spec("tensorboard") is None:
            raise UserError("TensorBoard events need tensorboard; install with: pip install 'verydeep[tensorboard]'")

    def start(self, run: Run, position: Position, batches: int) -> None:
        """Write the epochs there are already; events of an earlier start are replaced by those in metrics.jsonl."""
        from torch.utils.tensorboard import SummaryWriter

        folder = run.path / "tensorboard"
        for old in folder.glob("events.out.tfevents.*"):
            old.unlink()
        self.writer = SummaryWriter(str(folder))
        for metrics in run.metrics:
            self._write(metrics)
        self.report.start(run, position, batches)

    def step(self, position: Position, found: Tensor, samples: int, lr: float) -> None:
        self.report.step(position, found, samples, lr)

    def epoch(self, metrics: dict[str, Any]) -> None:
        self._write(metrics)
        self.report.epoch(metrics)

    def warn(self, message: str) -> None:
        self.report.warn(message)

    def close(self) -> None:
        if hasattr(self, "writer"):
            self.writer.close()
        self.report.close()

    def _write(self, metrics: dict[str, Any]) -> None:
        for name, value in metrics.items():
            if name != "epoch" and value is not None:
                self.writer.add_scalar(_tag(name), value, metrics["epoch"])
        self.writer.flush()


def _tag(name: str) -> str:
    """`test_loss` as `loss/test`, so that curves to compare stand together."""
    split, _, what = name.rpartition("_")
    return f"{what}/{split or 'epoch'}" if what in ("loss", "accuracy") else name
