"""What `how_deep` is going to train: which depths, how many settings, seeds and epochs, within a budget."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from verydeep.depth._cost import Cost
    from verydeep.depth._problem import Candidate, Problem

_TRAINING = 0.75  # the share of the budget for the first depths; the rest is for depths around the answer
_FEWEST_EPOCHS = 3
_LEAST_SHARE = 0.2  # of the epochs that the data needs, below which depths are left out instead


@dataclass(frozen=True)
class _Level:
    """How much effort every network gets."""

    trials: int
    kept: int
    finalists: int
    seeds: int
    share: float  # of the epochs that the data needs


_LEVELS = (
    _Level(24, 8, 3, 5, 1.0),
    _Level(18, 6, 3, 5, 1.0),
    _Level(12, 4, 2, 5, 1.0),
    _Level(9, 3, 2, 5, 1.0),
    _Level(9, 3, 1, 5, 1.0),
    _Level(9, 3, 1, 3, 1.0),
    _Level(6, 2, 1, 3, 0.7),
    _Level(6, 2, 1, 3, 0.5),
    _Level(4, 2, 1, 3, 0.3),
    _Level(4, 2, 1, 3, 0.2),
    _Level(3, 1, 1, 3, 0.1),
)


@dataclass(frozen=True)
class DepthPlan:
    """What is trained; fixed after the first epochs were timed, and stored.

    Attributes:
        most: The depth of the deepest networks.
        depths: The depths that are trained first; more follow between the answer and the next smaller one.
        kinds: The kinds of network, `highway` and `plain`.
        trials: How many settings are tried for each kind and depth.
        kept: How many of them are trained to the end of the short schedule of the search.
        search_epochs: The epochs of that schedule.
        finalists: How many settings of each kind and depth are trained with all seeds.
        seeds: How many seeds each of those is trained with.
        folds: Into how many parts the training data is divided; each seed holds out another part.
        epochs: The epochs of these trainings, at most; they stop early.
        batch_size: Samples per update.
        widths: The widths that are tried.
        minutes: The time that was asked for; None if the epochs were.
        total_epochs: The epochs of all trainings together that were asked for; None if the time was.
        refinements: How many depths may be added between the answer and the next smaller one.
        core_seconds: The predicted time of all trainings on one core; 0 if epochs were asked for.
        jobs: The number of workers.
        seed: The seed from which everything random follows.

    Example:
        >>> from verydeep.depth import DepthPlan
        >>> DepthPlan(depths=(0, 1, 2, 4), trials=6).depths[-1]
        4
    """

    most: int = 50
    depths: tuple[int, ...] = ()
    kinds: tuple[str, ...] = ("highway", "plain")
    trials: int = 0
    kept: int = 0
    search_epochs: int = 0
    finalists: int = 1
    seeds: int = 0
    folds: int = 0
    epochs: int = 0
    batch_size: int = 0
    widths: tuple[int, ...] = ()
    minutes: float | None = None
    total_epochs: int | None = None
    refinements: int = 0
    core_seconds: float = 0.0
    jobs: int = 1
    seed: int = 0


def make_plan(problem: Problem, cost: Cost, budget: float, most: int) -> DepthPlan | None:
    """The best plan within a budget; None if not even three seeds at three depths fit.

    Args:
        problem: The data and the family of networks.
        cost: What an epoch of each network costs.
        budget: The cost of everything that is trained, in the unit of `cost`.
        most: The depth of the deepest networks.
    """
    grids = _grids(most)
    enough = [(grid, level) for grid in grids for level in _LEVELS if level.share >= _LEAST_SHARE]
    little = [(grid, level) for grid in grids for level in _LEVELS if level.share < _LEAST_SHARE]
    for grid, level in enough + little:
        plan = _plan(problem, level, grid, most)
        needed = plan_cost(problem, cost, plan)
        if needed <= _TRAINING * budget:
            return _with_more_epochs(problem, cost, plan, _TRAINING * budget / needed)
    return None


def plan_cost(problem: Problem, cost: Cost, plan: DepthPlan) -> float:
    """The expected cost of the depths that are trained first."""
    from verydeep.depth._problem import candidates_at

    return sum(candidate_cost(problem, cost, plan, each) for depth in plan.depths for each in candidates_at(depth))


def candidate_cost(problem: Problem, cost: Cost, plan: DepthPlan, candidate: Candidate) -> float:
    """The expected cost of a network: its search, and its seeds."""
    widths = plan.widths if candidate.depth else plan.widths[:1]
    first = first_stage(plan)
    return (
        cost.of(candidate, first, widths, plan.trials - plan.kept)
        + cost.of(candidate, plan.search_epochs, widths, plan.kept + 1)  # and one with the default settings
        + cost.of(candidate, plan.epochs, widths, plan.finalists * plan.seeds)
    )


def first_stage(plan: DepthPlan) -> int:
    """The epoch after which a search continues with the best trials only."""
    return max(1, plan.search_epochs // 3)


def smallest_cost(problem: Problem, cost: Cost, most: int) -> float:
    """The least budget for which there is a plan: three seeds at three depths."""
    return plan_cost(problem, cost, _plan(problem, _LEVELS[-1], _grids(most)[-1], most)) / _TRAINING


def _plan(problem: Problem, level: _Level, depths: tuple[int, ...], most: int) -> DepthPlan:
    wanted = problem.defaults.epochs
    epochs = max(min(_FEWEST_EPOCHS, wanted), round(level.share * wanted))
    return DepthPlan(
        most=most,
        depths=depths,
        trials=level.trials,
        kept=level.kept,
        search_epochs=max(min(2, epochs), epochs // 2),
        finalists=level.finalists,
        seeds=level.seeds,
        folds=problem.data.folds or 0,
        epochs=epochs,
        batch_size=problem.defaults.batch_size,
        widths=problem.widths,
        refinements=3,
    )


def _with_more_epochs(problem: Problem, cost: Cost, plan: DepthPlan, factor: float) -> DepthPlan:
    """Use up the budget with longer trainings, up to the number of epochs that the data needs."""
    epochs = min(int(plan.epochs * factor), max(plan.epochs, problem.defaults.epochs))
    longer = replace(plan, epochs=epochs, search_epochs=max(plan.search_epochs, epochs // 2))
    needed = plan_cost(problem, cost, longer)
    if needed > factor * plan_cost(problem, cost, plan):
        longer, needed = plan, plan_cost(problem, cost, plan)
    return replace(longer, core_seconds=needed if cost.unit == "seconds" else 0.0)


def _grids(most: int) -> list[tuple[int, ...]]:
    """The depths that are trained first: 0, 1, 2, 4, ... and the largest; then with fewer and fewer of them."""
    powers = [2**exponent for exponent in range(1, 12) if 2**exponent < 0.8 * most]
    full = (0, *sorted({1, *powers, most}))
    grids = [full]
    for left_out in sorted(powers[1:], reverse=True) + [1] * (most > 1):
        smaller = tuple(depth for depth in grids[-1] if depth != left_out)
        if len(smaller) >= 3:
            grids.append(smaller)
    return grids
