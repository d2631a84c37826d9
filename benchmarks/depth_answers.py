"""How deep a network must be for real data: `python benchmarks/depth_answers.py`.

    python benchmarks/depth_answers.py                       all problems, ten minutes each
    python benchmarks/depth_answers.py wine mnist --seed 1   some of them, with another seed
    python benchmarks/depth_answers.py cifar10 cifar10-conv --minutes 180
    python benchmarks/depth_answers.py --page                only write the table again

Runs `verydeep.depth.how_deep` with no option but the target. Each answer is written to
results/depth/NAME-seed-N.json with the machine and the load, its page to NAME-seed-N.html, and a table of all to
answers.md in the same folder. A command that was interrupted continues when repeated. The noisy table is made: the
class depends on products of its first four features, a fifth of the labels are wrong, and six features mean nothing.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from _result import write_result
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine  # type: ignore[import-untyped]

from verydeep.depth import DepthAnswer, how_deep
from verydeep.files import write_atomic
from verydeep.report import render_markdown
from verydeep.words import named_score

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "depth"


@dataclass(frozen=True)
class Problem:
    """A problem.

    Attributes:
        make: Writes the table into a folder; None for a known dataset.
        source: The name of the known dataset.
        network: `mlp` or `conv`.
    """

    make: Callable[[], tuple[np.ndarray, list[str]]] | None = None
    source: str = ""
    network: str | None = None


def from_sklearn(load: Callable[[], Any]) -> Callable[[], tuple[np.ndarray, list[str]]]:
    def make() -> tuple[np.ndarray, list[str]]:
        found = load()
        names = [name.replace(" ", "_") for name in found.feature_names]
        return np.column_stack([found.data, found.target]), [*names, "target"]

    return make


def noisy() -> tuple[np.ndarray, list[str]]:
    random = np.random.default_rng(0)
    x = random.normal(size=(3000, 10))
    right = (x[:, 0] * x[:, 1] + x[:, 2] * x[:, 3] > 0).astype(float)
    wrong = random.random(len(x)) < 0.2
    names = [f"x{number}" for number in range(10)]
    return np.column_stack([x, np.where(wrong, 1 - right, right)]), [*names, "target"]


PROBLEMS = {
    "mnist": Problem(source="mnist"),
    "fashion-mnist": Problem(source="fashion-mnist"),
    "digits": Problem(source="digits"),
    "wine": Problem(from_sklearn(load_wine)),
    "breast-cancer": Problem(from_sklearn(load_breast_cancer)),
    "diabetes": Problem(from_sklearn(load_diabetes)),
    "noisy": Problem(noisy),
    "cifar10": Problem(source="cifar10", network="mlp"),
    "cifar10-conv": Problem(source="cifar10", network="conv"),
}
USUAL = tuple(name for name in PROBLEMS if not name.startswith("cifar10"))  # those need longer


def ask(name: str, seed: int, minutes: float, folder: Path) -> DepthAnswer:
    """What `how_deep` answers for a problem."""
    problem, place = PROBLEMS[name], folder / f"{name}-{minutes:g}-minutes-seed-{seed}"
    source = problem.source
    if problem.make is not None:
        table, columns = problem.make()
        source = str(place / f"{name}.csv")
        place.mkdir(parents=True, exist_ok=True)
        np.savetxt(source, table, "%.8g", ",", header=",".join(columns), comments="")
    target = None if problem.make is None else "target"
    network: Any = problem.network
    return how_deep(source, target, folder=place / "depth", minutes=minutes, seed=seed, network=network)


def page() -> str:
    """The answers so far as a Markdown page."""
    rows = []
    for name in PROBLEMS:
        for file in sorted(RESULTS.glob(f"{name}-seed-*.json")):
            found = json.loads(file.read_text())
            rows.append(_row(name, found, DepthAnswer.from_dict(found["answer"], str(file))))
    return render_markdown("depth_answers.md", Path(__file__).parent, rows=rows)


def _row(name: str, found: dict[str, Any], answer: DepthAnswer) -> tuple[str, ...]:
    interval = "none" if answer.interval is None else "{} to {}".format(*answer.interval)
    kind = f" ({answer.kind})" if answer.depth is not None and answer.depth > 1 else ""
    depth = "nothing learned" if answer.depth is None else f"{answer.depth}{kind}"
    network, used = answer.network, answer.used
    test = "" if network is None or network.test_score is None else named_score(answer.measure, network.test_score)
    others = (
        "" if other.score is None else f"{named_score(answer.measure, other.score)}{_some(other.rows, other.all_rows)}"
        for other in answer.others
    )
    lesions = "" if used is None else f"{used.used} of {used.depth}"
    time = f"{answer.seconds / 60:.1f} of {answer.plan.minutes:g} min"
    measured = time, f"{found['load_average']:.1f}", found["environment"]["verydeep"]
    return (name, str(found["seed"]), depth, interval, lesions, test, *others, *measured)


def _some(rows: int, every: int) -> str:
    return "" if rows == every else f" ({rows:,} of {every:,} rows)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(PROBLEMS)}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--runs", type=Path, default=Path("runs") / "depth-answers", help="where the trainings go")
    parser.add_argument("--page", action="store_true", help="only write the table again")
    options = parser.parse_args()
    if unknown := set(options.names) - set(PROBLEMS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(PROBLEMS)}")
    for name in [] if options.page else options.names or USUAL:
        print(f"{name}, seed {options.seed}", flush=True)
        answer = ask(name, options.seed, options.minutes, options.runs)
        print(f"  {answer.sentence}", flush=True)
        result = RESULTS / f"{name}-seed-{options.seed}.json"
        # The commands on the page are those of someone who asks in their own folder.
        answer = replace(answer, folder=f"runs/depth-{name}", source=PROBLEMS[name].source or f"{name}.csv")
        values = {"what": f"how_deep on {name}", "seed": options.seed, "answer": answer.to_dict()}
        write_result(result, values)
        answer.write_page(result.with_suffix(".html"))
        write_atomic(RESULTS / "answers.md", page())
    write_atomic(RESULTS / "answers.md", page())


if __name__ == "__main__":
    main()
