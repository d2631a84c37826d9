"""`verydeep analyze`: what the gates do, how information travels, which layers matter, how many are needed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from verydeep.cli._options import read_options
from verydeep.cli._run_options import data_label, load_model, parse_tolerance, subsample
from verydeep.errors import UserError, unknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from verydeep.analysis import DepthUsage, Findings, Progress, SignalFlow
    from verydeep.data import Split
    from verydeep.models import ConvConfig, MLPConfig, Network, ResidualConfig
    from verydeep.training import Run

PARTS = {
    "gates": "gates",
    "routing": "routing of classes",
    "lesions": "lesions",
    "usage": "depth usage",
    "flow": "signal flow",
    "pairs": "pairs of lesions",
}
_FLOW_SAMPLES = 500  # signals and gradients hardly change with more


@dataclass(frozen=True)
class AnalyzeOptions:
    """Look inside a run's network: gates, routing, lesions, how many layers it uses, signals and gradients."""

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The run's folder."""
    split: Literal["train", "valid", "test"] = "train"
    """Which part of the data; the paper takes the training set."""
    data: Annotated[str | None, tyro.conf.arg(metavar="PATH_OR_NAME")] = None
    """Other data, prepared as the run's training data was; the run's own unless given."""
    only: Annotated[str | None, tyro.conf.arg(metavar="PART,...")] = None
    """Some of: gates, routing, lesions, usage, flow, pairs; all but pairs unless given."""
    pairs: bool = False
    """Also close every two layers together, which takes long."""
    samples: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """Look at so many random samples; at all unless given."""
    sample: Annotated[int, tyro.conf.arg(metavar="I")] = 0
    """The single sample whose gates and block outputs are shown, counted from 0 among those looked at."""
    tolerance: Annotated[str, tyro.conf.arg(metavar="SHARE")] = "0.1%"
    """How much accuracy the layers that are not used may be worth."""
    beside: Annotated[Path | None, tyro.conf.arg(metavar="RUN")] = None
    """Another run, such as a plain network's, whose signal flow is shown beside this one's."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Where the results go; RUN/analysis unless given."""
    root: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Where known datasets are kept; $VERYDEEP_DATA or the user's cache unless given."""
    json: bool = False
    """Print JSON instead of tables."""


def main(arguments: list[str]) -> None:
    """Run the command."""
    options = read_options(AnalyzeOptions, "analyze", arguments)
    parts, tolerance = chosen_parts(options.only, options.pairs), parse_tolerance(options.tolerance)
    import torch

    from verydeep.cli.views._analyze import print_findings, summarise
    from verydeep.files import write_atomic
    from verydeep.training import Run, load_data

    run = Run.load(options.run)
    load_model(run)
    beside = Run.load(options.beside) if options.beside is not None else None
    if beside is not None:
        load_model(beside)
    loaded = load_data(run, options.data, options.split, options.root)
    data = subsample(loaded, options.samples)
    if not 0 <= options.sample < len(data):
        raise UserError(f"--sample {options.sample}: the samples looked at are numbered 0 to {len(data) - 1}")
    folder = options.out or run.path / "analysis"
    found = _analyse(options, run, beside, data, parts, tolerance, folder)
    summary = summarise(run, options.data, None if loaded.whole else options.split, len(data), found)
    write_atomic(folder / "summary.json", json.dumps(summary, indent=1, ensure_ascii=False) + "\n")
    _draw(found, folder)
    if options.json:
        print(json.dumps(summary, ensure_ascii=False))
    else:
        print_findings(found, folder)


def _analyse(
    options: AnalyzeOptions, run: Run, beside: Run | None, data: Split, parts: list[str], tolerance: float, folder: Path
) -> Findings:
    """Every part that is asked for, each with a bar of its own, and saved as soon as it is there."""
    from verydeep import analysis
    from verydeep.cli.views._progress import progress_bar
    from verydeep.training import RunData

    model, where = run.model, data_label(options.data, options.split)
    group = max(1, model.highway_depth // 50)  # comparing every layer with every other takes too long in deeper ones

    def depth(progress: Progress | None) -> DepthUsage:
        return analysis.depth_usage(
            analysis.greedy_lesions(model, data, where, group=group, progress=progress), tolerance
        )

    steps: dict[str, Callable[[Progress | None], Any]] = {
        "gates": lambda progress: analysis.gate_statistics(model, data, options.sample, progress),
        "routing": lambda progress: analysis.class_routing(model, data, RunData.load(run).classes, progress=progress),
        "lesions": lambda progress: analysis.lesion_study(model, data, where, progress),
        "usage": depth,
        "flow": lambda progress: _flow(run, beside, data),
        "pairs": lambda progress: analysis.pair_lesions(model, data, where, progress),
    }
    found = {}
    for part in parts:
        with progress_bar(PARTS[part]) as progress:
            found[part] = steps[part](progress)
        analysis.save_findings(analysis.Findings(**{part: found[part]}), folder)
    return analysis.Findings(**found)


def _flow(run: Run, beside: Run | None, data: Split) -> tuple[SignalFlow, ...]:
    """Signals in the network before and after training, and the same in a plain network or in another run's."""
    few = subsample(data, _FLOW_SAMPLES)
    networks = moments(run, _label(run))
    if beside is not None:
        label = _label(beside)
        networks |= moments(beside, beside.path.resolve().name if label == _label(run) else label)
    else:
        networks |= plain_beside(run.model, run.config.seed)
    from verydeep.analysis import signal_flow

    return tuple(signal_flow(network, few, name) for name, network in networks.items())


def moments(run: Run, label: str) -> dict[str, Network]:
    """A network as it was when its training began, if its seed says that, and as it is."""
    began = {}
    if "model" not in run.user_supplied:
        began = {f"{label}, at initialisation": _untrained(run.model.config, run.config.seed)}
    return began | {f"{label}, trained": run.model}


def plain_beside(model: Network, seed: int) -> dict[str, Network]:
    """A plain network of the same depth and width, untrained; nothing for convolutional ones."""
    from dataclasses import replace

    from verydeep.models import MLPConfig

    if not isinstance(model.config, MLPConfig) or model.config.kind == "plain":
        return {}
    return {"plain, at initialisation": _untrained(replace(model.config, kind="plain"), seed)}


def _untrained(config: MLPConfig | ConvConfig | ResidualConfig, seed: int) -> Network:
    """A network with the weights that a seed gives; the process keeps its random state."""
    import torch

    from verydeep.models import build

    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return build(config)


def _label(run: Run) -> str:
    return str(getattr(run.model.config, "kind", run.config.model.name))


def _draw(found: Findings, folder: Path) -> None:
    """Draw what was found, each picture as PNG and SVG."""
    from verydeep.report import plot_findings

    plot_findings(found, folder)


def chosen_parts(only: str | None, pairs: bool) -> list[str]:
    """Which parts to do, in their order."""
    names = [name.strip() for name in only.split(",")] if only is not None else [n for n in PARTS if n != "pairs"]
    for name in names:
        if name not in PARTS:
            raise unknown("part of the analysis", name, PARTS)
    return [name for name in PARTS if name in names or (pairs and name == "pairs")]
