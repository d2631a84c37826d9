"""Problems whose need for depth is known by construction.

Three families have levels: level k applies the same simple step k times. One hidden layer of a few rectified linear
units computes a step exactly, so about k hidden layers are enough. Shallower networks need more units per layer, so two
families have a width, which all networks are held to: without one, width replaces depth. Whether training finds what
a network could compute is another question, so the depth that training needs is expected to grow with k, not to equal
it.

Noise hides errors that are small, so that a network that computes the rule nearly exactly is as good as one that
computes it exactly. It also gives every problem a lowest loss, that of someone who knows the rule.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from verydeep.files import write_atomic

Array = NDArray[np.float64]
Task = Literal["classification", "regression"]
Expected = Literal["linear", "grows", "unlearnable"]
WRONG = 0.05  # the share of classes of the parity that are wrong
CLASS_NAMES = ("no", "yes", "maybe")


@dataclass(frozen=True)
class Table:
    """Features, targets, and what is known about the targets.

    Attributes:
        x: The features, `(row, feature)`.
        y: The class numbers, or the numbers to predict.
        truth: What someone who knows the rule predicts: the probability of each class, `(row, class)`, or the number
            without noise.
    """

    x: Array
    y: Array
    truth: Array

    @property
    def lowest_loss(self) -> float:
        """The loss of someone who knows the rule: the cross-entropy, or the squared error of standardised targets."""
        if self.truth.ndim == 1:
            return float(((self.y - self.truth) ** 2).mean() / self.y.var())
        return float(-np.log(self.truth[np.arange(len(self.y)), self.y.astype(int)]).mean())

    def write_csv(self, path: Path) -> None:
        """Write the table with the columns f1, f2, ... and target; classes have names.

        Args:
            path: The file.
        """
        lines = [",".join([*(f"f{number}" for number in range(1, self.x.shape[1] + 1)), "target"])]
        for row, target in zip(self.x, self.y, strict=True):
            last = f"{target:.7g}" if self.truth.ndim == 1 else CLASS_NAMES[int(target)]
            lines.append(",".join([*(f"{value:.7g}" for value in row), last]))
        write_atomic(path, "\n".join(lines) + "\n")


@dataclass(frozen=True)
class KnownProblem:
    """A problem, and the answer that it must be given.

    Attributes:
        family: The family; the answers within a family are compared.
        level: How many times the step is applied; 0 if there are no levels.
        task: What is predicted.
        expected: What the depth must be: 0 (`linear`), more than that of the family's previous level (`grows`), or none
            because no network learns the task (`unlearnable`).
        make: The table for a seed.
        width: The width of all networks; None if it is searched.
    """

    family: str
    level: int
    task: Task
    expected: Expected
    make: Callable[[int], Table]
    width: int | None = None


def linear_numbers(seed: int, rows: int = 2000) -> Table:
    """A weighted sum of 20 features, with noise of the same variance."""
    random = np.random.default_rng(seed)
    x, weights = random.normal(size=(rows, 20)), random.normal(size=20)
    truth = x @ weights / np.linalg.norm(weights)
    return Table(x, truth + random.normal(size=rows), truth)


def linear_odds(seed: int, rows: int = 2000) -> Table:
    """Two classes whose log-odds are a weighted sum of 10 features: logistic regression is the true model."""
    random = np.random.default_rng(seed)
    x, weights = random.normal(size=(rows, 10)), random.normal(size=10)
    probability = 1 / (1 + np.exp(-3 * x @ weights / np.linalg.norm(weights)))
    truth = _two_classes(probability)
    return Table(x, _draw_classes(truth, random), truth)


def linear_classes(seed: int, rows: int = 3000) -> Table:
    """Three classes: the softmax of three weighted sums of 8 features."""
    random = np.random.default_rng(seed)
    x, weights = random.normal(size=(rows, 8)), random.normal(size=(8, 3))
    odds = np.exp(2 * x @ weights / np.linalg.norm(weights, axis=0))
    truth = odds / odds.sum(1, keepdims=True)
    return Table(x, _draw_classes(truth, random), truth)


def folded_paper(level: int, seed: int, rows: int = 10_000) -> Table:
    """Two classes whose log-odds are linear after a sheet of paper has been turned and folded along both axes k times.

    A layer of four rectified linear units computes a fold: |z| = relu(z) + relu(-z). The boundary between the classes
    is a line once folded, and has up to 4^k pieces on the flat sheet. From the second fold on, the creases themselves
    are bent. A single layer only has straight creases, so it can only approximate them.

    Args:
        level: The number of folds.
        seed: The seed of the rows and their classes.
        rows: The number of rows.
    """
    random = np.random.default_rng(seed)
    x = random.uniform(-1, 1, (rows, 2))
    sine, cosine = np.sin(0.6), np.cos(0.6)
    turn = np.array([[cosine, sine], [-sine, cosine]])
    point = x
    for _ in range(level):
        point = 2 * np.abs(point @ turn) - np.array([0.8, 0.9])
    truth = _two_classes(1 / (1 + np.exp(-6 * (point[:, 0] - 0.3 * point[:, 1]))))
    return Table(x, _draw_classes(truth, random), truth)


def nested_distances(level: int, seed: int, rows: int = 6000) -> Table:
    """k nested absolute values: |x2 + |x1||, |x3 + |x2 + |x1|||, ..., each less its mean and divided by its deviation.

    Two rectified linear units compute an absolute value, and one more per feature carries those that come later, so k
    layers of width 4 are enough for three features. Every step folds all folds of the steps before it: a single
    layer has straight creases only, and with four units at most four.

    Args:
        level: The number of nested values.
        seed: The seed of the rows and the noise.
        rows: The number of rows.
    """
    random = np.random.default_rng(seed)
    x = random.uniform(-1, 1, (rows, level))
    value = np.zeros(rows)
    for feature in x.T:
        value = np.abs(1.5 * feature + value)
        value = (value - value.mean()) / value.std()
    return Table(x, value + 0.2 * random.normal(size=rows), value)


def nested_conditions(level: int, seed: int, rows: int = 6000) -> Table:
    """k nested conditions on signs: s1 (1 + s2 (1 + s3 (1 + ...))), which is s1 + s1 s2 + s1 s2 s3 + ...

    From the inside out, every step multiplies what there is by a sign, which a layer of four rectified linear units
    computes. A single layer has no products: it needs units for every term, of which there are more the more signs a
    term has. Short terms are learned first, which makes the long ones learnable.

    Args:
        level: The number of signs.
        seed: The seed of the rows and the noise.
        rows: The number of rows.
    """
    random = np.random.default_rng(seed)
    x = random.choice([-1.0, 1.0], (rows, level))
    value = np.zeros(rows)
    for sign in x.T[::-1]:
        value = sign * (1 + value)
    truth = value / value.std()
    return Table(x, truth + 0.2 * random.normal(size=rows), truth)


def parity(seed: int, rows: int = 6000) -> Table:
    """Whether an odd number of 15 of 30 signs are positive.

    One hidden layer can compute it, but no smaller set of the signs says anything about the class, so gradient descent
    has nothing to follow, whatever the depth.
    """
    random = np.random.default_rng(seed)
    x = random.choice([-1.0, 1.0], (rows, 30))
    truth = _two_classes(np.where((x[:, :15] > 0).sum(1) % 2 == 1, 1 - WRONG, WRONG))
    return Table(x, _draw_classes(truth, random), truth)


def coin_flips(seed: int, rows: int = 2000) -> Table:
    """Classes that have nothing to do with the features: a blind guess is the best prediction."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, 10))
    truth = np.full((rows, 2), 0.5)
    return Table(x, _draw_classes(truth, random), truth)


