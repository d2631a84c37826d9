"""Figures 2, 3 and 4 of the paper, from our own networks: `python benchmarks/figures.py`.

Takes the runs that `python benchmarks/training.py figures-mnist figures-cifar100` trains, analyses both with `verydeep
analyze` over their whole training sets, and removes the idle layers of the MNIST network with `verydeep prune
--tolerance 0.1%`. Figures, numbers and the paper's observations beside ours are written to results/figures/.
"""

import argparse
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from verydeep.analysis import Findings, load_findings
from verydeep.cli import main as verydeep
from verydeep.config import to_dict
from verydeep.files import read_json, write_atomic
from verydeep.report import (
    plot_depth_usage,
    plot_gates,
    plot_lesions,
    plot_routing,
    plot_signal_flow,
    render_markdown,
)
from verydeep.training import Run

ROOT = Path(__file__).parents[1]
RUNS, RESULTS = ROOT / "runs" / "results", ROOT / "results" / "figures"
NETWORKS = {"MNIST": "figures-mnist", "CIFAR-100": "figures-cifar100"}
CLASSES = {"MNIST": (0, 7), "CIFAR-100": (0, 1)}  # as in the paper
PARTS = ("gates.npz", "routing.npz", "lesions.npz", "usage.npz", "flow-1.npz")


def analyse(run: Path) -> Findings:
    if not all((run / "analysis" / name).exists() for name in PARTS):
        assert verydeep(["analyze", str(run), "--split", "train"]) == 0
    return load_findings(run / "analysis")


def without_idle_layers(run: Path) -> dict[str, Any]:
    pruned = run.with_name(f"{run.name}-pruned")
    if not pruned.exists():
        assert verydeep(["prune", str(run), "--tolerance", "0.1%", "--split", "train", "--folder", str(pruned)]) == 0
    report = load_findings(run / "analysis").prune
    assert report is not None
    return asdict(report)


def draw(found: dict[str, Findings]) -> None:
    for suffix in ("png", "svg"):
        plot_gates([(name, f.gates) for name, f in found.items() if f.gates], RESULTS / f"figure2.{suffix}")
        plot_lesions([(name, f.lesions) for name, f in found.items() if f.lesions], RESULTS / f"figure4.{suffix}")
        for name, f in found.items():
            assert f.routing is not None
            assert f.usage is not None
            short = NETWORKS[name].removeprefix("figures-")
            classes = [f.routing.classes[number] for number in CLASSES[name]]
            plot_routing(f.routing, RESULTS / f"figure3-{short}.{suffix}", classes=classes)
            plot_depth_usage(f.usage, RESULTS / f"usage-{short}.{suffix}")
            plot_signal_flow(f.flow, RESULTS / f"flow-{short}.{suffix}")


def record(run: Run, found: Findings) -> dict[str, Any]:
    assert found.routing is not None
    return {
        "command": "python benchmarks/figures.py",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "config": to_dict(run.config),
        "environment": json.loads((run.path / "environment.json").read_text()),
        "trained": run.summary and run.summary.to_dict(),
        "last_epoch": run.metrics[-1].to_dict(),
        "analysis": json.loads((run.path / "analysis" / "summary.json").read_text()) | {"run": run.path.name},
    }


# The paper's observations (Section 4), the name of our number for each, and its format.
STATEMENTS = (
    ("most gate biases fall during training (both)", "biases_fell", "{:.1%} fell"),
    ("biases rise with depth (CIFAR-100)", "bias_with_depth", "correlation {:+.2f}"),
    (
        "... and correlate inversely with the mean gate activity (CIFAR-100)",
        "activity_with_bias",
        "correlation {:+.2f}",
    ),
    ("most gates are active on average (CIFAR-100)", "active_on_average", "{:.1%} have a mean of at least 0.05"),
    (
        "gate activity for a single sample is sparse (more so CIFAR-100)",
        "active_per_sample",
        "{:.1%} are at least 0.05",
    ),
    ("... counting gates above 0.5", "open_per_sample", "{:.1%} per sample"),
    ("... and on average above 0.5", "open_on_average", "{:.1%} have a mean above 0.5"),
    (
        "most change happens in the first layers: about 15 (MNIST), 40 (CIFAR-100)",
        "stripes_begin",
        "90 % within {} layers",
    ),
    (
        "about 60 % of the layers contribute nothing (MNIST)",
        "idle_alone",
        "{:.1%} cost at most 0.1 % when closed alone",
    ),
    ("(ours) layers that can be closed together at a cost of 0.1 %", "idle_together", "{:.1%}"),
    ("(ours) largest increase of the error by a single lesion", "largest_rise", "{:.1%}"),
)


@dataclass(frozen=True)
class Observation:
    """A line of the page: what the paper observes, and our number for each network, as text."""

    statement: str
    values: list[str]


@dataclass(frozen=True)
class Pruned:
    """A network before and after its idle layers are removed."""

    layers: tuple[int, int]
    parameters: tuple[int, int]
    train: tuple[float, float]
    test: tuple[float, float]
    speed_up: float
    batch: int


def page(records: dict[str, dict[str, Any]]) -> str:
    """The page, in Markdown, from the records of the networks by name."""
    numbers = list(records.values())
    observations = [
        Observation(statement, [how.format(each["analysis"]["observations"][name]) for each in numbers])
        for statement, name, how in STATEMENTS
    ]
    for name, key in (("training accuracy", "train_accuracy"), ("test accuracy", "test_accuracy")):
        observations.append(Observation(name, [format(each["last_epoch"][key], ".2%") for each in numbers]))
    return render_markdown(
        "figures.md",
        Path(__file__).parent,
        networks=list(records),
        observations=observations,
        pruned=pruned(records["MNIST"]["pruned"]),
    )


def pruned(report: dict[str, Any]) -> Pruned:
    train, test = ((1 - before["error"], 1 - after["error"]) for before, after in (report["chosen"], report["test"]))
    before, after = report["parameters"]
    slow, fast = report["latency"]
    layers = (len(report["layers"]), len(report["kept"]))
    return Pruned(layers, (before, after), train, test, slow / fast, report["latency_batch"])


def read_records() -> dict[str, dict[str, Any]]:
    return {name: read_json(RESULTS / f"{file}.json") for name, file in NETWORKS.items()}


def measure() -> None:
    found = {name: analyse(RUNS / folder) for name, folder in NETWORKS.items()}
    draw(found)
    records = {name: record(Run.load(RUNS / folder), found[name]) for name, folder in NETWORKS.items()}
    records["MNIST"]["pruned"] = without_idle_layers(RUNS / NETWORKS["MNIST"])
    for name, numbers in records.items():
        write_atomic(RESULTS / f"{NETWORKS[name]}.json", json.dumps(numbers, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", action="store_true", help="only write the page again, from the stored numbers")
    if not parser.parse_args().page:
        measure()
    write_atomic(RESULTS / "README.md", page(read_records()))


if __name__ == "__main__":
    main()
