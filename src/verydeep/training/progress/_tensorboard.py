"""TensorBoard events of a run, written to its folder; they repeat what metrics.jsonl says."""

from importlib.util import find_spec

from torch import Tensor

from verydeep.errors import UserError, install_command
from verydeep.training.progress._progress import TrainingProgress
from verydeep.training.run._checkpoint import Position
from verydeep.training.run._metrics import EpochMetrics
from verydeep.training.run._run import Run


class TensorBoard(TrainingProgress):
    """Writes every metric of every epoch to the folder `tensorboard` of the run, in addition to another display.

    Args:
        progress: The other display; by default, only warnings are shown.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.training import ModelConfig, TensorBoard, TrainConfig, train
        >>> config = TrainConfig(DataConfig("digits"), ModelConfig(depth=2, width=8), epochs=1)
        >>> run = train(config, "runs/digits", progress=TensorBoard())
        >>> [path.name for path in (run.path / "tensorboard").iterdir()]
        ['events.out.tfevents...']
    """

    def __init__(self, progress: TrainingProgress | None = None) -> None:
        self.check_installed()
        self.progress = progress or TrainingProgress()

    @staticmethod
    def check_installed() -> None:
        """Raise a `UserError` that says how to install TensorBoard if it is missing."""
        if find_spec("tensorboard") is None:
            raise UserError(f"TensorBoard events need tensorboard; install with: {install_command('tensorboard')}")

    def start(self, run: Run, position: Position, batches: int) -> None:
        """Write the epochs in metrics.jsonl; they replace the events of an earlier start."""
        from torch.utils.tensorboard import SummaryWriter

        folder = run.path / "tensorboard"
        for old in folder.glob("events.out.tfevents.*"):
            old.unlink()
        self.writer = SummaryWriter(str(folder))
        for metrics in run.metrics:
            self._write(metrics)
        self.progress.start(run, position, batches)

    def step(self, position: Position, result: Tensor, samples: int, lr: float) -> None:
        self.progress.step(position, result, samples, lr)

    def epoch(self, metrics: EpochMetrics) -> None:
        self._write(metrics)
        self.progress.epoch(metrics)

    def summary(self, lines: list[str]) -> None:
        self.progress.summary(lines)

    def note(self, message: str) -> None:
        self.progress.note(message)

    def warn(self, message: str) -> None:
        self.progress.warn(message)

    def close(self) -> None:
        if hasattr(self, "writer"):
            self.writer.close()
        self.progress.close()

    def _write(self, metrics: EpochMetrics) -> None:
        for name, value in metrics.to_dict().items():
            if name != "epoch" and isinstance(value, int | float):  # others may have added text to a line
                self.writer.add_scalar(_tag(name), value, metrics.epoch)
        self.writer.flush()


def _tag(name: str) -> str:
    """`test_loss` becomes `loss/test`, so that TensorBoard groups curves to compare."""
    split, _, what = name.partition("_")
    if split in ("train", "valid", "test"):
        return f"{what}/{split}"
    return f"{name}/epoch" if name in ("loss", "accuracy", "r2") else name
