"""Highway networks against simpler models on small tables: `python benchmarks/alternatives.py`.

Trains logistic regression, random forests, gradient boosting and fully connected networks on the classification sets
that come with scikit-learn. All methods see the same rows: five random splits into 64 % training, 16 % validation and
20 % test data, with standardised features. Each method has three settings of its most important option, and the one
with the highest validation accuracy (ties: the lowest validation loss) is evaluated on the test data. Results are
written to results/alternatives/alternatives.json, and a table of them to alternatives.md in the same folder.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch
from _result import write_result
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine  # type: ignore[import-untyped]
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier  # type: ignore[import-untyped]
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]
from sklearn.metrics import log_loss  # type: ignore[import-untyped]
from sklearn.model_selection import train_test_split  # type: ignore[import-untyped]
from sklearn.preprocessing import StandardScaler  # type: ignore[import-untyped]
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
from torch import Tensor, nn

from verydeep.cpu import cpu_settings
from verydeep.data import DataConfig, Dataset, Split
from verydeep.files import write_atomic
from verydeep.models import load_weights
from verydeep.report import render_markdown
from verydeep.training import ModelConfig, OptimConfig, ScheduleConfig, TrainConfig, train

RESULT = Path(__file__).parents[1] / "results" / "alternatives" / "alternatives.json"
TABLES = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}
SEEDS = (0, 1, 2, 3, 4)
RATES = (0.003, 0.02, 0.1)
WIDTH, EPOCHS, UPDATES_PER_EPOCH = 50, 40, 10

Probabilities = Callable[[Tensor], np.ndarray]


class ResidualBlock(nn.Module):
    """`x + W relu(LayerNorm(x))`, a residual layer as people write it, with as many blocks as a highway layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.transform = nn.Sequential(nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.transform(x)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Method:
    """A way to learn a table.

    Attributes:
        name: Its name in the table of results.
        option: The option that is chosen on validation data.
        values: The values of the option.
        fit: Trains on a dataset with one of the values and a seed.
    """

    name: str
    option: str
    values: tuple[float, ...]
    fit: Callable[[Dataset, float, int], Probabilities]


def sklearn_method(name: str, option: str, values: tuple[float, ...], make: Callable[..., Any]) -> Method:
    def fit(data: Dataset, value: float, seed: int) -> Probabilities:
        model = make(**{option: value}, random_state=seed).fit(data.train.x.numpy(), data.train.y.numpy())
        return lambda x: np.asarray(model.predict_proba(x.numpy()))

    return Method(name, option, values, fit)


def network_config(kind: str, depth: int, rate: float, seed: int, data: Dataset) -> TrainConfig:
    return TrainConfig(
        data=DataConfig("own"),
        model=ModelConfig(f"{kind}-mlp", depth=depth, width=WIDTH) if kind != "residual" else ModelConfig(),
        optim=OptimConfig("sgd", lr=rate, weight_decay=0.0),
        schedule=ScheduleConfig("cosine", warmup=0.1),
        epochs=EPOCHS,
        batch_size=-(-len(data.train) // UPDATES_PER_EPOCH),
        seed=seed,
        metric="accuracy",
        evaluate_test="never",
        patience=0,
        checkpoint_every=3600.0,
        threads=1,
    )


def residual_network(features: int, classes: int, depth: int, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    blocks = [ResidualBlock(WIDTH) for _ in range(depth - 1)]
    return nn.Sequential(nn.Linear(features, WIDTH), *blocks, nn.LayerNorm(WIDTH), nn.Linear(WIDTH, classes))


def network_method(kind: str, depth: int) -> Method:
    def fit(data: Dataset, rate: float, seed: int) -> Probabilities:
        config = network_config(kind, depth, rate, seed, data)
        own = residual_network(data.train.x.shape[1], len(data.classes), depth, seed) if kind == "residual" else None
        with tempfile.TemporaryDirectory() as folder:
            run = train(config, Path(folder) / "run", dataset=data, model=own)
            if own is not None:
                load_weights(own, run.path / "model.safetensors")
            model = (own or run.model).eval()

        @torch.no_grad()
        def probabilities(x: Tensor) -> np.ndarray:
            return np.asarray(model(x).double().softmax(1))

        return probabilities

    return Method(f"{kind} network, {depth} layers", "learning rate", RATES, fit)


METHODS = (
    sklearn_method(
        "logistic regression", "C", (0.1, 1.0, 10.0), lambda **given: LogisticRegression(max_iter=1000, **given)
    ),
    sklearn_method(
        "random forest", "min_samples_leaf", (1, 2, 4), lambda **given: RandomForestClassifier(n_jobs=1, **given)
    ),
    sklearn_method("gradient boosting", "learning_rate", (0.03, 0.1, 0.3), HistGradientBoostingClassifier),
    network_method("plain", 2),
    *(network_method("plain", depth) for depth in (10, 20, 50)),
    *(network_method("residual", depth) for depth in (10, 50)),
    *(network_method("highway", depth) for depth in (10, 20, 50)),
)


def load(name: str, seed: int) -> Dataset:
    """One of the tables, split at random with equal shares of each class."""
    table = TABLES[name]()
    rest, test, rest_y, test_y = train_test_split(
        table.data, table.target, test_size=0.2, stratify=table.target, random_state=seed
    )
    train_x, valid, train_y, valid_y = train_test_split(rest, rest_y, test_size=0.2, stratify=rest_y, random_state=seed)
    scaler = StandardScaler().fit(train_x)
    train_split, valid_split, test_split = (
        Split(torch.from_numpy(scaler.transform(x)).float(), torch.from_numpy(y).long())
        for x, y in ((train_x, train_y), (valid, valid_y), (test, test_y))
    )
    return Dataset(name, train_split, valid_split, test_split, tuple(map(str, table.target_names)))


def score(probabilities: Probabilities, split: Split) -> tuple[float, float]:
    """Accuracy, and minus the loss."""
    predicted, y = probabilities(split.x), split.y.numpy()
    accuracy = float((predicted.argmax(1) == y).mean())
    return accuracy, -float(log_loss(y, predicted, labels=range(predicted.shape[1])))


def run_method(method: Method, data: Dataset, seed: int) -> dict[str, Any]:
    """Choose the option's value on the validation data and measure that one on the test data."""
    trials = []
    for value in method.values:
        start = time.process_time()
        probabilities = method.fit(data, value, seed)
        seconds = time.process_time() - start
        trials.append((score(probabilities, data.valid or data.test), value, seconds, probabilities))
    best = max(trials, key=lambda trial: trial[0])
    (valid_accuracy, _), value, seconds, probabilities = best
    return {
        "seed": seed,
        method.option: value,
        "validation_accuracy": valid_accuracy,
        "test_accuracy": score(probabilities, data.test)[0],
        "cpu_seconds": round(seconds, 3),
    }


def alternatives_page(result: dict[str, Any]) -> str:
    """A table of the results, in Markdown."""
    rows = []
    for method in result["options"]:
        trials = [table["trials"][method] for table in result["tables"].values()]
        accuracies = [[100 * trial["test_accuracy"] for trial in found] for found in trials]
        seconds = mean(trial["cpu_seconds"] for trial in trials[-1])
        rows.append((method, [f"{mean(values):.1f} ± {stdev(values):.1f}" for values in accuracies], seconds))
    return render_markdown("alternatives.md", Path(__file__).parent, tables=result["tables"], rows=rows)


@cpu_settings(threads=1)
@threadpool_limits.wrap(limits=1)  # type: ignore[untyped-decorator]  # scikit-learn's threads
def measure(name: str) -> dict[str, list[dict[str, Any]]]:
    """The trials of every method on one table."""
    trials: dict[str, list[dict[str, Any]]] = {method.name: [] for method in METHODS}
    for seed in SEEDS:
        data = load(name, seed)
        for method in METHODS:
            found = run_method(method, data, seed)
            trials[method.name].append(found)
            print(f"{name}, seed {seed}, {method.name}: {found['test_accuracy']:.1%}", flush=True)
    return trials


def settings() -> dict[str, Any]:
    """What all measurements have in common."""
    return {
        "what": "test accuracy on small tables; one option per method chosen on validation data",
        "seeds": SEEDS,
        "options": {method.name: {method.option: method.values} for method in METHODS},
        "networks": {
            "width": WIDTH,
            "epochs": EPOCHS,
            "updates": EPOCHS * UPDATES_PER_EPOCH,
            "optimiser": "SGD, momentum 0.9",
            "schedule": "cosine, 10 % warm-up",
        },
        "threads": 1,
        "scikit_learn": version("scikit-learn"),
    }


def describe(name: str) -> dict[str, int]:
    table = TABLES[name]()
    return {"rows": len(table.data), "features": table.data.shape[1], "classes": len(table.target_names)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", help=f"tables to measure: {', '.join(TABLES)}; by default, all")
    parser.add_argument("--page", action="store_true", help="only write the table of results again")
    options = parser.parse_args()
    for name in () if options.page else options.tables or TABLES:
        trials = measure(name)
        earlier = json.loads(RESULT.read_text())["tables"] if RESULT.exists() else {}
        found = earlier | {name: describe(name) | {"trials": trials}}
        write_result(RESULT, settings() | {"tables": {name: found[name] for name in TABLES if name in found}})
    write_atomic(RESULT.with_suffix(".md"), alternatives_page(json.loads(RESULT.read_text())))


if __name__ == "__main__":
    main()
