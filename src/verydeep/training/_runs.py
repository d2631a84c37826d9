"""All runs below a folder, for a table: broken ones are listed with what is wrong."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verydeep.errors import UserError
from verydeep.lock import is_held
from verydeep.training._data import RunData
from verydeep.training._run import Run

_LEVELS = 3  # folders below the one asked for in which runs are looked for


@dataclass(frozen=True)
class RunInfo:
    """A run in short.

    Attributes:
        name: Its path below the folder.
        status: training, finished, stopped early, diverged, pruned (from another run), interrupted (saved and
            stopped), unfinished (killed) or broken.
        changed: When it last was written to, as seconds since 1970.
        model: Its network's name.
        depth: Layers with weights; None for a module of the user's own.
        parameters: Trainable ones.
        data: Its data's name.
        epochs_done: Epochs completed.
        epochs: Epochs it is to train for.
        loss: Training loss of the last epoch.
        valid_accuracy: The best.
        test_accuracy: Of the weights the run keeps: best on validation data, or the last.
        seconds: Time trained so far.
        problem: What is wrong with a broken run.
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


def list_runs(folder: str | Path) -> list[RunInfo]:
    """Every run in the folder or up to three folders below it, the latest last; not the trials of studies below it."""
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; runs are made by verydeep train")
    paths = [path for path in _find(folder) if not _is_study(path)]
    found = [_info(path, str(path.relative_to(folder.parent if path == folder else folder))) for path in paths]
    return sorted(found, key=lambda info: (info.changed, info.name))


def list_studies(folder: str | Path) -> list[Path]:
    """The studies of searches below the folder, as far down as runs are listed."""
    return [path for path in _find(Path(folder)) if _is_study(path)]


def _find(folder: Path, levels: int = _LEVELS) -> Iterator[Path]:
    """Runs, and the studies below the first folder, without what is in them."""
    try:
        names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    except OSError:
        return
    if names & {"config.json", "environment.json"} or (levels < _LEVELS and _is_study(folder)):
        yield folder
    elif levels:
        for name in sorted(names):
            if not name.startswith("."):
                yield from _find(folder / name, levels - 1)


def _is_study(folder: Path) -> bool:
    return (folder / "study.json").exists()


def _info(path: Path, name: str) -> RunInfo:
    try:
        run = Run.load(path)
        return RunInfo(name, _status(run), _changed(path), **_size(run), **_progress(run))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:  # whatever a spoilt file may cause
        return RunInfo(name, "broken", _changed(path), problem=str(error) or type(error).__name__)


def _status(run: Run) -> str:
    if run.summary is not None:
        return str(run.summary["status"])
    if is_held(run.path / "lock"):
        return "training"
    events = run.path / "events.log"
    stopped = events.exists() and events.read_text().rstrip().endswith(" interrupted")
    return "interrupted" if stopped else "unfinished"


def _size(run: Run) -> dict[str, Any]:
    saved, data = run.facts, run.path / "data.json"
    size = saved.get("size", {})
    return {
        "model": run.config.model.name if saved["architecture"] else "(your own)",
        "depth": size.get("depth"),
        "parameters": size.get("parameters"),
        "data": RunData.load(run).name if data.exists() else Path(run.config.data.source).name,
    }


def _progress(run: Run) -> dict[str, Any]:
    metrics, kept = run.metrics, run.measured
    last = metrics[-1] if metrics else {}
    return {
        "epochs_done": last.get("epoch", 0),
        "epochs": run.config.epochs,
        "loss": last.get("loss"),
        "valid_accuracy": kept.get("valid_accuracy"),
        "test_accuracy": kept.get("test_accuracy"),
        "seconds": float(last.get("seconds", 0)),
    }


def _changed(path: Path) -> float:
    files = (path / name for name in ("config.json", "metrics.jsonl", "summary.json", "events.log"))
    return max((file.stat().st_mtime for file in files if file.exists()), default=path.stat().st_mtime)
