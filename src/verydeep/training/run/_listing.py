"""All runs below a folder, for a table; broken runs are listed with their problem."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verydeep.errors import UserError
from verydeep.files import read_json, read_text
from verydeep.lock import is_held
from verydeep.training.run._run import Run
from verydeep.words import named_score

_LEVELS = 3  # how many levels of folders are searched


@dataclass(frozen=True, repr=False)
class RunInfo:
    """Summary of a run.

    Attributes:
        name: Its path below the folder.
        status: training, finished, stopped early, diverged, pruned (from another run), interrupted (saved and
            stopped), unfinished (killed) or broken.
        changed: When it was last written to, in seconds since 1970.
        model: The network's name.
        depth: Number of hidden layers; None for a user-supplied module.
        parameters: Number of trainable parameters.
        data: The data's name.
        epochs_done: Epochs completed.
        epochs: Epochs in total.
        loss: Training loss of the last epoch.
        valid_accuracy: Validation accuracy of the saved weights; of a regression, R2.
        test_accuracy: Test accuracy of the saved weights: the best on validation data, or the last.
        seconds: Time spent training.
        problem: What is wrong with a broken run.
        measure: What the accuracies are: `accuracy`, or `r2` of a regression.

    Example:
        >>> from verydeep.training import RunInfo
        >>> RunInfo("digits", "finished", 0.0, "highway-mlp", epochs_done=2, epochs=2, test_accuracy=0.97)
        RunInfo('digits', finished, highway-mlp, 2 of 2 epochs, test accuracy 97.00%)
    """

    name: str
    status: str
    changed: float
    model: str = ""
    depth: int | None = None
    parameters: int | None = None
    data: str = ""
    epochs_done: int = 0
    epochs: int = 0
    loss: float | None = None
    valid_accuracy: float | None = None
    test_accuracy: float | None = None
    seconds: float = 0.0
    problem: str = ""
    measure: str = "accuracy"

    def __repr__(self) -> str:
        parts = [self.status, " on ".join(part for part in (self.model, self.data) if part)]
        parts += [f"{self.epochs_done} of {self.epochs} epochs"] if self.epochs else []
        parts += [] if self.test_accuracy is None else [f"test {named_score(self.measure, self.test_accuracy)}"]
        return f"RunInfo({self.name!r}, {', '.join(part for part in [*parts, self.problem] if part)})"


def list_runs(folder: str | Path = "runs") -> list[RunInfo]:
    """List every run in a folder and up to three levels below it, the latest last, without the trials of searches.

    Args:
        folder: The folder; by default `runs`, where `train` puts them.

    Raises:
        UserError: There is no such folder.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.training import ModelConfig, TrainConfig, list_runs, train
        >>> run = train(TrainConfig(DataConfig("digits"), ModelConfig(depth=2, width=8), epochs=1), "runs/first")
        >>> [info.name for info in list_runs()]
        ['first']
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; training creates runs")
    paths = [path for path in _find(folder) if not _is_search(path)]
    infos = [_info(path, str(path.relative_to(folder.parent if path == folder else folder))) for path in paths]
    return sorted(infos, key=lambda info: (info.changed, info.name))


def list_studies(folder: str | Path) -> list[Path]:
    """The studies of searches below the folder, on the levels on which runs are listed."""
    return [path for path in _find(Path(folder)) if _is_search(path)]


def _find(folder: Path, levels: int = _LEVELS, in_study: bool = False) -> Iterator[Path]:
    """Folders that are runs, or studies of searches below the first folder; neither is searched further.

    Other studies are: those of seeds, of tables and of the demo have few runs. The numbered runs are searched settings.
    """
    try:
        names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    except OSError:
        return
    below = levels < _LEVELS
    if names & {"config.json", "environment.json"} or (below and _is_search(folder)):
        yield folder
    elif levels:
        in_study |= below and "study.json" in names
        for name in sorted(names):
            if not name.startswith(".") and not (in_study and name.isdecimal()):
                yield from _find(folder / name, levels - 1, in_study)


def _is_search(folder: Path) -> bool:
    return (folder / "study.json").exists() and (folder / "trials").is_dir()


def run_info(run: Run, name: str) -> RunInfo:
    """What `list_runs` says about a run; here, damage is an error."""
    return RunInfo(name, run_status(run), _changed(run.path), **_size(run), **_progress(run))


def _info(path: Path, name: str) -> RunInfo:
    try:
        return run_info(Run.load(path), name)
    except Exception as error:  # whatever is wrong with one run, the table shows the others
        return RunInfo(name, "broken", _changed(path), problem=str(error) or type(error).__name__)


def run_status(run: Run) -> str:
    """How a run stands: training, finished, interrupted, ...; see `RunInfo`."""
    if run.summary is not None:
        return run.summary.status
    if is_held(run.path / "lock"):
        return "training"
    events = run.path / "events.log"
    stopped = events.exists() and read_text(events).rstrip().endswith(" interrupted")
    return "interrupted" if stopped else "unfinished"


def _size(run: Run) -> dict[str, Any]:
    saved, data = run.metadata, run.path / "data.json"
    size = saved.get("size", {})
    return {
        "model": run.config.model.name if saved["architecture"] else "(your own)",
        "depth": size.get("depth"),
        "parameters": size.get("parameters"),
        "data": _data_name(data) if data.exists() else Path(run.config.data.source).name,
    }


def _data_name(path: Path) -> str:
    name = read_json(path, types={"name": str}).get("name")
    if name is None:
        raise UserError(f"{path} is damaged: it names no dataset; restore it")
    return str(name)


def _progress(run: Run) -> dict[str, Any]:
    metrics, measured = run.metrics, run.measured
    if not metrics:
        return {"epochs": run.config.epochs}
    last = metrics[-1]
    return {
        "epochs_done": last.epoch,
        "epochs": run.config.epochs,
        "loss": last.loss if last.loss is not None and math.isfinite(last.loss) else None,
        "valid_accuracy": None if measured is None else measured.get(f"valid_{run.measure}"),
        "test_accuracy": None if measured is None else measured.get(f"test_{run.measure}"),
        "measure": run.measure,
        "seconds": float(last.seconds),
    }


def _changed(path: Path) -> float:
    files = (path / name for name in ("config.json", "metrics.jsonl", "summary.json", "events.log"))
    return max((file.stat().st_mtime for file in files if file.exists()), default=path.stat().st_mtime)
