"""Seeded, stratified splits: each class gives its share, and never its last sample."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from verydeep.data._config import DataConfig
from verydeep.data._table import Table
from verydeep.errors import UserError

PAPER_VALIDATION = {"mnist": 10_000, "fashion-mnist": 10_000, "cifar10": 10_000, "cifar100": 10_000}
"""Samples held out of the training set while settings are chosen (50k/10k and 40k/10k); then all are trained on."""

_STREAMS = {"test": 0, "validation": 1}  # so that holding out both does not draw the same numbers twice


@dataclass(frozen=True)
class Part:
    """Samples that are not prepared yet, and their class numbers."""

    x: Tensor | Table
    y: Tensor


def split(parts: dict[str, Part], config: DataConfig) -> dict[str, Part]:
    """Add the splits that are asked for and did not come with the data, by holding out training samples.

    The test split is held out first, so that it stays the same whatever is held out for validation.
    """
    if "test" not in parts:
        parts = _held_out(parts, "test", 0.2 if config.test is None else config.test, config.seed)
    elif config.test is not None:
        raise UserError(f"{config.source}: has a test split of its own; leave `test` out")
    if config.validation is None:
        return parts
    if "valid" in parts:
        raise UserError(f"{config.source}: has a validation split of its own; leave `validation` out")
    return _held_out(parts, "validation", _validation(config.validation, config.source), config.seed)


def _held_out(parts: dict[str, Part], what: str, wanted: int | float, seed: int) -> dict[str, Part]:
    train = parts["train"]
    kept, held = (Part(train.x[rows], train.y[rows]) for rows in hold_out(train.y, wanted, seed, what))
    return parts | {"train": kept, "valid" if what == "validation" else what: held}


def _validation(wanted: int | float | str, source: str) -> int | float:
    if not isinstance(wanted, str):
        return wanted
    if source not in PAPER_VALIDATION:
        raise UserError(f"validation = 'paper' is for {', '.join(PAPER_VALIDATION)}; give a share such as 0.1")
    return PAPER_VALIDATION[source]


def hold_out(y: Tensor, wanted: int | float, seed: int, what: str) -> tuple[Tensor, Tensor]:
    """Indices kept and indices held out, each in rising order.

    A class of n samples gives n * (share held out) of them, rounded up or down so that the total is exact; a class
    with a single sample keeps it.

    Args:
        y: Class numbers, `(n,)`.
        wanted: How many samples to hold out, or which share of them (a float).
        seed: The same seed gives the same split.
        what: `test` or `validation`; it names the option in errors, and draws its own numbers.
    """
    count = _count(wanted, len(y), what)
    # numpy promises that neither of these two will ever draw other numbers, so a split outlives its version
    random = np.random.RandomState(np.random.SeedSequence([seed, _STREAMS[what]]).generate_state(8))
    classes = y.numpy()
    quotas = _quotas(np.bincount(classes), count, random, what)
    shuffled = random.permutation(len(classes))
    by_class = shuffled[np.argsort(classes[shuffled], kind="stable")]
    rank = np.arange(len(classes)) - np.searchsorted(classes[by_class], classes[by_class])
    held = np.zeros(len(classes), dtype=bool)
    held[by_class] = rank < quotas[classes[by_class]]
    return torch.from_numpy(np.flatnonzero(~held)), torch.from_numpy(np.flatnonzero(held))


def _count(wanted: int | float, available: int, what: str) -> int:
    count = round(wanted * available) if isinstance(wanted, float) else wanted
    if not 0 < count < available:
        raise UserError(f"{what} = {wanted} would hold out {count} of {available} samples; give another share or count")
    return count


def _quotas(sizes: np.ndarray, count: int, random: np.random.RandomState, what: str) -> np.ndarray:
    """Samples each class gives: its share rounded down, and one more where the remainder is largest."""
    shares = [divmod(count * int(size), int(sizes.sum())) for size in sizes]
    quotas = np.array([whole for whole, _ in shares])
    missing = count - int(quotas.sum())
    candidates = [c for c in random.permutation(len(sizes)) if quotas[c] + 1 < sizes[c]]
    if missing > len(candidates):
        raise UserError(
            f"{what}: cannot hold out {count} of {sizes.sum()} samples and leave one of every class for training; "
            f"at most {quotas.sum() + len(candidates)} here"
        )
    quotas[sorted(candidates, key=lambda c: -shares[c][1])[:missing]] += 1
    return quotas
