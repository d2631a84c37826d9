"""What one should know before relying on an answer about depth."""

from __future__ import annotations

from collections.abc import Mapping

from verydeep.depth._answer import DepthNetwork, OtherModel
from verydeep.depth._plan import DepthPlan
from verydeep.errors import list_names
from verydeep.words import plural

_LATE = 1.1  # times the minutes that were asked for
_EXTREME = 10.0  # standard deviations
_FEW_EPOCHS = 0.7  # of the epochs that suit the data, below which a note says so


def make_notes(
    depth: int | None,
    task: str,
    plan: DepthPlan,
    wanted_epochs: int,
    network: DepthNetwork | None,
    others: tuple[OtherModel, ...],
    unmeasured: Mapping[str, int],
    seconds: float = 0.0,
    interval: tuple[int, int] | None = None,
    farthest_target: float = 0.0,
) -> tuple[str, ...]:
    """The notes of an answer.

    Args:
        depth: The answer.
        task: What is predicted.
        plan: What was trained.
        wanted_epochs: The epochs that suit the data.
        network: The recommended network.
        others: Models of other kinds, the linear one first.
        unmeasured: Classes of which no sample was held out, and how many training samples they have.
        seconds: How long everything took.
        interval: The interval of the answer.
        farthest_target: How many standard deviations the most extreme number to predict is from the mean.
    """
    notes = [plan.revision] if plan.revision else []
    if plan.minutes is not None and seconds > _LATE * 60 * plan.minutes:
        notes.append(
            f"This took {seconds / 60:.1f} minutes instead of {plan.minutes:g}: the machine was slower than when the "
            f"plan was made."
        )
    if plan.epochs < _FEW_EPOCHS * wanted_epochs:
        notes.append(
            f"Every network was trained for at most {plural(plan.epochs, 'epoch')} to save time, although "
            f"{wanted_epochs} suit this data; with more time the answer may be another."
        )
    if depth is not None and depth == plan.most:
        notes.append(
            f"Nothing deeper than {plan.most} was tried: ask for more (--most {2 * plan.most}, or most={2 * plan.most})"
            " to see whether deeper networks are better."
        )
    if depth is not None and interval == (0, plan.most):
        notes.append(
            f"The interval holds every depth from 0 to {plan.most}: this data cannot tell them apart, so the simplest "
            f"model is a good choice."
        )
    linear = others[0] if others else None
    if depth and task == "classification" and linear is not None and network is not None:
        theirs, ours = linear.score, network.test_score
        if theirs is not None and ours is not None and theirs >= ours:
            notes.append(
                f"On test data, {linear.name} classifies as well as the recommended network. Depth is judged by the "
                f"loss, which also counts how sure a network is."
            )
    if farthest_target > _EXTREME:
        notes.append(
            f"The most extreme number to predict is {farthest_target:.0f} standard deviations from the mean. Single "
            f"values like this decide every loss and R²: correct them, predict a logarithm, or use the loss huber."
        )
    if unmeasured:
        names = list_names([f"{name} ({plural(rows, 'sample')})" for name, rows in unmeasured.items()])
        notes.append(f"No sample of the following was held out, so the answer says nothing about it: {names}.")
    return tuple(notes)
