"""What a run remembers of its data: enough to feed its network again, and to notice that the data has changed.

It is data.json in the run's folder.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from verydeep.config import from_dict, to_dict
from verydeep.data import ArrayPreparation, Dataset, Inputs, Split, TablePreparation, load_dataset, load_split
from verydeep.errors import UserError
from verydeep.files import write_whole
from verydeep.training._run import Run

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class RunData:
    """A run's data.

    Attributes:
        name: The dataset's name.
        configured: Whether the run's configuration says where it is; else it was given in Python.
        classes: The name of every class.
        samples: Of the training, validation and test split.
        preparation: What was done to the raw values; None if the run does not know.
    """

    name: str
    configured: bool
    classes: tuple[str, ...]
    samples: tuple[int, ...]
    preparation: ArrayPreparation | TablePreparation | None

    @classmethod
    def of(cls, dataset: Dataset, configured: bool) -> "RunData":
        """What to remember of a dataset."""
        splits = [getattr(dataset, name) for name in SPLITS]
        counts = tuple(0 if split is None else len(split) for split in splits)
        return cls(dataset.name, configured, dataset.classes, counts, dataset.preparation)

    @classmethod
    def load(cls, run: Run) -> "RunData":
        """What a run remembers."""
        path = run.path / "data.json"
        try:
            return from_dict(cls, json.loads(path.read_text()), str(path))
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror}; the run does not say what it trained on") from error
        except ValueError as error:
            raise UserError(f"{path} cannot be used: {error}") from error


def remember(run: Run, dataset: Dataset, configured: bool) -> None:
    """Write down what a new run trains on; refuse to continue an old one on something else."""
    now = RunData.of(dataset, configured)
    if not (run.path / "data.json").exists():
        write_whole(run.path / "data.json", json.dumps(to_dict(now)) + "\n")
        return
    before = RunData.load(run)
    if configured and not before.configured:
        raise UserError(f"{run.path} trains on data given in Python: continue it there, resume(path, dataset=...)")
    _check_same(run, before, now)


def load_data(run: Run, source: str | None = None, split: str = "test", root: str | Path | None = None) -> Split:
    """Samples for a run's network.

    Args:
        run: Whose network.
        source: A known name or a path: prepared as the run's training data was, its classes matched by name. The run's
            own data unless given.
        split: `train`, `valid` or `test`; of other data that is not split, all of it is taken.
        root: Where known datasets are kept.
    """
    data = RunData.load(run)
    if source is not None:
        if data.preparation is None:
            raise UserError(f"{run.path} was trained on tensors given in Python; it cannot prepare {source}")
        return load_split(Inputs(data.classes, data.preparation), run.config.data, source, split, root)
    if not data.configured:
        raise UserError(f"{run.path} was trained on data given in Python; say what to use, --data PATH_OR_NAME")
    dataset = load_dataset(run.config.data, root)
    _check_same(run, data, RunData.of(dataset, configured=True))
    found: Split | None = getattr(dataset, split)
    if found is None:
        raise UserError(f"{run.path} was trained without validation data; choose --split test or --split train")
    return found


def _check_same(run: Run, before: RunData, now: RunData) -> None:
    if (now.classes, now.samples) != (before.classes, before.samples):
        raise UserError(
            f"{now.name} is not what {run.path} was started with: {_size(now)} now, {_size(before)} then; "
            "bring that back, or give other data to verydeep eval with --data"
        )


def _size(data: RunData) -> str:
    counts = ", ".join(f"{name} {count}" for name, count in zip(SPLITS, data.samples, strict=True) if count)
    return f"{len(data.classes)} classes ({counts})"
