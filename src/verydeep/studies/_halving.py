"""Successive halving: only the best trainings of a group are trained to the end.

`Halving` is asynchronous (ASHA, Li et al. 2018): a training is compared with all that reached the same epoch before it,
and stops if it is not among the best. `Stages` is synchronous: all trainings of a stage are trained, then the best of
them continue. Optuna's pruners are not used because they count every attempt at a training as a separate trial.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from verydeep.errors import UserError


@dataclass(frozen=True)
class Halving:
    """Asynchronous halving: trainings are compared after `first`, `first * keep`, `first * keep ** 2`, ... epochs.

    Attributes:
        first: Epochs before a training is first compared with the others.
        keep: One in `keep` trainings continues; the next comparison is after `keep` times the epochs.

    Example:
        >>> from verydeep.studies import Halving
        >>> Halving(first=2, keep=3)  # compares after 2, 6, 18, ... epochs
        Halving(first=2, keep=3)
    """

    first: int = 1
    keep: int = 3

    def __post_init__(self) -> None:
        if self.first < 1 or self.keep < 2:
            raise UserError(f"halving: first must be at least 1 and keep at least 2, got {self.first} and {self.keep}")


@dataclass(frozen=True)
class Stages:
    """Synchronous halving: in each stage, some trainings are trained up to an epoch; the best of them enter the next.

    Attributes:
        epochs: The epoch at which each stage ends, ascending.
        trainings: How many trainings take part in each stage, descending; the first stage has all of the group.

    Example:
        >>> from verydeep.studies import Stages
        >>> Stages(epochs=(2, 10, 100), trainings=(100, 33, 10)).epochs[-1]
        100
    """

    epochs: tuple[int, ...]
    trainings: tuple[int, ...]

    def __post_init__(self) -> None:
        ascending, descending = sorted(set(self.epochs)), sorted(self.trainings, reverse=True)
        if not self.epochs or len(self.epochs) != len(self.trainings) or min(*self.epochs, *self.trainings) < 1:
            raise UserError("stages: give as many epochs as numbers of trainings, each at least 1")
        if list(self.epochs) != ascending or list(self.trainings) != descending:
            raise UserError("stages: epochs must ascend and the numbers of trainings descend")


class Reached(Protocol):
    """How far a training is, for `stage_members`."""

    def has_reached(self, epoch: int) -> bool:
        """Whether it has been trained up to an epoch, or has ended before."""

    def best_until(self, epoch: int) -> float | None:
        """Its best value up to an epoch, lower is better; None if it has none, as a training that diverged."""


def is_rung(halving: Halving, epoch: int) -> bool:
    """Whether trainings are compared after this epoch."""
    rung = halving.first
    while rung < epoch:
        rung *= halving.keep
    return rung == epoch


def continues(value: float, others: Sequence[float], keep: int, maximise: bool) -> bool:
    """Whether a training is among the best 1 / `keep` of those that reached a rung; the best one always is."""
    ranked = sorted([value, *others], reverse=maximise)
    last = ranked[max(1, len(ranked) // keep) - 1]
    return value >= last if maximise else value <= last


def stage_members(stages: Stages, stage: int, trainings: Mapping[int, Reached]) -> list[int] | None:
    """The numbers of the trainings that take part in a stage, best first; None while the one before is incomplete.

    Values are compared to five digits, and of equal ones the lower number wins: processors differ in the last digits,
    and recorded results are rounded, but all must name the same trainings.
    """
    if stage == 0:
        return list(trainings)
    before, epoch = stage_members(stages, stage - 1, trainings), stages.epochs[stage - 1]
    if before is None or not all(trainings[number].has_reached(epoch) for number in before):
        return None
    values = {number: trainings[number].best_until(epoch) for number in before}
    ranked = sorted((float(f"{value:.5g}"), number) for number, value in values.items() if value is not None)
    return [number for _, number in ranked[: stages.trainings[stage]]]
