"""What `how_deep` is going to train: which depths, how many settings, seeds and epochs, within a budget."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from verydeep.config import from_dict
from verydeep.words import plural

if TYPE_CHECKING:
    from verydeep.depth._cost import Cost
    from verydeep.depth._problem import Candidate, Problem

_TRAINING = 0.75  # the share of the budget for the first depths; the rest is for depths around the answer
_FEWEST_EPOCHS = 3
_SHARES = (0.85, 0.7, 0.6, 0.5, 0.4, 0.3, 0.25)  # of the planned epochs, if time runs short
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

    If the searches take longer than planned, what follows them is shortened once (`revise_plan`).

    Attributes:
        most: The depth of the deepest networks.
        depths: The depths that are trained first; more follow between the answer and the next smaller one.
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
        left_out: Depths that were left out once their settings had been searched, to keep the time.
        revision: What was changed to keep the time, in a sentence; empty if nothing was.

    Example:
        >>> from verydeep.depth import DepthPlan
        >>> DepthPlan(depths=(0, 1, 2, 4), trials=6).depths[-1]
        4
    """

    most: int = 50
    depths: tuple[int, ...] = ()
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
    left_out: tuple[int, ...] = ()
    revision: str = ""


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
        needed = plan_cost(cost, plan)
        if needed <= _TRAINING * budget:
            return _with_more_epochs(problem, cost, plan, _TRAINING * budget / needed)
    return None


def plan_cost(cost: Cost, plan: DepthPlan) -> float:
    """The expected cost of the depths that are trained first."""
    from verydeep.depth._problem import candidates_at

    return sum(candidate_cost(cost, plan, each) for depth in plan.depths for each in candidates_at(depth))


def candidate_cost(cost: Cost, plan: DepthPlan, candidate: Candidate) -> float:
    """The expected cost of a network: its search, and its seeds."""
    return search_cost(cost, plan, candidate) + _seeds_cost(cost, plan, candidate)


def search_cost(cost: Cost, plan: DepthPlan, candidate: Candidate) -> float:
    """The expected cost of finding settings for a network."""
    widths = _widths(plan, candidate)
    short = cost.of(candidate, first_stage(plan), widths, plan.trials - plan.kept)
    return short + cost.of(candidate, plan.search_epochs, widths, plan.kept + 1)  # and one with the default settings


def _seeds_cost(cost: Cost, plan: DepthPlan, candidate: Candidate) -> float:
    return cost.of(candidate, plan.epochs, _widths(plan, candidate), plan.finalists * plan.seeds)


def _widths(plan: DepthPlan, candidate: Candidate) -> tuple[int, ...]:
    return plan.widths if candidate.depth else plan.widths[:1]


def revise_plan(cost: Cost, plan: DepthPlan, slowness: float, seconds: float) -> DepthPlan:
    """Shorten what follows the searches if the machine turns out to be slower than it was when the plan was made.

    First fewer settings go on, then three seeds are enough, then epochs are cut to a fourth, and at last depths are
    left out. If even that is too long, the shortest plan is returned.

    Args:
        cost: What an epoch of each network costs, in seconds.
        plan: The plan.
        slowness: How many times as long as expected the searches took.
        seconds: The time that is left for training.
    """
    from verydeep.depth._problem import candidates_at

    def fits(shorter: DepthPlan) -> bool:
        depths = [depth for depth in plan.depths if depth not in shorter.left_out]
        core_seconds = sum(_seeds_cost(cost, shorter, each) for depth in depths for each in candidates_at(depth))
        return slowness * core_seconds / max(1, plan.jobs) <= seconds

    if fits(plan):
        return plan
    revised = plan
    for revised in _shorter(plan):
        if fits(revised):
            break
    return replace(revised, revision=_describe_revision(plan, revised))


def _shorter(plan: DepthPlan) -> Iterator[DepthPlan]:
    """Plans with less to do after the searches, the longest first."""
    fewer = replace(plan, finalists=1)
    yield fewer
    fewer = replace(fewer, seeds=min(plan.seeds, 3))
    yield fewer
    least = min(_FEWEST_EPOCHS, plan.epochs)
    for share in _SHARES:
        fewer = replace(fewer, epochs=max(least, round(share * plan.epochs)))
        yield fewer
    for grid in _grids(plan.most):
        left_out = tuple(depth for depth in plan.depths if depth not in grid)
        if left_out:
            fewer = replace(fewer, left_out=left_out)
            yield fewer


def _describe_revision(plan: DepthPlan, revised: DepthPlan) -> str:
    changes = []
    if revised.finalists < plan.finalists:
        changes.append(f"1 combination of settings instead of {plan.finalists} was trained with all seeds")
    if revised.seeds < plan.seeds:
        changes.append(f"{revised.seeds} seeds instead of {plan.seeds} were trained")
    if revised.epochs < plan.epochs:
        changes.append(f"trainings had at most {plural(revised.epochs, 'epoch')} instead of {plan.epochs}")
    if revised.left_out:
        changes.append(f"depth {', '.join(map(str, revised.left_out))} was left out")
    return f"Finding settings took longer than planned, so the rest was shortened: {'; '.join(changes)}."


def read_plan(values: object, where: str) -> DepthPlan:
    """Build a plan from plain values; versions before 0.7.0 also stored the kinds of network.

    Args:
        values: The values.
        where: What error messages call their source.
    """
    if isinstance(values, dict):
        values = {name: value for name, value in values.items() if name != "kinds"}
    return from_dict(DepthPlan, values, where)


def first_stage(plan: DepthPlan) -> int:
    """The epoch after which a search continues with the best trials only."""
    return max(1, plan.search_epochs // 3)


def smallest_cost(problem: Problem, cost: Cost, most: int) -> float:
    """The least budget for which there is a plan: three seeds at three depths."""
    return plan_cost(cost, _plan(problem, _LEVELS[-1], _grids(most)[-1], most)) / _TRAINING


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
    needed = plan_cost(cost, longer)
    if needed > factor * plan_cost(cost, plan):
        longer, needed = plan, plan_cost(cost, plan)
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
