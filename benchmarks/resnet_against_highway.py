"""Closing and swapping blocks of residual and highway networks: `python benchmarks/resnet_against_highway.py`.

Trains ResNet-20 and -56 (He et al. 2015) and convolutional highway networks of the same depth and layout on CIFAR-10,
on one thread, in bfloat16 like the public code that the settings come from. Then it measures on test images, in
float32, the error with each block closed, with blocks closed one after the other (the cheapest first, selected on
training images), and with random sets of blocks closed or swapped, as Veit et al. (2016) do. The first block of every
stage stays where it is and open, because it changes the shape.

Killed at any time, it continues where it was. Two processes can share the work, one network each: `--networks
resnet-56` and `--networks highway-56`. Every call adds its networks to the results of earlier ones, which need not have
been measured on the same machine; each says where it was.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from _result import write_result
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from verydeep.analysis import (
    GreedyLesion,
    LesionStudy,
    Progress,
    RandomChanges,
    find_blocks,
    greedy_lesions,
    lesion_study,
    load_result,
    random_lesions,
    reorder_study,
    save_result,
    some_samples,
)
from verydeep.cli._status import status
from verydeep.cli.views._bar import progress_bar
from verydeep.cpu import cpu_settings
from verydeep.data import DataConfig
from verydeep.errors import UserError
from verydeep.files import read_json, write_atomic
from verydeep.report import render_markdown
from verydeep.report.figures._theme import themed_figure
from verydeep.training import (
    Interrupted,
    Run,
    ScheduleConfig,
    TrainConfig,
    environment,
    load_own,
    make_progress,
    read_config,
    train,
)

ROOT = Path(__file__).parents[1]
NETWORKS = ("resnet-20", "highway-20", "resnet-56", "highway-56")
GATE_BIAS = {20: -2.0, 56: -4.0}  # as the paper's convolutional networks: the deeper, the more negative
COUNTS = 8  # points of the curves of random changes
T = TypeVar("T")


def read_options() -> argparse.Namespace:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument(
        "--networks", nargs="+", default=list(NETWORKS), help="resnet-N or highway-N, N = 20, 26, 32, ..."
    )
    options.add_argument("--data", default="cifar10")
    options.add_argument("--epochs", type=int, default=5)
    options.add_argument("--samples", type=int, default=1000, help="test images to measure on")
    options.add_argument("--choosing", type=int, default=500, help="training images that select the order of closing")
    options.add_argument("--draws", type=int, default=5, help="random sets per number of blocks")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--folder", type=Path, default=ROOT / "runs" / "resnet-against-highway")
    options.add_argument("--out", type=Path, default=ROOT / "results" / "resnet_against_highway.json")
    options.add_argument("--picture", type=Path, default=ROOT / "results" / "resnet_against_highway.png")
    return options.parse_args()


def configure(name: str, options: argparse.Namespace) -> TrainConfig:
    """The settings of resnet-110.toml and highway-110.toml, with fewer blocks and a schedule for few epochs."""
    found = re.fullmatch(r"(resnet|highway)-(\d+)", name)
    depth = int(found[2]) if found else 0
    if found is None or depth < 20 or (depth - 2) % 6:
        raise UserError(f"--networks {name}: give resnet-N or highway-N with N = 20, 26, 32, ...")
    base = read_config(f"{found[1]}-110")
    bias = GATE_BIAS.get(depth, -2.0) if found[1] == "highway" else None
    data = base.data if options.data == "cifar10" else DataConfig(options.data)
    return replace(
        base,
        data=data,
        model=replace(base.model, blocks=(depth - 2) // 6, gate_bias=bias),
        schedule=ScheduleConfig("one-cycle", warmup=0.15),
        epochs=options.epochs,
        seed=options.seed,
        evaluate_test="end",
        precision="bfloat16",
        threads=1,
    )


@dataclass(frozen=True)
class Measured:
    """What was measured of a network."""

    lesions: LesionStudy
    greedy: GreedyLesion
    closed: RandomChanges
    swapped: RandomChanges


def settings_name(options: argparse.Namespace) -> str:
    """The folder for results that are measured with these options."""
    return f"measured-{options.samples}-{options.choosing}-{options.draws}-{options.seed}"


def measure(run: Run, options: argparse.Namespace) -> Measured:
    """Measure a network; parts that are on disk already are read."""
    folder = run.path / settings_name(options)
    kinds: dict[str, Any] = {
        "lesions": LesionStudy,
        "greedy": GreedyLesion,
        "closed": RandomChanges,
        "swapped": RandomChanges,
    }
    if all((folder / f"{name}.npz").exists() for name in kinds):
        return Measured(**{name: load_result(folder / f"{name}.npz", kind) for name, kind in kinds.items()})
    with status(f"reading {run.config.data.source}"):
        dataset = load_own(run)
    assert dataset.test is not None

    def part(name: str, kind: type[T], compute: Callable[[Progress | None], T]) -> T:
        file = folder / f"{name}.npz"
        if not file.exists():
            with progress_bar(f"{run.path.name}: {name}") as progress:
                save_result(compute(progress), file)
        return load_result(file, kind)

    model, test = run.model, some_samples(dataset.test, options.samples, options.seed)
    train_images = some_samples(dataset.train, options.choosing, options.seed)
    blocks = find_blocks(model, dataset.test.x[:2])
    # The first block of every stage changes the shape, except in the first stage of the ResNets.
    per_stage = len(model.blocks) // 3  # type: ignore[arg-type]
    changing = {f"blocks.{stage * per_stage}" for stage in range(3)}
    keeping = [number for number, block in enumerate(blocks) if block.name not in changing]
    most = len(keeping)
    counts = sorted({int(count) for count in np.linspace(1, most - 1, COUNTS)})
    stages = [sum(int(blocks[n].name.split(".")[1]) // per_stage == stage for n in keeping) for stage in range(3)]
    pairs = 2 * sum(size // 2 for size in stages)
    swaps = sorted({2 * int(count) for count in np.linspace(0, pairs // 2, COUNTS + 1)})
    common: dict[str, Any] = {"draws": options.draws, "seed": options.seed, "split": "test", "layers": keeping}
    return Measured(
        part("lesions", LesionStudy, lambda bar: lesion_study(model, test, "test", bar)),
        part(
            "greedy",
            GreedyLesion,
            lambda bar: greedy_lesions(model, test, "test", train=train_images, layers=keeping, progress=bar),
        ),
        part("closed", RandomChanges, lambda bar: random_lesions(model, test, counts, progress=bar, **common)),
        part("swapped", RandomChanges, lambda bar: reorder_study(model, test, swaps, progress=bar, **common)),
    )


def numbers(run: Run, found: Measured) -> dict[str, Any]:
    """The results of a network as plain values."""
    metrics, lesions, greedy = run.metrics, found.lesions, found.greedy
    assert lesions.standard_error is not None
    assert greedy.standard_error is not None

    def random(changes: RandomChanges) -> dict[str, Any]:
        return {
            "blocks": changes.counts.tolist(),
            "error": changes.error.tolist(),
            "mean_error": changes.error.mean(1).tolist(),
            "mean_loss": changes.loss.mean(1).tolist(),
        }

    return {
        "parameters": sum(p.numel() for p in run.model.parameters()),
        "epochs": len(metrics),
        "training_seconds": round(sum(line.seconds for line in metrics), 1),
        "gate_bias": run.config.model.gate_bias,
        "test_error": lesions.baseline.error,
        "blocks_closed_one_by_one": [
            {
                "name": lesions.layers[layer],
                "error": float(lesions.error[layer]),
                "loss": float(lesions.loss[layer]),
                "standard_error_of_rise": float(lesions.standard_error[layer]),
            }
            for layer in range(len(lesions.layers))
        ],
        "closed_cheapest_first": {
            "order": [greedy.layers[layer] for layer in greedy.order],
            "error": greedy.error.tolist(),
            "standard_error_of_rise": greedy.standard_error.tolist(),
        },
        "closed_at_random": random(found.closed),
        "swapped_at_random": random(found.swapped),
        "environment": environment(),
    }


def page(networks: dict[str, dict[str, Any]]) -> str:
    """The main numbers as a Markdown page."""

    def row(name: str, network: dict[str, Any]) -> tuple[str, ...]:
        in_place = set(network["closed_cheapest_first"]["order"])
        alone = [each["error"] for each in network["blocks_closed_one_by_one"] if each["name"] in in_place]
        together = network["closed_cheapest_first"]["error"]
        random, swapped = network["closed_at_random"]["mean_error"], network["swapped_at_random"]["mean_error"]
        errors = (network["test_error"], min(alone), max(alone), together[len(in_place) // 2], random[0], swapped[-1])
        cells = (name, f"{network['parameters']:,}", str(network["epochs"]), str(len(in_place)))
        return *cells, *(f"{error:.1%}" for error in errors)

    return render_markdown(
        "resnet_against_highway.md", Path(__file__).parent, rows=[row(*item) for item in networks.items()]
    )


def draw(networks: dict[str, dict[str, Any]], path: Path) -> None:
    """Four panels: each block closed, the cheapest closed first, random sets closed, random pairs swapped."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with themed_figure(path, 11.0, 8.0, "light") as (figure, palette):
        panels = figure.subplots(2, 2)
        for number, (name, network) in enumerate(networks.items()):
            look: dict[str, Any] = {
                "color": palette.colours[number % len(palette.colours)],
                "linestyle": "-" if name.startswith("resnet") else "--",
                "marker": "o" if name.startswith("resnet") else "s",
                "markersize": 3.5,
                "label": name.replace("resnet", "ResNet"),
            }
            greedy = network["closed_cheapest_first"]
            blocks = len(greedy["order"])
            alone = [each for each in network["blocks_closed_one_by_one"] if each["name"] in greedy["order"]]
            places = np.array([int(each["name"].split(".")[1]) + 1 for each in alone])
            panels[0, 0].plot(places / places.max(), [each["error"] for each in alone], **look)
            panels[0, 1].plot(np.arange(blocks + 1) / blocks, greedy["error"], **look)
            for panel, key in ((panels[1, 0], "closed_at_random"), (panels[1, 1], "swapped_at_random")):
                counts, error = np.array(network[key]["blocks"]), np.array(network[key]["error"])
                if counts[0]:  # nothing closed
                    whole = np.full((1, error.shape[1]), network["test_error"])
                    counts, error = np.concatenate([[0], counts]), np.concatenate([whole, error])
                x = counts / blocks
                panel.fill_between(x, error.min(1), error.max(1), color=look["color"], alpha=0.15, linewidth=0)
                panel.plot(x, error.mean(1), **look)
        titles = (
            ("one block closed", "place of the block, from input to output"),
            ("blocks closed, the cheapest first", "fraction of the blocks closed"),
            ("random blocks closed", "fraction of the blocks closed"),
            ("random pairs swapped", "fraction of the blocks in another place"),
        )
        for panel, (title, label) in zip(panels.flat, titles, strict=True):
            _finish(panel, title, label)
        panels[0, 0].legend(frameon=False)


