"""The plan of a folder: made once, after the first batches were timed, and then kept."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from verydeep.config import dotted, to_dict
from verydeep.data import KNOWN_NAMES
from verydeep.depth._cost import Cost, count_epochs, time_epochs
from verydeep.depth._plan import DepthPlan, make_plan, read_plan, smallest_cost
from verydeep.depth._problem import Problem
from verydeep.depth._progress import DepthProgress
from verydeep.errors import UserError
from verydeep.files import read_json, write_atomic

ANALYSIS = 0.12  # the share of the time for lesions, other models and fine-tuning
_STARTING = 8.0  # seconds until workers train
_FORMAT = 1
_CONTENT = "fingerprint"
_ASKED = ("most", "minutes", "total_epochs", "seed")


@dataclass(frozen=True)
class Asked:
    """What the user asked for.

    Attributes:
        most: The depth of the deepest networks.
        minutes: How long it may take; None if `total_epochs` is given.
        total_epochs: The epochs of all trainings together.
        seed: The seed.
        jobs: The number of workers on this machine.
        extends: Take longer than `minutes` if three seeds at three depths need it.
    """

    most: int
    minutes: float | None
    total_epochs: int | None
    seed: int
    jobs: int
    extends: bool = False


@dataclass(frozen=True)
class Planned:
    """A plan, and what it may cost.

    Attributes:
        plan: The plan.
        cost: What an epoch of each network costs.
        budget: What all trainings together may cost.
    """

    plan: DepthPlan
    cost: Cost
    budget: float


def stored_plan(folder: Path, problem: Problem, asked: Asked, progress: DepthProgress) -> Planned:
    """Read the plan of a folder, or make one.

    Args:
        folder: The folder.
        problem: The data and the family of networks.
        asked: What the user asked for.
        progress: What is shown.
    """
    file = folder / "plan.json"
    started = (folder / "study.json").exists()  # without it, nothing was trained by the plan
    known = check_plan(folder, problem, asked) if started and file.exists() else None
    if asked.total_epochs is not None:
        cost = count_epochs()
    else:
        progress.phase("timing the first batches of shallow and deep networks")
        cost = time_epochs(problem, asked.most, problem.defaults.batch_size)
    if known is not None:
        return Planned(known, cost, _budget(replace(asked, minutes=known.minutes)))
    if started:
        raise UserError(f"{folder} holds another study; choose another folder")
    least = smallest_cost(problem, cost, asked.most)
    if asked.extends and asked.minutes is not None:
        asked = replace(asked, minutes=max(asked.minutes, _least_minutes(asked, least)))
    budget = _budget(asked)
    plan = make_plan(problem, cost, budget, asked.most)
    if plan is None:
        raise _too_small(asked, least)
    plan = replace(plan, minutes=asked.minutes, total_epochs=asked.total_epochs, seed=asked.seed, jobs=asked.jobs)
    store_plan(folder, problem, plan)
    return Planned(plan, cost, budget)


def store_plan(folder: Path, problem: Problem, plan: DepthPlan) -> None:
    """Write the plan of a folder.

    Args:
        folder: The folder.
        problem: The data and the family of networks.
        plan: The plan.
    """
    values = {"format": _FORMAT, "problem": _describe(problem), "plan": to_dict(plan)}
    write_atomic(folder / "plan.json", json.dumps(values, indent=1) + "\n")


def _budget(asked: Asked) -> float:
    """What all trainings together may cost."""
    if asked.total_epochs is not None:
        return float(asked.total_epochs)
    assert asked.minutes is not None
    return max(1.0, (1 - ANALYSIS) * 60 * asked.minutes - _STARTING) * max(1, asked.jobs)


def _least_minutes(asked: Asked, needed: float) -> float:
    """The time in which trainings of a cost end, rounded up."""
    return math.ceil(10 * (needed / max(1, asked.jobs) + _STARTING) / (1 - ANALYSIS) / 60) / 10


def _too_small(asked: Asked, needed: float) -> UserError:
    """The error of a budget that is too small, with how much is needed."""
    if asked.total_epochs is not None:
        given, least = f"total_epochs = {asked.total_epochs}", f"give at least {int(needed) + 1:,}"
    else:
        given = f"{asked.minutes:g} minutes"
        least = f"this machine needs at least {_least_minutes(asked, needed):g}"
    return UserError(f"{given} is too little for three seeds at three depths; {least}")


def check_plan(folder: Path, problem: Problem, asked: Asked) -> DepthPlan:
    """Read the plan of a folder; an error if it belongs to something else than what is asked for."""
    file = folder / "plan.json"
    values = read_json(file)
    if values.get("format") != _FORMAT or not isinstance(values.get("problem"), dict):
        raise UserError(f"{file} is not a plan of this version; choose another folder")
    plan = read_plan(values.get("plan"), str(file))
    before = values["problem"] | {name: getattr(plan, name) for name in _ASKED}
    now = _describe(problem) | {name: getattr(asked, name) for name in _ASKED}
    if asked.extends and asked.minutes is not None and plan.minutes is not None:
        now["minutes"] = max(asked.minutes, plan.minutes)  # which was extended
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name) and name != _CONTENT:
            word, given = name.replace("_", " "), f"{_written(before.get(name))}, not {_written(now.get(name))}"
            raise UserError(f"{file.parent} was started with {word} {given}; give the same, or choose another folder")
    if before.get(_CONTENT, now[_CONTENT]) != now[_CONTENT]:  # plans before 0.7.0 do not say
        raise UserError(f"{problem.data.source} has changed since {file.parent} was started; choose another folder")
    return plan


def _written(value: object) -> str:
    return "none" if value in (None, []) else str(value)


def _describe(problem: Problem) -> dict[str, Any]:
    """What a plan belongs to besides the budget: plain values by name."""
    source = problem.data.source
    given = to_dict(problem.data) | {"source": source if source in KNOWN_NAMES else str(Path(source).resolve())}
    settings = {
        "width": problem.width,
        "loss": problem.settings.loss,
        "class_weight": list(problem.settings.class_weight),
    }
    described = dotted({"data": given, "network": problem.network, **settings, _CONTENT: problem.fingerprint})
    return dict(json.loads(json.dumps(described)))
