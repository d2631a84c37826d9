"""`verydeep analyze`: what the gates do, how classes are routed, which layers matter and how many are needed."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from verydeep.cli._options import DataRoot, Json, option, positional, read_options
from verydeep.cli._run_options import (
    computing,
    data_label,
    free_threads,
    load_model,
    open_run,
    parse_tolerance,
    subsample,
)
from verydeep.cli._run_usage import count_layers, other_samples
from verydeep.cli._status import status
from verydeep.errors import UserError, unknown
from verydeep.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Callable

    from verydeep.analysis import DepthUsage, Findings, Progress, SignalFlow
    from verydeep.data import Split
    from verydeep.models import ConvConfig, MLPConfig, Network, ResidualConfig
    from verydeep.report import UsageSamples
    from verydeep.training import Run

PARTS = {
    "gates": "gates",
    "routing": "routing of classes",
    "lesions": "lesions",
    "usage": "depth usage",
    "flow": "signal flow",
    "pairs": "pairs of lesions",
}
_OF_GATES = ("gates", "routing")
_UNUSED = {"RUN": ("text", "context", "blocks", "level"), "--model": ("context", "beside"), "--hf": ("split", "beside")}
UNFINISHED = ".unfinished"  # a file in the folder of the results as long as some of them are missing
_FLOW_SAMPLES = 500  # more samples hardly change signals and gradients


@dataclass(frozen=True)
class AnalyzeOptions:
    """Look inside a network: what its gates do, how it routes classes, which layers matter.

        gates    biases and activity of the transform gates
        routing  the gates that differ between classes, labels, or ranges of a regression's target
        lesions  loss and accuracy (R2 of a regression) with each layer closed in turn
        usage    how many layers the network uses, on held-out data and on the training data
        flow     signals and gradients from layer to layer
        pairs    lesions of every pair of layers (slow)

    The network is that of a run, your own (--model) or a language model on disk (--hf). Layers are highway layers and
    residual blocks. They are counted from 1 in tables, figures and reports, and from 0 in Python and JSON.
    """

    run: Annotated[Path | None, positional("RUN", "The run's folder, or its name in verydeep runs.")] = None
    model: Annotated[str | None, option("FILE.py:FUNCTION")] = None
    """Analyse the torch module that a function returns, on --data, or a module and its batches."""
    hf: Annotated[Path | None, option("FOLDER")] = None
    """Analyse a language model that transformers has saved in this folder, on --text. Nothing is downloaded."""
    text: Annotated[Path | None, option("FILE")] = None
    """The text for --hf."""
    context: Annotated[int | None, option("N")] = None
    """Cut the text into sequences of N tokens; by default, 256 or as many as the model takes."""
    blocks: Annotated[tuple[str, ...], option("NAME,...")] = ()
    """The modules to close, such as encoder.layer.*; by default, highway layers and residual blocks."""
    level: Annotated[Literal["layer", "sublayer"], option("layer|sublayer")] = "layer"
    """Close whole residual layers, or what each of them adds, such as attention."""
    split: Annotated[Literal["train", "valid", "test"] | None, option("train|valid|test")] = None
    """The split of the data to use; by default, the validation data if there is any, or else the training data, which
    the paper uses. The layers used are never counted on the test data."""
    data: Annotated[str | None, option("PATH_OR_NAME")] = None
    """Use other data, prepared as the training data was; by default, the run's own. With --model, the data to use."""
    only: Annotated[tuple[str, ...], option("PART,...")] = ()
    """Run only these parts; by default, all that the network allows, but not pairs."""
    pairs: bool = False
    """Also run the pairs (slow)."""
    samples: Annotated[int | None, option("N")] = None
    """Use N random samples; by default, all."""
    sample: Annotated[int, option("I")] = 0
    """The sample whose gates and block outputs are shown, counted from 0 among the samples used."""
    tolerance: Annotated[str, option("PERCENT")] = "0.1%"
    """The largest loss of accuracy allowed when idle layers are closed, such as 0.1% or 0.001; one standard error is
    always allowed."""
    beside: Annotated[Path | None, option("RUN")] = None
    """Compare the signal flow with that of another run, such as a plain network's."""
    out: Annotated[Path | None, option("FOLDER")] = None
    """The folder for the results; by default, RUN/analysis, or analysis for a network that is not a run."""
    root: DataRoot = None
    threads: Annotated[int | None, option("N")] = None
    """Use N CPU threads; by default, one per core for a run, and for other networks one per core that is free."""
    json: Json = False


