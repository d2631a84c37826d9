"""What a run remembers of its data, to feed its network again: data.json in the run's folder."""

import json
from dataclasses import dataclass
from pathlib import Path

from verydeep.config import from_dict, to_dict
from verydeep.data import ArrayPreparation, Dataset, Inputs, Split, TablePreparation, load_dataset, load_split
from verydeep.errors import UserError
from verydeep.files import read_json, write_atomic
from verydeep.training._fingerprint import differences, fingerprint
from verydeep.training._run import Run


@dataclass(frozen=True)
class RunData:
    """A run's data.

    Attributes:
        name: The dataset's name.
        classes: The name of every class.
        preparation: What was done to the raw values; None for tensors given in Python, where nobody knows.
    """

    name: str
    classes: tuple[str, ...]
    preparation: ArrayPreparation | TablePreparation | None

    @classmethod
    def load(cls, run: Run) -> "RunData":
        """What a run remembers."""
        path = run.path / "data.json"
        return from_dict(cls, read_json(path, "the run does not say what it trained on"), str(path))


def remember(run: Run, dataset: Dataset) -> None:
    """Write down what a new run trains on."""
    data = RunData(dataset.name, dataset.classes, dataset.preparation)
    write_atomic(run.path / "data.json", json.dumps(to_dict(data), ensure_ascii=False) + "\n")


def load_data(run: Run, source: str | None = None, split: str = "test", root: str | Path | None = None) -> Split:
    """Samples for a run's network.

    Args:
        run: Whose network.
        source: A known name or a path: prepared as the run's training data was, its classes matched by name. The run's
            own data unless given.
        split: `train`, `valid` or `test`; of other data that is not split, all of it is taken.
        root: Where known datasets are kept.
    """
    if source is not None:
        data = RunData.load(run)
        if data.preparation is None:
            raise UserError(f"{run.path} was trained on tensors given in Python; it cannot prepare {source}")
        return load_split(Inputs(data.classes, data.preparation), run.config.data, source, split, root)
    return split_of(run, load_own(run, root), split)


def load_own(run: Run, root: str | Path | None = None) -> Dataset:
    """All data of a run, if it is as it was."""
    if "dataset" in run.facts.get("own", ()):
        raise UserError(f"{run.path} was trained on data given in Python; say what to use: --data PATH_OR_NAME")
    dataset = load_dataset(run.config.data, root)
    if changed := differences(run.facts.get("data", {}), fingerprint(dataset)):
        raise UserError(
            f"{run.config.data.source} has changed since {run.path} was trained on it ({changed}); "
            f"to measure on it as it is now: --data {run.config.data.source}"
        )
    return dataset


def split_of(run: Run, dataset: Dataset, split: str) -> Split:
    """`train`, `valid` or `test` of a run's data."""
    found: Split | None = getattr(dataset, split)
    if found is None:
        raise UserError(f"{run.path} was trained without validation data; choose another --split")
    return found
