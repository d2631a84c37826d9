"""What a run records about its data: how samples are prepared for its network (data.json), and a fingerprint."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verydeep.config import from_dict, to_dict
from verydeep.data import (
    ArrayPreparation,
    Dataset,
    Inputs,
    Split,
    TablePreparation,
    Task,
    UnpreparedSplit,
    checksum,
    load_split,
    load_with_raw,
    split_checksum,
    spread,
)
from verydeep.errors import UserError
from verydeep.files import read_json, write_atomic
from verydeep.training.run._run import Run

_SAMPLES = 100  # checked samples, spread over the training set: enough to notice another file, cheap for a huge one


@dataclass(frozen=True)
class RunData:
    """The content of data.json.

    Attributes:
        name: The dataset's name.
        classes: The name of every class.
        preparation: How raw values are prepared; None for tensors given in Python, whose preparation is unknown.
        task: What is predicted; runs of earlier versions do not say, and are classification.
    """

    name: str
    classes: tuple[str, ...]
    preparation: ArrayPreparation | TablePreparation | None
    task: Task | None = None

    @classmethod
    def load(cls, run: Run) -> "RunData":
        """Read data.json of a run."""
        path = run.path / "data.json"
        data = from_dict(cls, read_json(path, "the data of the run is unknown"), str(path))
        outputs = (run.metadata.get("config") or {}).get("classes")
        if data.task and "model" not in run.user_supplied and outputs not in (None, named := data.task.outputs):
            raise UserError(f"{path} is damaged: it names {named} outputs of a network with {outputs}; restore it")
        return data


def write_data_json(run: Run, dataset: Dataset) -> None:
    """Record what a new run trains on."""
    data = RunData(dataset.name, dataset.classes, dataset.preparation, dataset.task)
    write_atomic(run.path / "data.json", json.dumps(to_dict(data), ensure_ascii=False) + "\n")


def load_data(run: Run, source: str | None = None, split: str = "test", root: str | Path | None = None) -> Split:
    """Load samples for a run's network.

    Args:
        run: The run.
        source: A known name or a path. The data is prepared as the run's training data was, and its classes are matched
            by name. By default, the run's own data.
        split: `train`, `valid` or `test`. Other data without splits is used in full.
        root: Folder of the known datasets.
    """
    if source is not None:
        return load_split(inputs_of(run, source), run.config.data, source, split, root)
    return split_of(run, load_own(run, root), split)


def inputs_of(run: Run, source: str = "new data") -> Inputs:
    """What the run's network expects and answers.

    Args:
        run: The run.
        source: What is to be prepared, for the error of a run that cannot.
    """
    data = RunData.load(run)
    if data.preparation is None:
        raise UserError(f"{run.path} was trained on tensors given in Python; it cannot prepare {source}")
    return Inputs(data.classes, data.preparation, data.task)  # type: ignore[arg-type]  # None is classification


def load_own(run: Run, root: str | Path | None = None) -> Dataset:
    """Load the data that a run was trained on; raises a `UserError` if it has changed since."""
    return load_own_with_raw(run, root)[0]


def load_own_with_raw(run: Run, root: str | Path | None = None) -> tuple[Dataset, dict[str, UnpreparedSplit]]:
    """Load the data that a run was trained on, prepared and as it was read."""
    if "dataset" in run.user_supplied:
        raise UserError(f"{run.path} was trained on data given in Python; name the data to use")
    dataset, raw = load_with_raw(run.config.data, root)
    if changed := data_changes(run, dataset):
        raise UserError(
            f"{run.config.data.source} has changed since {run.path} was trained on it ({changed}); "
            "to use the current version, name it as the data"
        )
    return dataset, raw


def split_of(run: Run, dataset: Dataset, split: str) -> Split:
    """`train`, `valid` or `test` of a run's data."""
    samples: Split | None = getattr(dataset, split)
    if samples is None:
        raise UserError(f"{run.path} was trained without validation data; choose another split")
    return samples


def fingerprint(dataset: Dataset, verify: bool = False) -> dict[str, Any]:
    """The numbers of samples and classes, the shape of samples, and checksums of every split.

    With `verify`, splits that stay on disk are read in full. The entry `checksum` covers the training labels and some
    samples; it is all that earlier versions recorded.
    """
    splits = {"train": dataset.train, "valid": dataset.valid, "test": dataset.test}
    sizes = {name: None if split is None else len(split) for name, split in splits.items()}
    samples = dataset.train.x[spread(len(dataset.train), _SAMPLES).to(dataset.train.x.device)]
    return sizes | {
        "shape": list(samples.shape[1:]),
        "classes": dataset.task.outputs,
        "checksum": checksum(samples, checksum(dataset.train.y)),
        "checksums": {name: split_checksum(split, verify) for name, split in splits.items() if split is not None},
    }


def data_changes(run: Run, dataset: Dataset) -> str:
    """How a dataset differs from what the run was started with, in words; empty if it does not."""
    before, now = run.metadata.get("data") or {}, fingerprint(dataset, run.config.data.verify)
    changed = [name for name in before if name in now and before[name] != now[name]]
    shown = [f"{name} {before[name]}, now {now[name]}" for name in changed if not name.startswith("checksum")]
    if shown or not changed:
        return ", ".join(shown)
    known = before.get("checksums")  # earlier versions recorded only one, of the training data
    splits = [name for name, found in now["checksums"].items() if isinstance(known, dict) and known.get(name) != found]
    return f"other values in {', '.join(splits or ['train'])}"
