"""What an experiment is: the statements it tests, what is trained for them, and how numbers become verdicts."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any

from verydeep.config import config_folder
from verydeep.paper._verdict import Verdict
from verydeep.paper.tables._study import StudyOptions
from verydeep.studies import StudyProgress, with_settings
from verydeep.training import EpochMetrics, TrainConfig, complete_config, read_config

Label = str | int | float
Labels = Mapping[str, Label]
Report = Callable[[float], None]
Bar = Callable[[str], AbstractContextManager[Report | None]]

BLIND_GUESS = math.log(10)  # the cross-entropy of a guess among ten classes, which MNIST and the digits have
TRAINS = BLIND_GUESS / 2  # a network with a training loss below this has started to learn
TRAINS_LINE = (TRAINS, "half of a blind guess")  # in pictures
_QUICK_EPOCHS = 5  # of the digits, which are 75 updates
_SETTINGS = {
    "network": "model.name",
    "depth": "model.depth",
    "init": "model.init",
    "activation": "model.activation",
    "gate bias": "model.gate_bias",
    "carry": "model.carry",
    "learning rate": "optim.lr",
    "decay": "schedule.factor",
}


@dataclass(frozen=True)
class PaperStatement:
    """A statement of the paper.

    Attributes:
        section: Its section in the paper.
        text: What it says, in our words.
        rule: How the verdict follows from our numbers.
        thought: What we think of it where our numbers differ.
    """

    section: str
    text: str
    rule: str
    thought: str = ""


@dataclass(frozen=True)
class Conclusion:
    """What was found about a statement.

    Attributes:
        measured: Our numbers, in words.
        verdict: Whether they agree with the paper; None while numbers are missing.
        numbers: The numbers that the verdict follows from.
    """

    measured: str = ""
    verdict: Verdict | None = None
    numbers: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class ClaimTraining:
    """A network that an experiment trains, with one seed or several.

    Attributes:
        labels: What distinguishes it from the others of the experiment, such as its depth.
        config: Its configuration.
        seeds: The seeds.
    """

    labels: Labels
    config: TrainConfig
    seeds: tuple[int, ...] = (0,)

    @property
    def name(self) -> str:
        """Its name, which is also that of its runs' folder."""
        return "_".join(str(value).replace("/", "-") for value in self.labels.values())


@dataclass(frozen=True)
class ClaimCurve:
    """The training of one seed.

    Attributes:
        labels: The labels of its network.
        seed: The seed.
        status: `trained` or `diverged`.
        metrics: What was measured in each epoch.
    """

    labels: Labels
    seed: int
    status: str
    metrics: tuple[EpochMetrics, ...]

    @property
    def losses(self) -> list[float]:
        """The loss over the whole training set after each epoch; infinite where it is not a finite number."""
        values = [line.train_loss for line in self.metrics]
        return [value if value is not None and math.isfinite(value) else math.inf for value in values]

    @property
    def loss(self) -> float:
        """The loss after the last epoch; infinite if the training diverged."""
        return math.inf if self.status == "diverged" or not self.metrics else self.losses[-1]

    @property
    def accuracy(self) -> float:
        """The accuracy on the test set after the last epoch; 0 if the training diverged."""
        return 0.0 if self.status == "diverged" or not self.metrics else self.metrics[-1].test_accuracy or 0.0


@dataclass(frozen=True)
class Evidence:
    """What the conclusions of an experiment are drawn from.

    Attributes:
        curves: Its trainings; all of them, or none while some are missing.
        results: The folder of all results, for experiments that take numbers from there.
        measured: What `ClaimExperiment.measure` or `search` has returned.
    """

    curves: Sequence[ClaimCurve]
    results: Path
    measured: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ClaimSearchOptions:
    """Where and how long an experiment searches.

    Attributes:
        quick: Search a tiny version on the digits.
        results: The folder of all results.
        runs: The folder of the experiment's study and its runs.
        study: Where the study is recorded and who trains it.
        root: Folder of the known datasets.
        seconds: Time limit; None for no limit.
        progress: What is shown while it trains.
        bar: Shows the progress of a measurement.
    """

    quick: bool
    results: Path
    runs: Path
    study: StudyOptions
    root: Path | None
    seconds: float | None
    progress: StudyProgress
    bar: Bar


