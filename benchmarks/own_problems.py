"""Your own problem with default settings, beside scikit-learn: `python benchmarks/own_problems.py`.

Trains `verydeep` with no setting but the target, and a linear model (logistic or ridge regression), a multi-layer
perceptron and histogram gradient boosting of scikit-learn with their defaults, on the tables that come with
scikit-learn and on made ones whose truth is known. Seeds 0 to 19 draw the made tables, a fifth of the rows as test data
and the initial weights. All methods see the same standardised features. `verydeep` holds out 15 % of the training rows
for early stopping; the others train on these rows as well.

A second part trains a table with one positive row in a hundred with and without `class_weight = "balanced"`. Results
are written to results/benchmarks/own-problems.json, and a table of them to own-problems.md in the same folder. The
default settings were chosen on other splits, of the seeds 100 to 114, and on other made tables. The seeds 0 to 4 had
been seen for three versions of them before the last was chosen; the seeds 5 to 19 are new.
"""

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import pandas as pd
import torch
from _result import write_result
from sklearn.datasets import (  # type: ignore[import-untyped]
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
    make_friedman1,
    make_moons,
    make_multilabel_classification,
)
from sklearn.ensemble import (  # type: ignore[import-untyped]
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge  # type: ignore[import-untyped]
from sklearn.metrics import balanced_accuracy_score, r2_score  # type: ignore[import-untyped]
from sklearn.multioutput import MultiOutputClassifier  # type: ignore[import-untyped]
from sklearn.neural_network import MLPClassifier, MLPRegressor  # type: ignore[import-untyped]
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from verydeep.cpu import cpu_settings
from verydeep.data import Dataset, load_dataset
from verydeep.files import write_atomic
from verydeep.report import render_markdown
from verydeep.training import TrainConfig, train

RESULT = Path(__file__).parents[1] / "results" / "benchmarks" / "own-problems.json"
SEEDS = tuple(range(20))
QUANTILE = 2.093  # of Student's distribution with 19 degrees of freedom: 95 % intervals of a mean of twenty
Arrays = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Problem:
    """A table, and what is predicted.

    Attributes:
        make: The features and targets for a seed; real tables are the same for all.
        task: What is predicted.
        best: The score of someone who knows the truth, for the features and targets of a seed; None if nobody does.
    """

    make: Callable[[int], Arrays]
    task: str = "classification"
    best: Callable[[np.ndarray, np.ndarray], float] | None = None

    def load(self, seed: int) -> Dataset:
        x, y = self.make(seed)
        table = pd.DataFrame(x, columns=[f"feature {number}" for number in range(x.shape[1])])
        targets = [f"target {number}" for number in range(1 if y.ndim == 1 else y.shape[1])]
        table[targets] = y.reshape(len(y), -1)
        return load_dataset(table, target=targets, task=self.task, seed=seed, validation="auto")


def linear_classes(seed: int) -> Arrays:
    """The odds of the class depend linearly on 5 of 20 features."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(500, 20))
    return x, (random.random(500) < 1 / (1 + np.exp(-2 * x[:, :5].sum(1)))).astype(int)


def parity(seed: int) -> Arrays:
    """The class is whether an odd number of the first three of six features is positive."""
    x = np.random.default_rng(seed).normal(size=(2000, 6))
    return x, (x[:, :3] > 0).sum(1) % 2


def friedman_truth(x: np.ndarray) -> np.ndarray:
    truth = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    return np.asarray(truth)


PROBLEMS = {
    "iris": Problem(lambda _: load_iris(return_X_y=True)),
    "wine": Problem(lambda _: load_wine(return_X_y=True)),
    "breast cancer": Problem(lambda _: load_breast_cancer(return_X_y=True)),
    "digits": Problem(lambda _: load_digits(return_X_y=True)),
    "diabetes": Problem(lambda _: load_diabetes(return_X_y=True), "regression"),
    "linear odds": Problem(linear_classes, best=lambda x, y: float(((x[:, :5].sum(1) > 0) == y).mean())),
    "two moons": Problem(lambda seed: make_moons(400, noise=0.25, random_state=seed)),
    "parity of three": Problem(parity, best=lambda x, y: 1.0),
    "Friedman 1": Problem(
        lambda seed: make_friedman1(1000, noise=1.0, random_state=seed),
        "regression",
        lambda x, y: float(r2_score(y, friedman_truth(x))),
    ),
    "five labels": Problem(
        lambda seed: make_multilabel_classification(1000, random_state=seed),
        "multilabel",
    ),
}


def default_run(data: Dataset, seed: int, class_weight: tuple[str, ...] = ()) -> dict[str, Any]:
    """Train with default settings and predict the test rows."""
    with tempfile.TemporaryDirectory() as folder:
        config = TrainConfig(seed=seed, threads=1, class_weight=class_weight)
        run = train(config, Path(folder) / "run", dataset=data, progress=False)
        measured, summary = run.measured, run.summary
        assert measured is not None
        assert summary is not None
        with torch.no_grad():
            answers = run.model.eval()(data.test.x)
    score = measured.get("test_r2" if data.task.kind == "regression" else "test_accuracy")
    return {"score": score, "epochs": summary.epochs, "answers": answers}


def ours(data: Dataset, seed: int) -> float:
    return float(default_run(data, seed)["score"])


def sklearn_method(classifier: Any, regressor: Any) -> Callable[[Dataset, int], float]:  # noqa: ANN401 - untyped
    def score(data: Dataset, seed: int) -> float:
        splits = [data.train] if data.valid is None else [data.train, data.valid]
        x, y = (torch.cat([getattr(split, name) for split in splits]).numpy() for name in ("x", "y"))
        seeded = {} if classifier is LogisticRegression else {"random_state": seed}
        if data.task.kind == "regression":
            model = (regressor() if regressor is Ridge else regressor(**seeded)).fit(x, y.ravel())
            return float(r2_score(data.test.y.numpy(), model.predict(data.test.x.numpy())))
        model = classifier(max_iter=1000) if classifier is LogisticRegression else classifier(**seeded)
        if data.task.kind == "multilabel" and classifier is not MLPClassifier:
            model = MultiOutputClassifier(model)
        return float((model.fit(x, y).predict(data.test.x.numpy()) == data.test.y.numpy()).mean())

    return score


METHODS: dict[str, Callable[[Dataset, int], float]] = {
    "verydeep": ours,
    "linear": sklearn_method(LogisticRegression, Ridge),
    "perceptron": sklearn_method(MLPClassifier, MLPRegressor),
    "boosting": sklearn_method(HistGradientBoostingClassifier, HistGradientBoostingRegressor),
}


def measure(name: str) -> dict[str, Any]:
    """The scores of every method on one problem, and the CPU time of its trainings."""
    problem = PROBLEMS[name]
    scores: dict[str, list[float]] = {method: [] for method in METHODS}
    seconds: dict[str, list[float]] = {method: [] for method in METHODS}
    best: list[float] = []
    for seed in SEEDS:
        data = problem.load(seed)
        for method, score in METHODS.items():
            start = time.process_time()
            scores[method].append(round(score(data, seed), 5))
            seconds[method].append(round(time.process_time() - start, 3))
        if problem.best is not None:
            best.append(round(problem.best(*problem.make(seed)), 5))
        print(name, seed, {method: values[-1] for method, values in scores.items()}, flush=True)
    x, _ = problem.make(0)
    shape = {"task": problem.task, "rows": len(x), "features": x.shape[1]}
    return shape | {"scores": scores, "cpu_seconds": seconds, "best_possible": best}


def rare_class(seed: int) -> Arrays:
    """Two classes that overlap, 99 to 1."""
    x, y = make_classification(
        10_000, 10, n_informative=4, n_redundant=0, weights=[0.99], flip_y=0, class_sep=1.0, random_state=seed
    )
    return x, y


def measure_balancing() -> dict[str, Any]:
    """Balanced accuracy on the test rows of a table with a rare class, with and without balancing."""
    found: dict[str, list[float]] = {"none": [], "balanced": []}
    for seed in SEEDS:
        data = Problem(rare_class).load(seed)
        for weight, values in found.items():
            answers = default_run(data, seed, () if weight == "none" else (weight,))["answers"].argmax(1)
            values.append(round(float(balanced_accuracy_score(data.test.y, answers)), 5))
        print("one in a hundred", seed, {weight: values[-1] for weight, values in found.items()}, flush=True)
    return {"rows": 10_000, "positive": 100, "balanced_accuracy": found}


def interval(values: list[float], percent: bool) -> str:
    """The mean and half the width of its 95 % interval."""
    factor, digits = (100, 1) if percent else (1, 3)
    half = QUANTILE * stdev(values) / len(values) ** 0.5
    return f"{factor * mean(values):.{digits}f} ± {factor * half:.{digits}f}"


def own_problems_page(result: dict[str, Any]) -> str:
    """A table of the results, in Markdown."""
    rows = []
    for name, found in result["problems"].items():
        percent = found["task"] != "regression"
        best = found["best_possible"]
        highest = max(mean(values) for values in found["scores"].values())
        cells = [
            f"**{text}**" if mean(values) == highest else text
            for values in found["scores"].values()
            for text in [interval(values, percent)]
        ]
        limit = "" if not best else f"{100 * mean(best):.1f}" if percent else f"{mean(best):.3f}"
        measure = "accuracy, %" if percent else "R²"
        rows.append((name, f"{found['rows']:,} × {found['features']}", measure, cells, limit))
    seconds = [
        f"{mean(mean(found['cpu_seconds'][method]) for found in result['problems'].values()):.2f} s"
        for method in METHODS
    ]
    rare = {weight: interval(values, True) for weight, values in result["rare"]["balanced_accuracy"].items()}
    return render_markdown("own_problems.md", Path(__file__).parent, rows=rows, seconds=seconds, rare=rare)


@cpu_settings(threads=1)
@threadpool_limits.wrap(limits=1)  # type: ignore[untyped-decorator]  # scikit-learn's threads
def measure_all(names: list[str]) -> None:
    warnings.simplefilter("ignore")  # the perceptron does not converge within its default number of epochs
    earlier = json.loads(RESULT.read_text()) if RESULT.exists() else {"problems": {}}
    problems = earlier["problems"] | {name: measure(name) for name in names}
    settings = {
        "what": "test scores of default settings: accuracy, R2 for numbers, the share of labels that are right",
        "seeds": SEEDS,
        "threads": 1,
        "scikit_learn": version("scikit-learn"),
    }
    rare = measure_balancing()
    ordered = {name: problems[name] for name in PROBLEMS if name in problems}
    write_result(RESULT, settings | {"problems": ordered, "rare": rare})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", help=f"problems to measure: {', '.join(PROBLEMS)}; by default, all")
    parser.add_argument("--page", action="store_true", help="only write the table of results again")
    options = parser.parse_args()
    if not options.page:
        measure_all(options.problems or list(PROBLEMS))
    write_atomic(RESULT.with_suffix(".md"), own_problems_page(json.loads(RESULT.read_text())))


if __name__ == "__main__":
    main()
