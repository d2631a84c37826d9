"""How many layers a run's network uses, for the commands that count them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from verydeep.cli._run_options import data_label
from verydeep.terminal import echo

if TYPE_CHECKING:
    from pathlib import Path

    from verydeep.analysis import DepthUsage
    from verydeep.data import Split
    from verydeep.report import UsageSamples
    from verydeep.training import Run


def other_samples(data: Split, source: str) -> UsageSamples:
    """Other data than the run's own, for both the order and the curve."""
    from verydeep.report import UsageSamples

    return UsageSamples(data, data_label(source, ""), None)


def count_layers(run: Run, samples: UsageSamples, tolerance: float, folder: Path) -> DepthUsage:
    """Count the layers that a run's network uses, with a progress bar, or read an earlier result, with a note."""
    from verydeep.cli.views._bar import progress_bar
    from verydeep.report import find_usage

    def note(message: str) -> None:
        echo(f"verydeep: {message}", file=sys.stderr)

    return find_usage(run, samples, tolerance, folder, bar=progress_bar, note=note)


def usage_lines(usage: DepthUsage) -> list[str]:
    """The layers used in sentences: on held-out data, and on the training samples, as in the paper."""
    from verydeep.analysis import samples_of
    from verydeep.words import MEASURES, score

    greedy, measure = usage.greedy, usage.greedy.measure
    before, after = (score(measure, 1 - greedy.error[closed]) for closed in (0, len(usage.idle)))
    lines = [
        f"Layers used: {usage.count_text}, measured on {samples_of(greedy.samples, greedy.split)}; "
        f"{MEASURES.get(measure, measure)} {before} -> {after}, allowed: {usage.within_text}"
    ]
    if usage.training is not None:
        beside = usage.training
        lines.append(f"On {samples_of(beside.greedy.samples, 'train')}, as in the paper: {beside.count_text}")
    elif greedy.split == "train":
        lines.append("The run holds out no validation data, so this was measured on the data it was trained on")
    return lines
