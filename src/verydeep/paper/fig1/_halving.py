"""Successive halving: which settings of which networks train next, for how long, and how much is left."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from verydeep.paper.fig1._protocol import Fig1Network, Protocol
from verydeep.paper.fig1._results import Fig1Results, Fig1Trial


@dataclass(frozen=True)
class Fig1Task:
    """One setting of a network, to be trained up to an epoch."""

    network: Fig1Network
    trial: int
    epochs: int


def participants(trials: dict[int, Fig1Trial], protocol: Protocol, stage: int) -> list[int] | None:
    """The settings of a stage, best first; None while the stage before it is incomplete."""
    if stage == 0:
        return list(range(protocol.settings))
    before, epochs = participants(trials, protocol, stage - 1), protocol.stages[stage - 1].epochs
    if before is None or not all(_is_done(trials.get(number), epochs) for number in before):
        return None
    alive = [number for number in before if trials[number].status != "diverged"]
    ranked = sorted(alive, key=lambda number: (trials[number].best(epochs), number))
    return ranked[: protocol.stages[stage].settings]


def open_tasks(
    results: Sequence[Fig1Results], protocol: Protocol, taken: Collection[Fig1Task] = ()
) -> Iterator[Fig1Task]:
    """What can be trained now, early stages first, so that an interrupted study covers every network."""
    for stage, part in enumerate(protocol.stages):
        for result in results:
            for number in participants(result.trials, protocol, stage) or ():
                task = Fig1Task(result.network, number, part.epochs)
                busy = any(other.network == task.network and other.trial == number for other in taken)
                if not busy and not _is_done(result.trials.get(number), part.epochs):
                    yield task


def eliminated(trials: dict[int, Fig1Trial], protocol: Protocol) -> list[int]:
    """Settings that have been trained and take part in no later stage."""
    for stage in reversed(range(len(protocol.stages))):
        numbers = participants(trials, protocol, stage)
        if numbers is not None:
            return [n for n, trial in trials.items() if n not in numbers or trial.status == "diverged"]
    return []


def epochs_left(trials: dict[int, Fig1Trial], protocol: Protocol) -> int:
    """Number of epochs that the protocol still requires if no further run diverges."""
    left = 0
    reached: dict[int, int] = {n: trial.epochs for n, trial in trials.items()}
    for stage, part in enumerate(protocol.stages):
        numbers = participants(trials, protocol, stage)
        if numbers is None:  # which settings is unknown, but their number is, and that none is past the stage before
            left += part.settings * (part.epochs - protocol.stages[stage - 1].epochs)
        else:
            open_ = (n for n in numbers if n not in trials or trials[n].status != "diverged")
            left += sum(max(0, part.epochs - reached.get(n, 0)) for n in open_)
            reached |= {n: max(part.epochs, reached.get(n, 0)) for n in numbers}
    return left


def _is_done(trial: Fig1Trial | None, epochs: int) -> bool:
    return trial is not None and (trial.epochs >= epochs or trial.status == "diverged")
