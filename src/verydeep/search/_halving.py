"""Successive halving without waiting (ASHA, Li et al. 2018): a trial at a rung is compared with all that were there.

Not Optuna's pruner: it would count every attempt at a setting as another trial.
"""

from collections.abc import Sequence

from verydeep.search._config import Halving


def is_rung(halving: Halving, epoch: int) -> bool:
    """Whether trials are compared after this epoch."""
    rung = halving.first
    while rung < epoch:
        rung *= halving.keep
    return rung == epoch


def goes_on(value: float, others: Sequence[float], keep: int, maximise: bool) -> bool:
    """Whether a trial is among the best of those that reached a rung, one in `keep`; of very few, the best one."""
    ranked = sorted([value, *others], reverse=maximise)
    last = ranked[max(1, len(ranked) // keep) - 1]
    return value >= last if maximise else value <= last
