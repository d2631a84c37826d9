"""`verydeep demo`: a plain and a highway network of 50 layers side by side, and what came of it."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from verydeep.cli._options import read_options
from verydeep.errors import UserError
from verydeep.files import make_folder

if TYPE_CHECKING:
    from verydeep.training import TrainConfig

_NEXT = """To try next (after make: . .venv/bin/activate):
  verydeep models
      the paper's networks
  verydeep train{data} --optim.lr 0.2 --schedule.name exponential --schedule.factor 0.8
      the highway network, longer
  verydeep train{data} --model.name plain-mlp --optim.lr 0.2
      a plain one at the highway's learning rate
  verydeep train{data} --model.depth 100 --model.gate-bias -4 --optim.lr 0.1
      twice as deep"""


@dataclass(frozen=True)
class DemoOptions:
    """Train a plain and a highway network of 50 layers side by side, and compare them."""

    epochs: int | None = None
    """How often the training set is seen; by default 5 times for MNIST, more for the small digits."""
    data: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """mnist or digits; by default mnist, or digits where it cannot be had."""
    folder: Annotated[Path, tyro.conf.arg(metavar="FOLDER")] = Path("runs/demo")
    """Where runs and picture are put, each time in a new folder."""
    root: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Where known datasets are kept; $VERYDEEP_DATA or the user's cache unless given."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    from verydeep.paper import demo_configs, train_side_by_side
    from verydeep.training import Run, interruptible

    options = read_options(DemoOptions, "demo", arguments)
    data = options.data or _data(options.root)
    if data not in ("mnist", "digits"):
        raise UserError(f"the demo's settings are for mnist or digits, not for '{data}'")
    configs = demo_configs(data)
    if options.epochs is not None:
        configs = {name: replace(config, epochs=options.epochs) for name, config in configs.items()}
    folder = _new_folder(options.folder)
    print(f"Training a plain and a highway network of 50 layers on {data}, one process each.", flush=True)
    view = _view(configs)
    with interruptible() as interrupt, view:
        for event in train_side_by_side(configs, folder, options.root, interrupt):
            view.show(event)
    runs = {name: Run(folder / name, config) for name, config in configs.items()}
    if interrupt.requested:
        print("verydeep: interrupted; what there is can be continued:", file=sys.stderr)
        for run in runs.values():
            print(f"  verydeep train --resume {run.path}", file=sys.stderr)
        return 130
    _tell({name: run.metrics for name, run in runs.items()}, folder, data)
    return 0


def _data(root: Path | None) -> str:
    from verydeep.paper import demo_data

    print("Looking for MNIST ...", flush=True)
    data, why = demo_data(root)
    if why:
        print(f"MNIST cannot be had: {why}\nGoing on with the small digits that come with scikit-learn.", flush=True)
    return data


def _new_folder(parent: Path) -> Path:
    make_folder(parent)
    folder = next(parent / str(number) for number in count(1) if not (parent / str(number)).exists())
    make_folder(folder)
    return folder


def _view(configs: dict[str, TrainConfig]) -> Any:  # noqa: ANN401 - either of the two
    from verydeep.cli.views._demo import LineView, LiveView

    epochs = {name: config.epochs for name, config in configs.items()}
    return LiveView(epochs) if sys.stdout.isatty() else LineView(epochs)


def _tell(metrics: dict[str, list[dict[str, Any]]], folder: Path, data: str) -> None:
    from verydeep.paper import verdict
    from verydeep.report import plot_curves

    picture = folder / "curves.png"
    plot_curves({f"{name}, 50 layers": lines for name, lines in metrics.items()}, picture)
    print()
    for name, lines in metrics.items():
        print(f"{name:<8} after {len(lines)} epochs: {_facts(lines[-1])}")
    print(verdict(metrics["plain"][-1], metrics["highway"][-1]))
    print("One seed and a few epochs, each network at a learning rate that suits it; no more than a first look.")
    print(f"\nThe curves: {picture}\nThe runs:   {', '.join(str(folder / name) for name in metrics)}\n")
    print(_NEXT.format(data="" if data == "mnist" else f" --data.source {data}"))


def _facts(line: dict[str, Any]) -> str:
    if line.get("train_loss") is None:
        return "diverged"
    accuracies = f"{line['train_accuracy']:.2%} of training and {line['test_accuracy']:.2%} of test samples right"
    return f"mean cross-entropy {line['train_loss']:.4f}, {accuracies}, {line['seconds']:.0f} s"
