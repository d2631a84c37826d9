"""Asynchronous successive halving (ASHA, Li et al. 2018): a trial is compared with all that reached the same rung.

Optuna's pruner is not used because it counts every attempt at a trial as a separate trial.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from verydeep.errors import UserError


@dataclass(frozen=True)
class Halving:
    """Successive halving: trials are compared after `first`, `first * keep`, `first * keep ** 2`, ... epochs.

    Attributes:
        first: Epochs before a trial is first compared with the others.
        keep: One in `keep` trials continues; the next comparison is after `keep` times the epochs.

    Example:
        >>> from verydeep.search import Halving
        >>> Halving(first=2, keep=3)  # compares after 2, 6, 18, ... epochs
        Halving(first=2, keep=3)
    """

    first: int = 1
    keep: int = 3

    def __post_init__(self) -> None:
        if self.first < 1 or self.keep < 2:
            raise UserError(f"halving: first must be at least 1 and keep at least 2, got {self.first} and {self.keep}")


def is_rung(halving: Halving, epoch: int) -> bool:
    """Whether trials are compared after this epoch."""
    rung = halving.first
    while rung < epoch:
        rung *= halving.keep
    return rung == epoch


def continues(value: float, others: Sequence[float], keep: int, maximise: bool) -> bool:
    """Whether a trial is among the best 1 / `keep` of those that reached a rung; the best one always is."""
    ranked = sorted([value, *others], reverse=maximise)
    last = ranked[max(1, len(ranked) // keep) - 1]
    return value >= last if maximise else value <= last
