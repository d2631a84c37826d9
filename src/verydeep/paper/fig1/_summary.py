"""What Figure 1 says in numbers: the table, the curves, and how much each setting matters at each depth."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from verydeep.paper.fig1._protocol import DEPTHS, Protocol, Stage
from verydeep.paper.fig1._study import epoch_seconds
from verydeep.paper.fig1._trials import Results, Trial

TOP = 10
LEARNT = 0.01  # a training loss that counts as learnt


@dataclass(frozen=True)
class Row:
    """One network.

    Attributes:
        network: Its name.
        parameters: How many it has.
        settings: How many were trained, and how many are to be.
        diverged: How many of them diverged.
        epochs: How long the best was trained.
        learnt_after: How many epochs it took to a loss below `LEARNT`; None if it never got there.
        best: Its lowest training loss; None while nothing has been trained.
        top: The mean of the lowest losses of the ten best.
        top_count: How many they are, ten in a complete study.
        test_accuracy: Of the best, after its last epoch.
        top_test_accuracy: Mean over the ten best.
        settings_of_best: What it trained with.
        epoch_seconds: Of one core.
    """

    network: str
    parameters: int
    settings: tuple[int, int]
    diverged: int = 0
    epochs: int = 0
    best: float | None = None
    top: float | None = None
    top_count: int = 0
    test_accuracy: float | None = None
    top_test_accuracy: float | None = None
    settings_of_best: tuple[tuple[str, object], ...] = ()
    epoch_seconds: float | None = None
    learnt_after: int | None = None


def best_trials(result: Results, count: int = TOP) -> list[Trial]:
    """The trials with the lowest training loss, the best first."""
    learnt = [trial for trial in result.trials.values() if trial.best() < float("inf")]
    return sorted(learnt, key=lambda trial: (trial.best(), trial.trial))[:count]


def table(found: Sequence[Results], protocol: Protocol) -> list[Row]:
    """A row for every network, also for those nobody has trained."""
    return [_row(result, protocol) for result in found]


def _row(result: Results, protocol: Protocol) -> Row:
    trials, best = result.trials, best_trials(result)
    row = Row(result.network.name, parameter_count(result, protocol), (len(trials), protocol.settings))
    if not best:
        return row
    return Row(
        row.network,
        row.parameters,
        row.settings,
        sum(trial.status == "diverged" for trial in trials.values()),
        best[0].epochs,
        best[0].best(),
        mean(trial.best() for trial in best),
        len(best),
        best[0].test_accuracy[-1],
        mean(trial.test_accuracy[-1] for trial in best),
        tuple(best[0].settings.items()),
        epoch_seconds(result),
        next((epoch for epoch, loss in enumerate(best[0].train_loss, 1) if loss < LEARNT), None),
    )


def parameter_count(result: Results, protocol: Protocol) -> int:
    """Trainable parameters, counted in the network itself."""
    from verydeep.models import create_model

    model = protocol.base(result.network).model
    pixels = (1, 8, 8) if protocol.data == "digits" else (1, 28, 28)
    network = create_model(model.name, **model.overrides(), input_shape=pixels)
    return sum(parameter.numel() for parameter in network.parameters())


def ratio(rows: Sequence[Row], depth: int = DEPTHS[-1]) -> float | None:
    """How many times the best plain network's loss is that of the best highway; None while one is missing."""
    best = {row.network: row.best for row in rows}
    plain, highway = best.get(f"plain-{depth}"), best.get(f"highway-{depth}")
    return plain / highway if plain is not None and highway else None


def best_curves(found: Sequence[Results]) -> dict[str, list[float]]:
    """The left panel: the loss over epochs of each network's best trial."""
    return {result.network.name: list(best[0].train_loss) for result in found if (best := best_trials(result, 1))}


def mean_curves(found: Sequence[Results]) -> dict[str, list[float]]:
    """The right panel: the mean loss of the ten best, as far as all of them were trained."""
    curves = {}
    for result in found:
        if best := best_trials(result):
            curves[result.network.name] = [mean(losses) for losses in zip(*(t.train_loss for t in best), strict=False)]
    return curves


def describe_protocol(stages: Sequence[Stage]) -> str:
    """In words."""
    first, *rest = stages
    text = f"{first.settings} settings for {first.epochs} epochs"
    return text + "".join(f", the best {stage.settings} of them for {stage.epochs}" for stage in rest)
