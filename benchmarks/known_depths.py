"""`how_deep` on problems whose need for depth is known by construction: `python benchmarks/known_depths.py`.

    python benchmarks/known_depths.py                              all problems, three seeds
    python benchmarks/known_depths.py nested-distances-3 --seeds 0 --total-epochs 4000
    python benchmarks/known_depths.py --page                       only check and write the page again

One problem with one seed took 5 minutes on two busy cores (a load of 10), by which all 14 with three seeds would take
3.5 hours; idle cores need less. The file of the answers has the seconds of each.

The problems are those of `_known_problems.py`. The table of a problem is the same every time; the seeds are those of
`how_deep`, which draw the parts that are held out, the settings and the initial weights. The budget is a number of
epochs, so that other work on the machine changes the time and not the answers. What is checked:

* linear problems: the answer is 0;
* families with levels: the median answer over the seeds rises from each level to the next;
* problems that no network learns: the answer is None;
* no network that was trained in the same run and is shallower than the answer is within one standard error of the best;
* repeats: on at least eight of ten problems, the answer with each seed is in the intervals of all other seeds.

Answers are written to results/benchmarks/known-depths.json as they come, and a table of them to known-depths.md in the
same folder. A command that was interrupted continues when it is repeated. The exit code is 1 if a check fails.
"""

import argparse
import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise, permutations
from pathlib import Path
from statistics import median
from typing import Any

from _known_problems import PROBLEMS
from _result import write_result

from verydeep.files import write_atomic
from verydeep.report import render_markdown

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "results" / "benchmarks" / "known-depths.json"
AGREEING = 0.8  # the share of problems on which repeats must agree
Answers = dict[str, dict[str, dict[str, Any]]]  # by problem, then by seed


@dataclass(frozen=True)
class Check:
    """A claim about the answers.

    Attributes:
        claim: What must hold.
        found: What was found.
        holds: Whether it holds.
    """

    claim: str
    found: str
    holds: bool


def check_answers(answers: Answers) -> list[Check]:
    """Check all claims that the answers so far say something about.

    Args:
        answers: What `how_deep` answered for some of the problems.
    """
    checks = []
    for name in (name for name in PROBLEMS if name in answers):
        wanted = {"linear": 0, "unlearnable": None}
        if (expected := PROBLEMS[name].expected) in wanted:
            depths = _depths(answers[name])
            claim = f"{name}: {'0 layers are enough' if expected == 'linear' else 'no network learns it'}"
            checks.append(Check(claim, _listed(depths), all(depth == wanted[expected] for depth in depths)))
    families = dict.fromkeys(problem.family for problem in PROBLEMS.values() if problem.expected == "grows")
    checks += [check for family in families for check in _check_family(family, answers)]
    if answers:
        checks.append(_check_shallower(answers))
    repeated = {name: list(by_seed.values()) for name, by_seed in answers.items() if len(by_seed) > 1}
    if repeated:
        agreeing = [name for name, each in repeated.items() if all(_covers(*pair) for pair in permutations(each, 2))]
        found = f"{len(agreeing)} of {len(repeated)}"
        checks.append(
            Check(
                f"repeats are in each other's intervals on {AGREEING:.0%} of the problems",
                found,
                len(agreeing) >= AGREEING * len(repeated),
            )
        )
    return checks


def _check_family(family: str, answers: Answers) -> list[Check]:
    """That the median answer rises from one level to the next."""
    names = [name for name, problem in PROBLEMS.items() if problem.family == family and name in answers]
    if len(names) < 2:
        return []
    depths = [[depth for depth in _depths(answers[name]) if depth is not None] for name in names]
    medians = [median(each) if each else None for each in depths]
    rises = all(low is not None and high is not None and low < high for low, high in pairwise(medians))
    levels = ", ".join(str(PROBLEMS[name].level) for name in names)
    found = "; ".join(_listed(_depths(answers[name])) for name in names)
    return [Check(f"{family}: the answer rises over the levels {levels}", found, rises)]


def _check_shallower(answers: Answers) -> Check:
    """That no answer is deeper than a network that is enough."""
    deeper = [
        f"{name}, seed {seed}"
        for name, by_seed in answers.items()
        for seed, answer in by_seed.items()
        if answer["depth"] is not None
        and any(
            point["depth"] < answer["depth"] and point["excess"] <= point["excess_error"] for point in answer["points"]
        )
    ]
    return Check(
        "no shallower network is within one standard error of the best", ", ".join(deeper) or "none", not deeper
    )


