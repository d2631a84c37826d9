"""A run is a folder.

config.json        the network's architecture, the resolved training configuration, what the data looked like
data.json          the data's name and classes, and how raw values are prepared for the network
environment.json   versions, machine, threads, git commit
metrics.jsonl      one line per epoch
model.safetensors  the weights: the best on validation data, or the last if there is none
checkpoint/        where to continue from
summary.json       how the run ended; written at the end
events.log         when it was started, interrupted, resumed and finished
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verydeep.config import from_dict, to_dict
from verydeep.errors import UserError
from verydeep.files import (
    Kind,
    append,
    cannot_write,
    make_folder,
    partial_files,
    read_json,
    read_text,
    remove_partial_files,
    write_atomic,
)
from verydeep.training._config import TrainConfig
from verydeep.training.run._display import describe_run, draw, run_html
from verydeep.training.run._environment import environment
from verydeep.training.run._metrics import EpochMetrics, RunSummary, Selection, best_epoch
from verydeep.training.run._pretrained import resolve_pretrained
from verydeep.training.run._snapshots import list_snapshots, read_snapshot
from verydeep.words import LOWER_IS_BETTER

if TYPE_CHECKING:  # a run's folder is listed without torch
    import numpy as np
    from matplotlib.figure import Figure
    from torch import Tensor, nn
    from torch.optim import Optimizer

    from verydeep.data import Dataset, Rows, Task
    from verydeep.models import Network
    from verydeep.training.run._checkpoint import Position

FORMAT = 1
# What is written before config.json, which makes a folder a run; the others if its network is made from another run's.
_FIRST_FILES = {"lock", "data.json", "environment.json"}
_DERIVED_FILES = {"model.safetensors", "metrics.jsonl", "events.log", "summary.json", "prune.npz", "prune.json"}
_CONFIG_TYPES: dict[str, Kind] = {  # of config.json
    "architecture": str,
    "chosen": list[str],
    "config": dict,
    "config.classes": int,
    "data": dict,
    "data.checksum": int,
    "data.checksums": dict,
    "data.test": int,
    "data.train": int,
    "data.valid": int,
    "lower_is_better": list[str],
    "made_from": str,
    "measure": str,
    "own": list[str],
    "patience_from": int,
    "size": dict,
    "size.depth": int,
    "size.parameters": int,
}


class Run:
    """A training run on disk, finished or not. `train` creates runs; `Run.load` opens one.

    Args:
        path: The run's folder.
        config: Its configuration.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.training import ModelConfig, Run, TrainConfig, train
        >>> config = TrainConfig(DataConfig("digits"), ModelConfig(depth=3, width=8), epochs=2)
        >>> run = train(config, "runs/digits", progress=False)
        >>> Run.load("runs/digits")
        Run('runs/digits', 2 of 2 epochs, test accuracy ...%)
        >>> run.metrics[-1].epoch, run.summary.status
        (2, 'finished')
    """

    def __init__(self, path: Path, config: TrainConfig) -> None:
        self.path, self.config = path, config

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}, {describe_run(self)})"

    def _repr_html_(self) -> str:
        return run_html(self)

    def plot(self, path: str | os.PathLike[str] | None = None, **options: Any) -> Figure:  # noqa: ANN401
        """Draw the learning curves: loss and accuracy over epochs. A notebook shows the figure.

        Args:
            path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
            **options: Options of `verydeep.report.plot_run`, such as `theme="dark"`.
        """
        return draw("plot_run", self, path, **options)

    @classmethod
    def create(
        cls,
        path: Path,
        config: TrainConfig,
        model: nn.Module,
        metadata: dict[str, Any],
        initial: dict[str, str] | None = None,
    ) -> Run:
        """Write the first files of a run; the folder is a run once it has a config.json.

        Args:
            path: The folder; `require_free_folder` says which are refused.
            config: The resolved configuration.
            model: The network; its architecture is recorded if it is a verydeep network.
            metadata: Further entries of config.json.
            initial: Path and digest of the weights that training starts from, for environment.json.
        """
        from verydeep.models import Network, architecture

        require_free_folder(path)
        make_folder(path)
        network = architecture(model) if isinstance(model, Network) else {"format": FORMAT, "architecture": None}
        depth = model.config.depth if isinstance(model, Network) else None
        size = {"depth": depth, "parameters": sum(p.numel() for p in model.parameters() if p.requires_grad)}
        saved = network | {"size": size, "training": to_dict(config)} | metadata
        run = cls(path, config)
        run.write_environment(initial)
        write_atomic(path / "config.json", json.dumps(saved, indent=1) + "\n")
        return run

    @classmethod
    def load(cls, path: str | Path) -> Run:
        """Open a run's folder.

        Args:
            path: The folder, or `pretrained:NAME` for a network that comes with verydeep; see `list_pretrained`.

        Raises:
            UserError: It holds no run, or one that cannot be read.
        """
        path = resolve_pretrained(path)
        saved = read_json(path / "config.json", "expected a folder made by verydeep train", _CONFIG_TYPES)
        if saved.get("format") != FORMAT or "training" not in saved:
            file = path / "config.json"
            raise UserError(f"{file} is not a format-{FORMAT} run configuration; was it written by another version?")
        return cls(path, from_dict(TrainConfig, saved["training"], f"{path / 'config.json'}: training"))

    @property
    def metadata(self) -> dict[str, Any]:
        """The content of config.json."""
        return read_json(self.path / "config.json", types=_CONFIG_TYPES)

    @property
    def user_supplied(self) -> list[str]:
        """Which of "model" and "dataset" were given in Python instead of being named in the configuration."""
        return list(self.metadata.get("own") or ())

    @property
    def metrics(self) -> list[EpochMetrics]:
        """The metrics of every completed epoch; a last line that a crash cut short is left out."""
        file = self.path / "metrics.jsonl"
        lines = read_text(file).splitlines(keepends=True) if file.exists() else []
        return [self._parse(line, number) for number, line in enumerate(lines, 1) if line.endswith("\n")]

    def _parse(self, line: str, number: int) -> EpochMetrics:
        try:
            return EpochMetrics.from_dict(dict(json.loads(line)))
        except (ValueError, TypeError, RecursionError) as error:
            why = f": {error}" if isinstance(error, UserError) else ""
            file = self.path / "metrics.jsonl"
            raise UserError(f"{file} line {number} is damaged{why}; repair or remove it") from error

    @property
    def measured(self) -> EpochMetrics | None:
        """Metrics of the saved weights: the best epoch on validation data, or the last; None if there is none."""
        metrics, summary = self.metrics, self.summary
        if summary is not None and summary.status == "diverged":
            metrics = metrics[:-1]  # the weights of a diverged epoch are not saved
        elif summary is not None and summary.best is None and summary.last is not None:
            return summary.last  # with the metrics of a test at the end, which are not in metrics.jsonl
        if summary is not None and summary.best is not None:
            return summary.best
        return best_epoch(metrics, self.selection) or (metrics[-1] if metrics else None)

    @property
    def selection(self) -> Selection:
        """By which metric on validation data its best epoch is selected."""
        metric = self.config.metric or "accuracy"  # runs of earlier versions do not say
        lower = self.metadata.get("lower_is_better") or ()
        return Selection(metric, metric not in LOWER_IS_BETTER and metric not in lower)

    @property
    def measure(self) -> str:
        """What the score of its predictions is called: `accuracy`, or `r2` of a regression."""
        return str(self.metadata.get("measure") or "accuracy")

    @property
    def task(self) -> Task:
        """What its network predicts; output i belongs to `task.names[i]`."""
        from verydeep.data import Task
        from verydeep.training.run._run_data import RunData

        data = RunData.load(self)
        return data.task or Task("classification", data.classes, target=self.config.data.target)  # of earlier versions

    @property
    def tested_metrics(self) -> list[EpochMetrics]:
        """The metrics of every completed epoch; those of the saved weights include a test at the end of the run."""
        measured = self.measured
        return [measured if measured is not None and line.epoch == measured.epoch else line for line in self.metrics]

    @property
    def summary(self) -> RunSummary | None:
        """How the run ended; None while it has not finished."""
        file = self.path / "summary.json"
        if not file.exists():
            return None
        values = read_json(file)
        try:
            return RunSummary.from_dict(values)
        except UserError as error:
            raise UserError(f"{file} is damaged ({error}); remove it, then resume the run") from error

    @property
    def is_network(self) -> bool:
        """Whether the run trains a verydeep network, not a user-supplied module."""
        return self.metadata.get("architecture") is not None

    @cached_property
    def model(self) -> Network:
        """The network with the run's weights, in evaluation mode."""
        if not self.is_network:
            raise UserError(
                f"{self.path} was trained with your own module: create it, and call models.load_weights(module, ...)"
            )
        if not (self.path / "model.safetensors").exists():
            if self.summary is not None:
                diverged = self.summary.status == "diverged"
                reason = "it diverged in its first epoch" if diverged else "its model.safetensors has been deleted"
                raise UserError(f"{self.path} has no weights: {reason}")
            raise UserError(f"{self.path} has no weights yet: no epoch is complete; resume it first")
        from verydeep.models import from_pretrained

        return from_pretrained(self.path)

    @property
    def snapshots(self) -> list[int]:
        """After which epochs the weights were kept, 0 for the initial ones; see the setting `snapshots`."""
        return list(list_snapshots(self.path))

    def model_at(self, epoch: int) -> Network:
        """The network with the weights of a snapshot, in evaluation mode.

        Args:
            epoch: One of `snapshots`.

        Example:
            >>> from verydeep.data import DataConfig
            >>> from verydeep.training import ModelConfig, TrainConfig, train
            >>> config = TrainConfig(DataConfig("digits"), ModelConfig(depth=3, width=8), epochs=4, snapshots=2)
            >>> run = train(config, "runs/snapshots", progress=False)
            >>> run.snapshots, run.model_at(2).highway_depth
            ([0, 2, 4], 2)
        """
        from verydeep.models import build, load_tensors, read_architecture

        found = list_snapshots(self.path)
        if epoch not in found:
            kept = f"there are those after {', '.join(map(str, found))} epochs" if found else "it kept none"
            raise UserError(f"{self.path} has no snapshot after {epoch} epochs; {kept} (setting: snapshots)")
        model = build(read_architecture(self.path))
        load_tensors(model, read_snapshot(found[epoch]), found[epoch])
        return model.eval()

    def predict(self, rows: Rows) -> np.ndarray:
        """Predict for new samples, which are prepared as the training data was.

        Args:
            rows: A path (a CSV or Parquet file, an `.npz` file with `x`, an image or a folder of images), a list of
                paths of images, a DataFrame of pandas or polars, a list of dictionaries, or an array. The columns of a
                table are matched by name; the target need not be there.

        Returns:
            The names of the classes, `(n,)`; numbers in their original units, `(n,)` or, for several targets,
            `(n, targets)`; or labels 0 and 1, `(n, labels)`.

        Example:
            >>> from pathlib import Path
            >>> from verydeep.data import DataConfig
            >>> from verydeep.training import ModelConfig, TrainConfig, train
            >>> lines = [f"{i % 7},{'red' if i % 2 else 'blue'},{i % 2}" for i in range(60)]
            >>> _ = Path("dots.csv").write_text("size,colour,label" + chr(10) + chr(10).join(lines))
            >>> config = TrainConfig(DataConfig("dots.csv"), ModelConfig(depth=3, width=8), epochs=20)
            >>> run = train(config, "runs/dots", progress=False)
            >>> rows = [{"size": 3, "colour": "red"}, {"size": 5, "colour": None}]
            >>> run.predict(rows).shape, run.predict_proba(rows).shape
            ((2,), (2, 2))
        """
        from verydeep.training.evaluation._predict import predict

        return predict(self, rows)

    def predict_proba(self, rows: Rows) -> np.ndarray:
        """The probability of each class or label, `(n, classes)`, in the order of `task.names`.

        Args:
            rows: New samples, as for `predict`.
        """
        from verydeep.training.evaluation._predict import predict_proba

        return predict_proba(self, rows)

    def append(self, *lines: EpochMetrics) -> None:
        """Add epochs to metrics.jsonl."""
        append(self.path / "metrics.jsonl", "".join(json.dumps(line.to_dict()) + "\n" for line in lines))

    def load_checkpoint(
        self, model: nn.Module, optimiser: Optimizer, extra_tensors: Mapping[str, Tensor]
    ) -> tuple[Position, dict[Path, str]]:
        """Restore the newest intact checkpoint, if possible one of which all epochs have metrics.

        Returns:
            Its position, and what is wrong with each newer one.
        """
        from verydeep.training.run._checkpoint import load_checkpoint

        return load_checkpoint(self.path / "checkpoint", model, optimiser, extra_tensors, len(self.metrics))

    def save_checkpoint(
        self, model: nn.Module, optimiser: Optimizer, position: Position, extra_tensors: Mapping[str, Tensor]
    ) -> None:
        """Write a checkpoint."""
        from verydeep.training.run._checkpoint import save_checkpoint

        save_checkpoint(self.path / "checkpoint", model, optimiser, position, extra_tensors)

    def save_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Write the weights that `model` returns later."""
        from verydeep.models import save_tensors

        save_tensors(weights, self.path / "model.safetensors")

    def truncate_metrics(self, epochs: int) -> None:
        """Drop the metrics of epochs that will be trained again, because the checkpoint is older."""
        saved = self.metrics[:epochs]
        if (self.path / "metrics.jsonl").exists():
            write_atomic(self.path / "metrics.jsonl", "".join(json.dumps(line.to_dict()) + "\n" for line in saved))

    def remove_partial_files(self) -> None:
        """Remove files that a killed process left incomplete."""
        for folder in (self.path, self.path / "checkpoint", self.path / "snapshots"):
            remove_partial_files(folder)

    def log(self, event: str) -> None:
        """Add a line to events.log."""
        append(self.path / "events.log", f"{datetime.now().astimezone().isoformat(timespec='seconds')} {event}\n")

    def write_environment(self, initial: dict[str, str] | None = None) -> None:
        """Record the versions and the machine, and which weights training started from, if any."""
        values = environment() | ({} if initial is None else {"init": initial})
        write_atomic(self.path / "environment.json", json.dumps(values, indent=1) + "\n")

    @property
    def patience_from(self) -> int:
        """The epoch from which patience counts: 0, or where a run that stopped early was continued."""
        return int(self.metadata.get("patience_from") or 0) if (self.path / "config.json").exists() else 0

    def change_config(self, patience_from: int) -> None:
        """Store the run's present configuration; from then on it is unfinished."""
        values = self.metadata | {"training": to_dict(self.config), "patience_from": patience_from}
        try:  # first, so that a run whose configuration has changed is never taken for one that ended with it
            (self.path / "summary.json").unlink(missing_ok=True)
        except OSError as error:
            raise cannot_write(self.path / "summary.json", error) from error
        write_atomic(self.path / "config.json", json.dumps(values, indent=1) + "\n")

    def finish(self, summary: RunSummary) -> None:
        """Record how the run ended."""
        write_atomic(self.path / "summary.json", json.dumps(summary.to_dict(), indent=1) + "\n")


def numbered_folder(config: TrainConfig, dataset: Dataset, number: int) -> Path:
    """The default folder of a run: runs/MODEL-DATA-1, -2 and so on."""
    return Path("runs") / f"{config.model.name}-{dataset.name}-{number}"


def reserve_number(config: TrainConfig, dataset: Dataset) -> int:
    """Create the first numbered folder that is free and return its number; concurrent calls get different ones."""
    make_folder(Path("runs"))
    number = 1
    while True:
        path = numbered_folder(config, dataset, number)
        try:
            path.mkdir()
        except FileExistsError:
            number += 1
        except OSError as error:
            raise cannot_write(path, error) from error
        else:
            return number


def require_free_folder(path: Path) -> None:
    """Raise a `UserError` unless a new run can use the folder.

    It must be new, or empty except for what a start that was killed at once, or a `prune` that was killed, left behind.
    """
    if path.is_dir():
        names = {file.name for file in path.iterdir()} - {file.name for file in partial_files(path)}
        taken = bool(names - _FIRST_FILES - (_DERIVED_FILES if "environment.json" in names else set()))
    else:
        taken = path.exists()
    if taken:
        raise UserError(f"{path} already exists; choose another folder, or resume the run in it")