OPTIONS = {"analyze": AnalyzeOptions}


def main(arguments: list[str]) -> None:
    """Run the command."""
    options = read_options(AnalyzeOptions, "analyze", arguments)
    parts, tolerance = selected_parts(options.only, options.pairs), parse_tolerance(options.tolerance)
    networks = {"RUN": options.run, "--model": options.model, "--hf": options.hf}
    given = [name for name, value in networks.items() if value is not None]
    if len(given) != 1:
        have = " and ".join(given) or "none of them"
        raise UserError(f"give one network, RUN, --model FILE.py:FUNCTION or --hf FOLDER; got {have}")
    for name in _UNUSED[given[0]]:
        if getattr(options, name) != getattr(AnalyzeOptions, name):
            raise UserError(f"--{name} has no effect on the network of {given[0]}; leave it out")
    if options.run is None:
        from verydeep.cli._analyze_other import analyze_other

        with computing(free_threads() if options.threads is None else options.threads):
            analyze_other(options, parts, tolerance)
        return
    run = open_run(options.run)
    beside = open_run(options.beside) if options.beside is not None else None
    with computing(options.threads):
        _run(options, run, beside, parts, tolerance)


def _run(options: AnalyzeOptions, run: Run, beside: Run | None, parts: list[str], tolerance: float) -> None:
    from verydeep.analysis import closable_blocks
    from verydeep.cli.views._analyze import print_findings, print_refused, summarise
    from verydeep.files import cannot_write, write_atomic
    from verydeep.report import held_out_split

    folder = options.out or run.path / "analysis"
    if (folder / "config.json").exists():  # a run, whose summary.json would be overwritten
        raise UserError(f"--out {folder}: the folder of a run; choose another folder")
    model = load_model(run)
    if beside is not None:
        load_model(beside)
    split = options.split or ("train" if options.data is not None else held_out_split(run))
    loaded, counted = _read(options, run, split)
    data = subsample(loaded, options.samples)
    if not 0 <= options.sample < len(data):
        raise UserError(f"--sample {options.sample}: the samples used are numbered 0 to {len(data) - 1}")
    parts, refused = _possible_parts(options, model, parts), closable_blocks(model).refused
    print_refused(refused)
    where = data_label(options.data, split)

    def depth() -> DepthUsage:
        return count_layers(run, counted, tolerance, folder)

    unfinished = folder / UNFINISHED
    write_atomic(unfinished, "")
    found = _analyse(options, run, beside, data, where, parts, depth, folder)
    name = None if loaded.whole else split
    summary = summarise({"run": str(run.path)}, options.data, name, len(data), found, refused)
    write_atomic(folder / "summary.json", json.dumps(summary, indent=1, ensure_ascii=False) + "\n")
    _draw(found, folder)
    try:
        unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise cannot_write(unfinished, error) from error
    if options.json:
        echo(json.dumps(summary, ensure_ascii=False))
    else:
        print_findings(found, folder)


def _possible_parts(options: AnalyzeOptions, model: Network, parts: list[str]) -> list[str]:
    """The parts that a network allows, with a note on stderr about those that are left out."""
    from verydeep.analysis import closable_layers
    from verydeep.models import ResidualConfig

    if options.only or model.highway_depth:
        return parts
    if isinstance(model.config, ResidualConfig) or closable_layers(model):
        left, why = [part for part in parts if part not in _OF_GATES], "no highway layers, so it has no gates"
    else:
        left, why = ["flow"], "no highway layers and no residual blocks, so there is nothing to close"
    missing = ", ".join(PARTS[part] for part in parts if part not in left)
    echo(f"verydeep: this network has {why}; left out: {missing}", file=sys.stderr)
    return left