@dataclass(frozen=True)
class ClaimSearchResult:
    """What a search has found.

    Attributes:
        numbers: What is stored.
        seconds: The time of its trainings and measurements on one core.
    """

    numbers: Mapping[str, Any]
    seconds: float


@dataclass(frozen=True)
class ClaimExperiment:
    """An experiment that tests one statement or several.

    Attributes:
        name: Its name, for `--only` and in file names.
        title: What is compared, in words.
        statements: The statements that it tests.
        conclude: Draws a conclusion for each statement.
        trainings: What is trained, normally and with `--quick`; nothing if the numbers are among the other results.
        draw: Draws the picture, if there is one.
        protocol: How the networks are trained, in words.
        measure: Measures within minutes what is no training of a study, normally or with `--quick`, and reports the
            fraction that is done. The numbers that it returns are stored.
        search: Trains in a study of its own what depends on the results of other trainings, and measures it; None is
            returned if time was up, and the next call continues. Its numbers are stored as those of `measure`.
    """

    name: str
    title: str
    statements: tuple[PaperStatement, ...]
    conclude: Callable[[Evidence], Sequence[Conclusion]]
    trainings: Callable[[bool], Sequence[ClaimTraining]] = lambda quick: ()
    draw: Callable[[Evidence, Path], None] | None = None
    protocol: str = ""
    measure: Callable[[bool, Report], Mapping[str, Any]] | None = None
    search: Callable[[ClaimSearchOptions], ClaimSearchResult | None] | None = None


def claim_training(
    file: str, quick: bool, labels: Labels, seeds: Sequence[int] = (0,), **changes: Label | tuple[str, ...] | None
) -> ClaimTraining:
    """A training with the settings of a file in `configs/claims` and those that its labels name.

    Args:
        file: The name of the file.
        quick: Train on the digits instead.
        labels: What distinguishes it; labels such as `depth` are settings, too.
        seeds: The seeds.
        **changes: Other settings, with `__` in place of the dot: `optim__lr=0.1`.
    """
    settings: dict[str, object] = {_SETTINGS[name]: value for name, value in labels.items() if name in _SETTINGS}
    settings |= {name.replace("__", "."): value for name, value in changes.items()}
    if quick:
        settings |= {"data.source": "digits", "data.train_samples": None, "epochs": _QUICK_EPOCHS}
    config = _read(file)
    return ClaimTraining(labels, complete_config(with_settings(config, settings)), tuple(seeds))


@cache
def _read(file: str) -> TrainConfig:
    return read_config(config_folder() / "claims" / f"{file}.toml")


def by_label(curves: Sequence[ClaimCurve], *names: str) -> dict[tuple[Label, ...], list[ClaimCurve]]:
    """The curves of every combination of these labels, one per seed, at the learning rate of the lowest mean loss.

    Args:
        curves: The trainings.
        *names: The labels; what else distinguishes trainings is searched over.
    """
    tried: dict[tuple[Label, ...], dict[tuple[Label, ...], list[ClaimCurve]]] = {}
    for curve in curves:
        rest = tuple(value for name, value in curve.labels.items() if name not in names)
        tried.setdefault(tuple(curve.labels[name] for name in names), {}).setdefault(rest, []).append(curve)
    return {key: min(each.values(), key=lambda found: mean(c.loss for c in found)) for key, each in tried.items()}


def best_losses(curves: Sequence[ClaimCurve], *names: str) -> dict[tuple[Label, ...], float]:
    """The mean loss over the seeds of every combination of these labels, at the best learning rate."""
    return {key: mean(curve.loss for curve in found) for key, found in by_label(curves, *names).items()}


def loss_table(curves: Sequence[ClaimCurve], rows: str, columns: str) -> dict[Any, dict[Any, float]]:
    """The best losses by one label, then by another."""
    table: dict[Any, dict[Any, float]] = {}
    for (row, column), loss in best_losses(curves, rows, columns).items():
        table.setdefault(row, {})[column] = loss
    return table


def format_loss(loss: float) -> str:
    """A loss with two digits, or that the training diverged."""
    return f"{loss:.2g}" if math.isfinite(loss) else "diverged"