def _two_classes(probability: Array) -> Array:
    """The probabilities of both classes, given that of the second."""
    return np.stack([1 - probability, probability], 1)


def _draw_classes(probabilities: Array, random: np.random.Generator) -> Array:
    """A class for every row."""
    drawn = random.random((len(probabilities), 1)) > probabilities.cumsum(1)
    return np.asarray(np.minimum(drawn.sum(1), probabilities.shape[1] - 1), float)


def _levels(
    family: Callable[[int, int], Table], name: str, levels: tuple[int, ...], task: Task, width: int | None = None
) -> list[KnownProblem]:
    def at(level: int) -> Callable[[int], Table]:
        return lambda seed: family(level, seed)

    return [KnownProblem(name, level, task, "grows", at(level), width) for level in levels]


PROBLEMS = {
    "linear-numbers": KnownProblem("linear", 0, "regression", "linear", linear_numbers),
    "linear-odds": KnownProblem("linear", 0, "classification", "linear", linear_odds),
    "linear-classes": KnownProblem("linear", 0, "classification", "linear", linear_classes),
    **{
        f"{problem.family.replace(' ', '-')}-{problem.level}": problem
        for problem in (
            *_levels(nested_distances, "nested distances", (1, 2, 3), "regression", width=4),
            *_levels(nested_conditions, "nested conditions", (2, 5, 7), "regression", width=6),
            *_levels(folded_paper, "folded paper", (1, 2, 3), "classification"),
        )
    },
    "parity": KnownProblem("unlearnable", 0, "classification", "unlearnable", parity),
    "coin-flips": KnownProblem("unlearnable", 0, "classification", "unlearnable", coin_flips),
}