def _read(options: AnalyzeOptions, run: Run, split: str) -> tuple[Split, UsageSamples]:
    """Read the samples to use, and those on which the layers used are counted."""
    from verydeep.report import usage_samples
    from verydeep.training import load_data, load_own, split_of

    with status(f"reading {options.data or run.config.data.source}"):
        if options.data is not None:
            other = load_data(run, options.data, split, options.root)
            return other, other_samples(subsample(other, options.samples), options.data)
        dataset = load_own(run, options.root)
        return split_of(run, dataset, split), usage_samples(run, dataset, options.split, options.samples)


def _analyse(
    options: AnalyzeOptions,
    run: Run,
    beside: Run | None,
    data: Split,
    where: str,
    parts: list[str],
    depth: Callable[[], DepthUsage],
    folder: Path,
) -> Findings:
    """Make every selected part, with a progress bar for each, and save each part as soon as it is complete."""
    from verydeep import analysis
    from verydeep.cli.views._bar import progress_bar
    from verydeep.training import RunData, run_objective

    model, objective = run.model, run_objective(run)
    classes = RunData.load(run).classes or None
    steps: dict[str, Callable[[Progress | None], Any]] = {
        "gates": lambda progress: analysis.gate_statistics(model, data, options.sample, progress),
        "routing": lambda progress: analysis.class_routing(model, data, classes, progress=progress),
        "lesions": lambda progress: analysis.lesion_study(model, data, where, progress, objective=objective),
        "flow": lambda progress: _flow(run, beside, data),
        "pairs": lambda progress: analysis.pair_lesions(model, data, where, progress, objective=objective),
    }
    found: dict[str, Any] = {}
    for part in parts:
        if part == "usage":
            found[part] = depth()  # which saves it, too
            continue
        with progress_bar(PARTS[part]) as progress:
            found[part] = steps[part](progress)
        analysis.save_findings(analysis.Findings(**{part: found[part]}), folder)
    return analysis.Findings(**found)


def _flow(run: Run, beside: Run | None, data: Split) -> tuple[SignalFlow, ...]:
    """Signal flow in the network before and after training, and in a plain network or another run's for comparison."""
    few = subsample(data, _FLOW_SAMPLES)
    networks = moments(run, _label(run))
    if beside is not None:
        label = _label(beside)
        networks |= moments(beside, beside.path.resolve().name if label == _label(run) else label)
    else:
        networks |= plain_beside(run.model, run.config.seed)
    from verydeep.analysis import signal_flow
    from verydeep.training import run_objective

    objective = run_objective(run)
    return tuple(signal_flow(network, few, name, objective=objective) for name, network in networks.items())


def moments(run: Run, label: str) -> dict[str, Network]:
    """The run's network at initialisation, if its seed determines that, and trained."""
    began = {}
    if "model" not in run.user_supplied:
        began = {f"{label}, at initialisation": _untrained(run.model.config, run.config.seed)}
    return began | {f"{label}, trained": run.model}


def plain_beside(model: Network, seed: int) -> dict[str, Network]:
    """An untrained plain network of the same depth and width; none for a convolutional network."""
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
    """Draw every result as PNG and SVG."""
    from verydeep.report import plot_findings

    plot_findings(found, folder)


def selected_parts(only: tuple[str, ...], pairs: bool) -> list[str]:
    """List the parts to make, in order."""
    names = only or tuple(name for name in PARTS if name != "pairs")
    for name in names:
        if name not in PARTS:
            raise unknown("part of the analysis", name, PARTS)
    return [name for name in PARTS if name in names or (pairs and name == "pairs")]