def _covers(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Whether the interval of an answer covers another answer; two answers that nothing was learned agree as well."""
    if first["depth"] is None or second["depth"] is None:
        return first["depth"] is second["depth"]
    low, high = first["interval"] or (first["depth"], first["depth"])
    return bool(low <= second["depth"] <= high)


def _depths(by_seed: dict[str, dict[str, Any]]) -> list[int | None]:
    return [answer["depth"] for answer in by_seed.values()]


def _listed(depths: Iterable[int | None]) -> str:
    return ", ".join("none" if depth is None else str(depth) for depth in depths)


def ask(name: str, seed: int, folder: Path, budget: dict[str, Any], jobs: int | None = None) -> dict[str, Any]:
    """What `how_deep` answers for a problem.

    Args:
        name: The name of the problem.
        seed: The seed of `how_deep`.
        folder: Where the table and the trainings of all problems go.
        budget: The options `most`, and `minutes` or `total_epochs`.
        jobs: The number of workers; by default, one per core.
    """
    from verydeep.depth import how_deep

    place = folder / "-".join([name, *(f"{key}-{value}" for key, value in budget.items()), f"seed-{seed}"])
    place.mkdir(parents=True, exist_ok=True)
    table, problem = place / f"{name}.csv", PROBLEMS[name]
    if not table.exists():
        problem.make(0).write_csv(table)
    answer = how_deep(
        table, "target", task=problem.task, seed=seed, folder=place / "depth", jobs=jobs, width=problem.width, **budget
    )
    points = [
        {key: getattr(point, key) for key in ("kind", "depth", "loss", "excess", "excess_error", "settings")}
        for point in answer.points
    ]
    return {
        "depth": answer.depth,
        "interval": answer.interval,
        "kind": answer.kind,
        "sentence": answer.sentence,
        "points": points,
        "budget": budget,
        "seconds": round(answer.seconds, 1),
    }


def page(answers: Answers) -> str:
    """The answers and checks as a Markdown page.

    Args:
        answers: What `how_deep` answered.
    """
    rows = []
    for name in (name for name in PROBLEMS if name in answers):
        problem, by_seed = PROBLEMS[name], answers[name]
        table = problem.make(0)
        intervals = (
            "none" if each["interval"] is None else "{} to {}".format(*each["interval"]) for each in by_seed.values()
        )
        size = f"{len(table.x):,} × {table.x.shape[1]}"
        lowest = min(point["loss"] for each in by_seed.values() for point in each["points"])
        width = "searched" if problem.width is None else str(problem.width)
        budgets = dict.fromkeys(_budget(each["budget"]) for each in by_seed.values())
        cells = (f"{table.lowest_loss:.3f}", f"{lowest:.3f}", _listed(_depths(by_seed)), ", ".join(intervals))
        rows.append((name, size, width, *cells, ", ".join(budgets)))
    return render_markdown("known_depths.md", Path(__file__).parent, rows=rows, checks=check_answers(answers))


def _budget(budget: dict[str, Any]) -> str:
    if "minutes" in budget:
        return f"{budget['minutes']:g} minutes"
    return f"{budget['total_epochs']:,} epochs"


def read_answers(file: Path) -> Answers:
    """The answers so far, without those for problems that there are no more.

    Args:
        file: The file; nothing is known if it does not exist.
    """
    answers: Answers = json.loads(file.read_text())["answers"] if file.exists() else {}
    return {name: answers[name] for name in PROBLEMS if name in answers}


def measure(tasks: list[tuple[str, int]], folder: Path, budget: dict[str, Any], jobs: int | None, out: Path) -> None:
    """Ask for every problem and seed that has no answer with this budget yet, and write each answer at once."""
    answers = read_answers(out)
    for number, (name, seed) in enumerate(tasks, start=1):
        known = answers.get(name, {}).get(str(seed))
        if known is None or known["budget"] != budget:
            print(f"{number} of {len(tasks)}: {name}, seed {seed}", flush=True)
            by_seed = answers.get(name, {}) | {str(seed): ask(name, seed, folder, budget, jobs)}
            answers[name] = dict(sorted(by_seed.items(), key=lambda item: int(item[0])))
            ordered = {each: answers[each] for each in PROBLEMS if each in answers}
            settings = {"what": "how_deep on problems whose need for depth is known", "table_seed": 0}
            write_result(out, settings | {"answers": ordered})
        print(f"  {answers[name][str(seed)]['sentence']}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", help=f"by default, all: {', '.join(PROBLEMS)}")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--total-epochs", type=int, default=2400, help="for each problem and seed")
    parser.add_argument("--minutes", type=float, help="instead of --total-epochs")
    parser.add_argument("--most", type=int, default=16, help="depth of the deepest networks")
    parser.add_argument("--jobs", type=int, help="number of workers; by default, one per core")
    parser.add_argument("--folder", type=Path, default=ROOT / "runs" / "known-depths", help="for tables and trainings")
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--page", action="store_true", help="only check the answers and write the page again")
    options = parser.parse_args()
    if unknown := set(options.problems) - set(PROBLEMS):
        parser.error(f"unknown problems: {', '.join(sorted(unknown))}; known are {', '.join(PROBLEMS)}")
    if not options.page:
        limit = {"total_epochs": options.total_epochs} if options.minutes is None else {"minutes": options.minutes}
        tasks = [(name, seed) for name in options.problems or PROBLEMS for seed in options.seeds]
        measure(tasks, options.folder, {"most": options.most} | limit, options.jobs, options.out)
    answers = read_answers(options.out)
    write_atomic(options.out.with_suffix(".md"), page(answers))
    checks = check_answers(answers)
    for check in checks:
        print(f"{'yes' if check.holds else 'NO '}  {check.claim}: {check.found}")
    raise SystemExit(0 if all(check.holds for check in checks) else 1)


if __name__ == "__main__":
    main()
