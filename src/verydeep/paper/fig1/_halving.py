"""Successive halving of the recorded trials: who takes part in which stage, and how much is left to train."""

from collections.abc import Collection

from verydeep.paper.fig1._protocol import Protocol
from verydeep.paper.fig1._results import Fig1Trial
from verydeep.studies import stage_members

_UNTRAINED = Fig1Trial(0, {}, "trained", 0.0, (), ())


def participants(trials: dict[int, Fig1Trial], protocol: Protocol, stage: int) -> list[int] | None:
    """The settings of a stage, best first; None while the stage before it is incomplete."""
    return stage_members(protocol.stages, stage, {n: trials.get(n, _UNTRAINED) for n in range(protocol.settings)})


def eliminated(trials: dict[int, Fig1Trial], protocol: Protocol) -> Collection[int]:
    """Settings that have been trained and take part in no later stage."""
    for stage in reversed(range(len(protocol.stages.epochs))):
        numbers = participants(trials, protocol, stage)
        if numbers is not None:
            return {n for n, trial in trials.items() if n not in numbers or trial.status == "diverged"}
    return ()


def epochs_left(trials: dict[int, Fig1Trial], protocol: Protocol) -> int:
    """Number of epochs that the protocol still requires if no further run diverges."""
    left, before = 0, 0
    reached: dict[int, int] = {n: trial.epochs for n, trial in trials.items()}
    for stage, (epochs, settings) in enumerate(zip(protocol.stages.epochs, protocol.stages.trainings, strict=True)):
        numbers = participants(trials, protocol, stage)
        if numbers is None:  # which settings is unknown, but their number is, and that none is past the stage before
            left += settings * (epochs - before)
        else:
            open_ = (n for n in numbers if n not in trials or trials[n].status != "diverged")
            left += sum(max(0, epochs - reached.get(n, 0)) for n in open_)
            reached |= {n: max(epochs, reached.get(n, 0)) for n in numbers}
        before = epochs
    return left
