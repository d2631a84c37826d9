"""`verydeep analyze` for networks that are not runs: lesions, layers used, signal flow and a page about them."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verydeep.cli._other_models import ModelWithData, load_checkpoint, load_own_model, try_objective
from verydeep.errors import UserError
from verydeep.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Callable

    from verydeep.analysis import Findings, FoundBlocks, Progress
    from verydeep.cli.commands._analyze import AnalyzeOptions

_FEW = 500  # samples for the signal flow


def analyze_other(options: AnalyzeOptions, parts: list[str], tolerance: float) -> None:
    """Analyse the network that --model or --hf names, save the results and print them.

    Args:
        options: The options of the command.
        parts: The parts to make.
        tolerance: The largest loss of accuracy allowed when idle layers are closed.
    """
    from torch import get_num_threads

    from verydeep.cli._console import print_line
    from verydeep.cli._next_analysis import NOTHING_TO_CLOSE, analyze_command, next_steps, removal_code
    from verydeep.cli._status import status
    from verydeep.cli.views._analyze import print_findings, summarise
    from verydeep.files import write_atomic
    from verydeep.report import plot_findings, write_model_report

    folder = options.out or Path("analysis")
    if options.model is not None:
        if options.text is not None:
            raise UserError("--text is for --hf; give --model its data with --data, or return batches")
        subject = load_own_model(options.model, options.data, options.split, options.samples, options.root)
        network = {"model": subject.label}
    else:
        assert options.hf is not None
        if options.data is not None:
            raise UserError("--data is for a run or --model; a language model is measured on --text FILE")
        subject = load_checkpoint(options.hf, options.text, options.context, options.samples)
        network = {"hf": subject.label}
    blocks, parts = _closable(options, subject, parts)
    if options.model is not None:
        try_objective(options.model, subject)
    found = _analyse(options, subject, blocks, parts, tolerance, folder)
    page = folder / "report.html"
    summary = summarise(network, subject.where, None, subject.samples, found, blocks.refused)
    summary["threads"] = get_num_threads()
    summary["report"] = str(page)
    with status("drawing figures and the report"):
        write_atomic(folder / "summary.json", json.dumps(summary, indent=1, ensure_ascii=False) + "\n")
        plot_findings(found, folder)
        write_model_report(
            found,
            page,
            Path(subject.label).name,
            model=subject.model,
            blocks=blocks,
            command=analyze_command(options),
            next_steps=next_steps(options, blocks, found),
            removal=removal_code(options, blocks, found, folder),
            note="" if blocks else NOTHING_TO_CLOSE,
        )
    if options.json:
        echo(json.dumps(summary, ensure_ascii=False))
    else:
        print_findings(found, folder)
        print_line(f"{page}: {page.stat().st_size / 1e3:,.0f} kB, self-contained; open it in a browser")


def _closable(options: AnalyzeOptions, subject: ModelWithData, parts: list[str]) -> tuple[FoundBlocks, list[str]]:
    """The blocks of the network, and the parts that it allows, with a note on stderr about those that are left out."""
    from verydeep.analysis import Blocks, FoundBlocks, NoBlocksError, find_blocks, highway_layers, sample_inputs
    from verydeep.cli.views._analyze import print_refused

    allowed = parts if highway_layers(subject.model) else [part for part in parts if part not in _OF_GATES]
    if options.only and len(allowed) < len(parts):
        missing = ", ".join(part for part in parts if part not in allowed)
        raise UserError(
            f"--only {missing}: this {type(subject.model).__name__} has no highway layers, so it has no gates"
        )
    example = sample_inputs(subject.model, subject.data, subject.objective)
    patterns: Blocks = options.blocks or None
    try:
        found = find_blocks(subject.model, example, patterns, options.level)  # type: ignore[arg-type]
    except NoBlocksError as error:
        if options.blocks or (options.only and set(parts) != {"flow"}):
            raise
        echo(f"verydeep: only the signal flow can be measured: {error}", file=sys.stderr)
        print_refused(error.refused)
        return FoundBlocks((), error.refused), ["flow"]
    print_refused(found.refused)
    return found, allowed


_OF_GATES = ("gates", "routing")


def _analyse(
    options: AnalyzeOptions,
    subject: ModelWithData,
    blocks: FoundBlocks,
    parts: list[str],
    tolerance: float,
    folder: Path,
) -> Findings:
    """Make every part, with a progress bar for each, and save each part as soon as it is complete."""
    from verydeep import analysis
    from verydeep.cli.commands._analyze import PARTS
    from verydeep.cli.views._bar import progress_bar

    model, data, where = subject.model, subject.data, subject.where
    common: dict[str, Any] = {"objective": subject.objective, "blocks": blocks or None}

    def usage(progress: Progress | None) -> Any:  # noqa: ANN401
        greedy = analysis.greedy_lesions(
            model, subject.measured, subject.measured_where, train=subject.train, progress=progress, **common
        )
        if subject.selected_on != "train":
            greedy = replace(greedy, training=None, selected_on=subject.selected_on)
        return analysis.depth_usage(greedy, tolerance)

    def flow(progress: Progress | None) -> Any:  # noqa: ANN401
        few = analysis.some_samples(data, _FEW, objective=subject.objective)
        return (analysis.signal_flow(model, few, Path(subject.label).name, progress, **common),)

    steps: dict[str, Callable[[Progress | None], Any]] = {
        "gates": lambda progress: analysis.gate_statistics(model, data, options.sample, progress),
        "routing": lambda progress: analysis.class_routing(model, data, progress=progress),
        "lesions": lambda progress: analysis.lesion_study(model, data, where, progress, **common),
        "usage": usage,
        "flow": flow,
        "pairs": lambda progress: analysis.pair_lesions(model, data, where, progress, **common),
    }
    found: dict[str, Any] = {}
    for part in parts:
        with progress_bar(PARTS[part]) as progress:
            found[part] = steps[part](progress)
        analysis.save_findings(analysis.Findings(**{part: found[part]}), folder)
    return analysis.Findings(**found)
