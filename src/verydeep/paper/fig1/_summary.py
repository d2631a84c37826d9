"""Figure 1 in numbers: a row per network for the table, and the curves of the two panels."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from verydeep.paper.fig1._protocol import DEPTHS, HALVING, NETWORKS, Protocol
from verydeep.paper.fig1._results import Fig1Results, Fig1Trial
from verydeep.paper.fig1._study import epoch_seconds
from verydeep.studies import Stages
from verydeep.words import plural

TOP = 10
LEARNT = 0.01  # a training loss that counts as learnt


@dataclass(frozen=True)
class Fig1Row:
    """The results of one network of Figure 1.

    Attributes:
        network: Its name.
        parameters: Number of parameters.
        settings: Number of settings trained so far, and in the complete study.
        diverged: Number of settings that diverged.
        epochs: Number of epochs of the best setting.
        best: The lowest training loss of the best setting; None while nothing has been trained.
        top: Mean of the lowest losses of the ten best settings.
        top_count: How many settings the "ten best" are; fewer while the study is under way.
        test_accuracy: Test accuracy of the best setting after its last epoch.
        top_test_accuracy: Its mean over the ten best settings.
        settings_of_best: The best setting.
        epoch_seconds: Time per epoch on one core.
        learnt_after: Number of epochs until the best setting's loss fell below 0.01; None if it never did.

    Example:
        >>> from verydeep.paper import Fig1Row
        >>> Fig1Row("highway-50", parameters=289_660, settings=(0, 100)).best is None
        True
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


def best_trials(result: Fig1Results, count: int = TOP) -> list[Fig1Trial]:
    """The trials with the lowest training loss, best first."""
    learnt = [trial for trial in result.trials.values() if trial.best() < float("inf")]
    return sorted(learnt, key=lambda trial: (trial.best(), trial.trial))[:count]


def fig1_rows(results: Sequence[Fig1Results], protocol: Protocol) -> list[Fig1Row]:
    """A row per network, including those not trained yet."""
    return [_row(result, protocol) for result in results]


def read_fig1(folder: str | Path) -> list[Fig1Row]:
    """Read what was measured for Figure 1.

    Args:
        folder: The folder of the recorded trials, such as `results/fig1`.

    Returns:
        A row per network, including those not trained yet.

    Example:
        >>> from verydeep.paper import read_fig1
        >>> [row.network for row in read_fig1("results/fig1")][:2]
        ['plain-10', 'highway-10']
    """
    return fig1_rows([Fig1Results(Path(folder), network, HALVING) for network in NETWORKS], HALVING)


def _row(result: Fig1Results, protocol: Protocol) -> Fig1Row:
    trials, best = result.trials, best_trials(result)
    row = Fig1Row(result.network.name, parameter_count(result, protocol), (len(trials), protocol.settings))
    if not best:
        return row
    return Fig1Row(
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


def parameter_count(result: Fig1Results, protocol: Protocol) -> int:
    """Number of parameters, counted in the network itself."""
    from verydeep.models import create_model

    model = protocol.base(result.network).model
    pixels = (1, 8, 8) if protocol.data == "digits" else (1, 28, 28)
    network = create_model(model.name, **model.overrides(), input_shape=pixels)
    return sum(parameter.numel() for parameter in network.parameters())


def loss_ratio(rows: Sequence[Fig1Row], depth: int = DEPTHS[-1]) -> float | None:
    """The best plain network's loss divided by that of the best highway; None while one is missing."""
    best = {row.network: row.best for row in rows}
    plain, highway = best.get(f"plain-{depth}"), best.get(f"highway-{depth}")
    return plain / highway if plain is not None and highway else None


def best_curves(results: Sequence[Fig1Results]) -> dict[str, list[float]]:
    """The left panel: loss per epoch of each network's best trial."""
    return {result.network.name: list(best[0].train_loss) for result in results if (best := best_trials(result, 1))}


def mean_curves(results: Sequence[Fig1Results]) -> dict[str, list[float]]:
    """The right panel: mean loss per epoch of the ten best trials, as far as all of them are trained."""
    curves = {}
    for result in results:
        if best := best_trials(result):
            curves[result.network.name] = [mean(losses) for losses in zip(*(t.train_loss for t in best), strict=False)]
    return curves


def describe_protocol(stages: Stages) -> str:
    """Describe the stages in words."""
    (epochs, settings), *rest = zip(stages.epochs, stages.trainings, strict=True)
    text = f"{settings} settings for {plural(epochs, 'epoch')}"
    return text + "".join(f", the best {settings} of them for {epochs}" for epochs, settings in rest)
