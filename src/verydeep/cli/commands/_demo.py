"""`verydeep demo`: train a plain and a highway network of 50 layers side by side, and compare them."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

from verydeep.cli._options import DataRoot, option, read_options
from verydeep.cli._status import load_torch
from verydeep.errors import UserError
from verydeep.files import make_folder
from verydeep.words import plural

if TYPE_CHECKING:
    from verydeep.training import EpochMetrics

_NEXT = """Try next (after make: . .venv/bin/activate):
  verydeep models
      the paper's networks
  verydeep train {data} --lr 0.2 --schedule exponential --factor 0.8
      the highway network, longer
  verydeep train {data} --model plain-mlp --lr 0.2
      a plain one at the highway's learning rate
  verydeep train {data} --depth 100 --gate-bias -4 --lr 0.1
      twice as deep"""


@dataclass(frozen=True)
class DemoOptions:
    """Train a plain and a highway network of 50 layers side by side, and compare them."""

    epochs: Annotated[int | None, option("N")] = None
    """Train for N epochs; by default, 5 on MNIST and more on the small digits."""
    data: Annotated[str | None, option("NAME")] = None
    """The dataset, mnist or digits; by default, mnist if it is available."""
    folder: Annotated[Path, option("FOLDER")] = Path("runs/demo")
    """Each demo puts its runs and curves in a new folder inside this one."""
    root: DataRoot = None


OPTIONS = {"demo": DemoOptions}


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = read_options(DemoOptions, "demo", arguments)
    load_torch()
    from verydeep.paper import demo_configs
    from verydeep.studies import Group, make_study_progress, run_study, start_study

    data = options.data or _data(options.root)
    if data not in ("mnist", "digits"):
        raise UserError(f"the demo's settings are for mnist or digits, not for '{data}'")
    configs = demo_configs(data)
    if options.epochs is not None:
        configs = {name: replace(config, epochs=options.epochs) for name, config in configs.items()}
    folder = _new_folder(options.folder)
    print(f"Training a plain and a highway network of 50 layers on {data}, one process each.", flush=True)
    study = start_study(folder, [Group(name, config) for name, config in configs.items()], metric="train_loss")
    stopped = run_study(study, jobs=len(configs), root=options.root, progress=make_study_progress(quiet=False))
    if stopped == "interrupted":
        how = f"verydeep worker {quote(str(folder))}"
        print(f"verydeep: interrupted and saved; finish the runs with: {how}", file=sys.stderr)
        return 130
    records = study.records()
    for record in records:
        if record.status == "failed":
            raise UserError(f"the {record.name} network could not be trained: {record.reason}")
    _print_results({record.name: record.curve for record in records}, folder, data)
    return 0


def _data(root: Path | None) -> str:
    from verydeep.paper import demo_data

    print("Looking for MNIST ...", flush=True)
    data, why = demo_data(root)
    if why:
        print(f"MNIST is not available: {why}\nUsing the small digits that come with scikit-learn instead.", flush=True)
    return data


def _new_folder(parent: Path) -> Path:
    make_folder(parent)
    folder = next(parent / str(number) for number in count(1) if not (parent / str(number)).exists())
    make_folder(folder)
    return folder


def _print_results(metrics: dict[str, list[EpochMetrics]], folder: Path, data: str) -> None:
    from verydeep.paper import verdict
    from verydeep.report import plot_curves

    picture = folder / "curves.png"
    plot_curves({f"{name}, 50 layers": lines for name, lines in metrics.items()}, picture)
    print()
    for name, lines in metrics.items():
        print(f"{name:<8} after {plural(len(lines), 'epoch')}: {_facts(lines[-1])}")
    print(verdict(metrics["plain"][-1], metrics["highway"][-1]))
    print("This is only a first look: one seed, a few epochs, and each network at a learning rate that suits it.")
    print(f"\nThe curves: {picture}\nThe runs:   {', '.join(str(folder / name) for name in metrics)}\n")
    print(_NEXT.format(data=data))


def _facts(line: EpochMetrics) -> str:
    if line.train_loss is None or not math.isfinite(line.train_loss):
        return "diverged"
    accuracies = f"{line.train_accuracy:.2%} training accuracy, {line.test_accuracy:.2%} test accuracy"
    return f"mean cross-entropy {line.train_loss:.4f}, {accuracies}, {line.seconds:.0f} s"
