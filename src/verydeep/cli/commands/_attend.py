"""`verydeep attend`: learn which feature maps a trained network attends to, and save the dasNet as a new run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from verydeep.cli._options import DataRoot, Json, RunFolder, Threads, option, read_options
from verydeep.errors import UserError
from verydeep.terminal import echo

if TYPE_CHECKING:
    from verydeep.analysis import Score
    from verydeep.training import Run


@dataclass(frozen=True)
class AttendOptions:
    """Learn a policy that weights the feature maps of a run's convolutional network over several passes (dasNet).

    The weights of the network stay fixed. The policy is learnt on the run's validation images by SNES, an evolution
    strategy, and the result is a new run that can be evaluated like any other.
    """

    run: RunFolder
    passes: Annotated[int, option("N")] = 3
    """How often the network looks again at an image."""
    generations: Annotated[int, option("N")] = 50
    """The number of generations; each takes (N + 1) x population passes over the images."""
    population: Annotated[int | None, option("N")] = None
    """The number of candidates per generation; by default, 4 + 3 log(size of the policy)."""
    images: Annotated[int, option("N")] = 128
    """The number of validation images per generation."""
    seed: Annotated[int, option("N")] = 0
    """Determines the candidates and the images."""
    folder: Annotated[Path | None, option("FOLDER")] = None
    """The new run's folder; by default, RUN-dasnet."""
    root: DataRoot = None
    threads: Threads = None
    json: Json = False


OPTIONS = {"attend": AttendOptions}


def main(arguments: list[str]) -> None:
    """Run the command."""
    options = read_options(AttendOptions, "attend", arguments)
    from verydeep.cli._run_options import computing, open_run

    run = open_run(options.run)
    with computing(options.threads):
        _attend(options, run)


def _attend(options: AttendOptions, run: Run) -> None:
    from verydeep.analysis import evaluate_model
    from verydeep.cli._run_options import load_model
    from verydeep.cli._status import status
    from verydeep.models import ConvNet
    from verydeep.training import Attention, EpochMetrics, derive_run, learn_attention, load_own, require_free_folder

    named = run.path if run.path.name not in ("", "..") else run.path.resolve()
    folder = options.folder or named.with_name(f"{named.name}-dasnet")
    require_free_folder(folder)
    network = load_model(run)
    if not isinstance(network, ConvNet):
        raise UserError(f"{run.path}: dasNet needs a convolutional network such as maxout-cifar or nin")
    with status(f"reading {run.config.data.source}"):
        dataset = load_own(run, options.root)
    if dataset.valid is None:
        raise UserError(f"{run.path} has no validation images to learn from; train with --data.validation 0.1")
    settings = Attention(options.passes, options.generations, options.population, options.images, seed=options.seed)

    def report(generation: int, loss: float) -> None:
        if not options.json:
            echo(f"generation {generation} of {settings.generations}: mean loss {loss:.4f}", flush=True)

    model = learn_attention(network, dataset.valid, settings, report)
    splits = {"valid": dataset.valid, "test": dataset.test}
    scores = {name: (evaluate_model(network, split), evaluate_model(model, split)) for name, split in splits.items()}
    measured = {
        f"{name}_{key}": getattr(after, key) for name, (_, after) in scores.items() for key in ("loss", "accuracy")
    }
    derive_run(run, folder, model, "attended", EpochMetrics.from_dict({"epoch": 0, **measured}))
    _print(options, scores, folder)


def _print(options: AttendOptions, scores: dict[str, tuple[Score, Score]], folder: Path) -> None:
    if options.json:
        found = {name: {"before": before.accuracy, "after": after.accuracy} for name, (before, after) in scores.items()}
        echo(json.dumps(found | {"folder": str(folder)}))
        return
    from verydeep.cli._console import console, print_line, right_aligned_table

    table = right_aligned_table("accuracy", "before", "after")
    names = {"valid": "validation images, which the policy was learnt on", "test": "test images"}
    for name, (before, after) in scores.items():
        table.add_row(names[name], before.text, after.text)
    console.print(table)
    print_line(f"the network with its policy is the run {folder}")
