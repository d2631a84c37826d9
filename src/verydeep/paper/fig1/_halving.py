"""Successive halving over whole networks: who trains next, how far, and what is left to do."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from verydeep.paper.fig1._protocol import Network, Protocol
from verydeep.paper.fig1._trials import Results, Trial


@dataclass(frozen=True)
class Task:
    """Train one setting of a network up to an epoch."""

    network: Network
    trial: int
    epochs: int


def participants(trials: dict[int, Trial], protocol: Protocol, stage: int) -> list[int] | None:
    """The settings of a stage, the best first; None while the stage before it is not complete."""
    if stage == 0:
        return list(range(protocol.settings))
    before, epochs = participants(trials, protocol, stage - 1), protocol.stages[stage - 1].epochs
    if before is None or not all(_is_done(trials.get(number), epochs) for number in before):
        return None
    alive = [number for number in before if trials[number].status != "diverged"]
    ranked = sorted(alive, key=lambda number: (trials[number].best(epochs), number))
    return ranked[: protocol.stages[stage].settings]


def tasks(results: Sequence[Results], protocol: Protocol, taken: Collection[Task] = ()) -> Iterator[Task]:
    """What can be trained now: early stages first, so that a study in pieces shows every network soon."""
    for stage, part in enumerate(protocol.stages):
        for result in results:
            for number in participants(result.trials, protocol, stage) or ():
                task = Task(result.network, number, part.epochs)
                busy = any(other.network == task.network and other.trial == number for other in taken)
                if not busy and not _is_done(result.trials.get(number), part.epochs):
                    yield task


def eliminated(trials: dict[int, Trial], protocol: Protocol) -> list[int]:
    """Settings that have been trained and will not be trained further."""
    for stage in reversed(range(len(protocol.stages))):
        numbers = participants(trials, protocol, stage)
        if numbers is not None:
            return [n for n, trial in trials.items() if n not in numbers or trial.status == "diverged"]
    return []


def epochs_left(trials: dict[int, Trial], protocol: Protocol) -> int:
    """How many epochs the protocol still asks for, if no further run diverges."""
    left = 0
    reached: dict[int, int] = {n: trial.epochs for n, trial in trials.items()}
    for stage, part in enumerate(protocol.stages):
        numbers = participants(trials, protocol, stage)
        if numbers is None:  # nobody knows who, but how many, and that none has gone further than the stage before
            left += part.settings * (part.epochs - protocol.stages[stage - 1].epochs)
        else:
            open_ = (n for n in numbers if n not in trials or trials[n].status != "diverged")
            left += sum(max(0, part.epochs - reached.get(n, 0)) for n in open_)
            reached |= {n: max(part.epochs, reached.get(n, 0)) for n in numbers}
    return left


def _is_done(trial: Trial | None, epochs: int) -> bool:
    return trial is not None and (trial.epochs >= epochs or trial.status == "diverged")
