"""Random splits, seeded; stratified if there are classes: each contributes its share, but never its last sample."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from verydeep.data._config import DataConfig
from verydeep.data.own._table import Table
from verydeep.errors import UserError

PAPER_VALIDATION = {"mnist": 10_000, "fashion-mnist": 10_000, "cifar10": 10_000, "cifar100": 10_000}
"""Training samples held out while settings are chosen (MNIST 50k/10k, CIFAR 40k/10k); then all are trained on."""

_SHARE, _FEWEST = 0.15, 20  # what "auto" holds out, and from how many training samples on
_STREAMS = {"test": 0, "validation": 1, "folds": 2, "train_samples": 3}  # different random numbers for each


@dataclass(frozen=True)
class UnpreparedSplit:
    """Raw samples and their encoded targets."""

    x: Tensor | Table
    y: Tensor


def add_splits(splits: dict[str, UnpreparedSplit], config: DataConfig) -> dict[str, UnpreparedSplit]:
    """Add the splits that did not come with the data, and leave out training samples that are not wanted."""
    splits = _hold_out_splits(splits, config)
    return splits if config.train_samples is None else _with_fewer(splits, config.train_samples, config.seed)


def _hold_out_splits(splits: dict[str, UnpreparedSplit], config: DataConfig) -> dict[str, UnpreparedSplit]:
    """Hold out the test and validation split that did not come with the data.

    The test split is held out first, so that it does not depend on how much is held out for validation, then the fold.
    """
    if "test" not in splits:
        splits = _with_held_out(splits, "test", 0.2 if config.test is None else config.test, config.seed)
    elif config.test is not None:
        raise UserError(f"{config.source}: already has a test split; leave data.test out")
    if config.folds is not None:
        name = "held_out" if "valid" in splits or config.validation else "valid"
        rows = hold_out_fold(_classes(splits["train"].y), config.folds, config.fold, config.seed)
        splits = _divided(splits, name, rows)
    if not config.validation:
        return splits
    if config.validation == "auto":
        if "valid" in splits or len(splits["train"].y) < _FEWEST:
            return splits
        return _with_held_out(splits, "validation", _SHARE, config.seed)
    if "valid" in splits:
        raise UserError(f"{config.source}: already has a validation split; leave data.validation out")
    return _with_held_out(splits, "validation", _validation_amount(config.validation, config.source), config.seed)


def _with_held_out(
    splits: dict[str, UnpreparedSplit], what: str, wanted: int | float, seed: int
) -> dict[str, UnpreparedSplit]:
    rows = hold_out(_classes(splits["train"].y), wanted, seed, what)
    return _divided(splits, "valid" if what == "validation" else what, rows)


def _with_fewer(splits: dict[str, UnpreparedSplit], wanted: int | float, seed: int) -> dict[str, UnpreparedSplit]:
    """The splits with some of the training samples."""
    train, available = splits["train"], len(splits["train"].y)
    count = round(wanted * available) if isinstance(wanted, float) else wanted
    if count == available:
        return splits
    if not 0 < count < available:
        raise UserError(f"data.train_samples = {wanted} would train on {count} of {available} training samples")
    classes = _classes(train.y)
    if count < (present := len(classes.unique())):
        raise UserError(
            f"data.train_samples = {wanted}: {count} training samples are fewer than the {present} classes; "
            "each needs at least one"
        )
    rows, _ = hold_out(classes, available - count, seed, "train_samples")
    return splits | {"train": UnpreparedSplit(train.x[rows], train.y[rows])}


def _divided(splits: dict[str, UnpreparedSplit], name: str, rows: tuple[Tensor, Tensor]) -> dict[str, UnpreparedSplit]:
    """The splits with some training samples, given the rows to keep and those to hold out, in a split of their own."""
    train = splits["train"]
    kept, held = (UnpreparedSplit(train.x[part], train.y[part]) for part in rows)
    return splits | {"train": kept, name: held}


def _classes(y: Tensor) -> Tensor:
    """Class numbers to stratify by; numbers and labels count as one class."""
    return torch.zeros(len(y), dtype=torch.int64) if y.is_floating_point() else y


def _validation_amount(wanted: int | float | str, source: str) -> int | float:
    if not isinstance(wanted, str):
        return wanted
    if source not in PAPER_VALIDATION:
        raise UserError(f"data.validation = 'paper' is for {', '.join(PAPER_VALIDATION)}; give a fraction such as 0.1")
    return PAPER_VALIDATION[source]


def hold_out(y: Tensor, wanted: int | float, seed: int, what: str) -> tuple[Tensor, Tensor]:
    """Choose the indices to keep and the indices to hold out, each in ascending order.

    A class of n samples gives n * (fraction held out) of them, rounded up or down so that the total is exact. A class
    with a single sample keeps it.

    Args:
        y: Class numbers, `(n,)`.
        wanted: The number of samples to hold out, or their fraction (a float).
        seed: The same seed gives the same split.
        what: `test`, `validation` or `train_samples`: the option named in errors, and the stream of random numbers.
    """
    count = _count(wanted, len(y), what)
    random, classes = _random(seed, what), y.numpy()
    quotas = _quotas(np.bincount(classes), count, random, what)
    shuffled = random.permutation(len(classes))
    by_class = shuffled[np.argsort(classes[shuffled], kind="stable")]
    rank = np.arange(len(classes)) - np.searchsorted(classes[by_class], classes[by_class])
    held = np.zeros(len(classes), dtype=bool)
    held[by_class] = rank < quotas[classes[by_class]]
    return torch.from_numpy(np.flatnonzero(~held)), torch.from_numpy(np.flatnonzero(held))


def hold_out_fold(y: Tensor, folds: int, fold: int, seed: int) -> tuple[Tensor, Tensor]:
    """Choose the indices to keep and those of one fold, each in ascending order.

    Folds differ by at most one sample, in total and in the samples of each class. Each sample is in one fold, except
    for the only sample of a class, which is in none.

    Args:
        y: Class numbers, `(n,)`.
        folds: The number of folds, at least 2.
        fold: Which one to hold out, from 0 on.
        seed: The same seed gives the same folds.
    """
    classes = y.numpy()
    shuffled = _random(seed, "folds").permutation(len(classes))
    by_class = shuffled[np.argsort(classes[shuffled], kind="stable")]
    divided = by_class[np.bincount(classes, minlength=1)[classes[by_class]] > 1]
    if len(divided) < folds:
        single = len(classes) - len(divided)
        but = f" ({single} more are the only ones of their class, which are never held out)" if single else ""
        raise UserError(
            f"data.folds = {folds} needs as many training samples, but there are {len(divided)}{but}; "
            "choose fewer folds"
        )
    # Dealt out like cards, one class after another: consecutive samples of a class are in different folds.
    held = np.zeros(len(classes), dtype=bool)
    held[divided[fold::folds]] = True
    return torch.from_numpy(np.flatnonzero(~held)), torch.from_numpy(np.flatnonzero(held))


def _random(seed: int, what: str) -> np.random.RandomState:
    # NumPy guarantees that these two never draw other numbers, so a split is the same in every version.
    return np.random.RandomState(np.random.SeedSequence([seed, _STREAMS[what]]).generate_state(8))


def _count(wanted: int | float, available: int, what: str) -> int:
    count = round(wanted * available) if isinstance(wanted, float) else wanted
    if not 0 < count < available:
        raise UserError(
            f"data.{what} = {wanted} would hold out {count} of {available} samples; choose a smaller number or fraction"
        )
    return count


def _quotas(sizes: np.ndarray, count: int, random: np.random.RandomState, what: str) -> np.ndarray:
    """Samples to hold out per class: its share rounded down, and one more where the remainder is largest."""
    shares = [divmod(count * int(size), int(sizes.sum())) for size in sizes]
    quotas = np.array([whole for whole, _ in shares])
    missing = count - int(quotas.sum())
    candidates = [c for c in random.permutation(len(sizes)) if quotas[c] + 1 < sizes[c]]
    if missing > len(candidates):
        raise UserError(
            f"data.{what}: cannot hold out {count} of {sizes.sum()} samples and keep one of each class for training; "
            f"at most {quotas.sum() + len(candidates)} are possible"
        )
    quotas[sorted(candidates, key=lambda c: -shares[c][1])[:missing]] += 1
    return quotas