def _finish(axes: Axes, title: str, label: str) -> None:
    axes.set(title=title, xlabel=label, ylabel="test error", ylim=(0, None), xlim=(0, 1))
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.yaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    axes.spines[["top", "right"]].set_visible(False)


def earlier_networks(path: Path, same: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The networks of an earlier result that was measured in the same way."""
    earlier = read_json(path) if path.exists() else {}
    if any(earlier.get(key) != value for key, value in same.items()):
        return {}
    shared = earlier.get("environment")  # of results that do not say it per network
    networks: dict[str, dict[str, Any]] = earlier["networks"]
    return {name: {"environment": shared} | network for name, network in networks.items()}


def _by_depth(name: str) -> tuple[int, bool]:
    kind, depth = name.split("-")
    return int(depth), kind == "highway"


@cpu_settings(threads=1)
def main() -> None:
    options = read_options()
    configs = {name: configure(name, options) for name in options.networks}
    measured: dict[str, dict[str, Any]] = {}
    for name, config in configs.items():
        run = train(config, options.folder / name, resume=True, progress=make_progress(quiet=False))
        measured[name] = numbers(run, measure(run, options))
    same = {"data": options.data, "test_images": options.samples, "draws": options.draws, "seed": options.seed}
    networks = earlier_networks(options.out, same) | measured
    networks = {name: networks[name] for name in sorted(networks, key=_by_depth)}
    what = "test error of residual and highway networks with blocks closed or swapped"
    result = {"what": what, **same, "networks": networks}
    write_result(options.out, result)
    write_atomic(options.out.with_suffix(".md"), page(networks))
    draw(networks, options.picture)
    print(json.dumps({name: each["test_error"] for name, each in networks.items()}, indent=1))
    print(f"{options.out} and {options.picture} are written")


if __name__ == "__main__":
    try:
        main()
    except Interrupted as error:
        print(f"resnet_against_highway: {error}; the same command continues", file=sys.stderr)
        sys.exit(130)
    except UserError as error:
        print(f"resnet_against_highway: {error}", file=sys.stderr)
        sys.exit(2)
