"""`verydeep prune`: remove the idle layers of a run's network and save the rest as a new run."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from verydeep.cli._options import DataRoot, Json, RunFolder, Threads, option, read_options
from verydeep.errors import UserError
from verydeep.terminal import echo

if TYPE_CHECKING:
    from verydeep.analysis import DepthUsage, PruneReport
    from verydeep.data import Dataset
    from verydeep.models import Network
    from verydeep.training import EpochMetrics, Run, TrainConfig


@dataclass(frozen=True)
class PruneOptions:
    """Remove the layers that a run's network does not use, and measure the effect on accuracy, size and speed.

    The layers used are those that `verydeep analyze` reports; if it has counted them already, its result is used. For a
    regression, R2 takes the place of the accuracy.
    """

    run: RunFolder
    tolerance: Annotated[str, option("PERCENT")] = "0.1%"
    """The largest loss of accuracy allowed, such as 0.1% or 0.001; one standard error is always allowed."""
    split: Annotated[Literal["train", "valid"] | None, option("train|valid")] = None
    """Count the layers used on this split; by default, on the validation data if there is any, or else the training
    data."""
    data: Annotated[str | None, option("PATH_OR_NAME")] = None
    """Count them on other data, prepared as the training data was; by default, on the run's own."""
    samples: Annotated[int | None, option("N")] = None
    """Count them on N random samples; by default, on all."""
    fine_tune: Annotated[int | None, option("EPOCHS")] = None
    """Then train the smaller network for EPOCHS epochs; by default, it is not trained."""
    lr: Annotated[float | None, option("LR")] = None
    """The learning rate of fine-tuning, which falls to 0; by default, a tenth of the run's."""
    folder: Annotated[Path | None, option("FOLDER")] = None
    """The new run's folder; by default, RUN-pruned, or runs/NAME-pruned for pretrained:NAME."""
    root: DataRoot = None
    threads: Threads = None
    json: Json = False


OPTIONS = {"prune": PruneOptions}


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = read_options(PruneOptions, "prune", arguments)
    from verydeep.cli._run_options import computing, open_run, parse_tolerance

    tolerance = parse_tolerance(options.tolerance)
    if options.lr is not None and options.fine_tune is None:
        raise UserError("--lr is for fine-tuning: add --fine-tune EPOCHS")
    run = open_run(options.run)
    with computing(options.threads):
        return _prune_run(options, run, tolerance)


def _prune_run(options: PruneOptions, run: Run, tolerance: float) -> int:
    from verydeep.cli._run_options import load_model
    from verydeep.training import Interrupted, require_free_folder

    folder = options.folder or _default_folder(options.run, run.path)
    require_free_folder(folder)
    tuning = tuning_config(run, options) if options.fine_tune is not None else None
    model = load_model(run)
    try:
        report = _prune(options, run, model, folder, tolerance, tuning)
    except Interrupted as stopped:
        echo(f"verydeep: {stopped}", file=sys.stderr)
        return 130
    _print(options, report, folder)
    return 0


def _default_folder(given: Path, run: Path) -> Path:
    """The folder RUN-pruned, even if RUN is given as . or ..; that of a pretrained network is in runs."""
    from verydeep.training import PREFIX

    if str(given).startswith(PREFIX):
        return Path("runs") / f"{str(given).removeprefix(PREFIX)}-pruned"
    named = run if run.name not in ("", "..") else run.resolve()
    return named.with_name(f"{named.name}-pruned")


def _prune(
    options: PruneOptions, run: Run, model: Network, folder: Path, tolerance: float, tuning: TrainConfig | None
) -> PruneReport:
    from verydeep.analysis import evaluate_model, prune, prune_report
    from verydeep.cli._run_options import subsample
    from verydeep.cli._run_usage import count_layers, other_samples
    from verydeep.cli._status import status
    from verydeep.report import usage_samples
    from verydeep.training import (
        Interrupted,
        derive_run,
        derived_config,
        load_data,
        load_own,
        make_progress,
        run_objective,
        train,
    )

    with status(f"reading {options.data or run.config.data.source}"):
        if options.data is None:
            dataset: Dataset | None = load_own(run, options.root)
            assert dataset is not None
            samples = usage_samples(run, dataset, options.split, options.samples)
        else:
            dataset, split = None, options.split or "train"
            other = subsample(load_data(run, options.data, split, options.root), options.samples)
            samples = other_samples(other, options.data)
    test = None if dataset is None else dataset.test
    objective = run_objective(run)
    usage = count_layers(run, samples, tolerance, run.path / "analysis")
    _explain(options, usage)
    smaller = prune(model, usage)
    report = prune_report(model, smaller, usage, samples.measured, test, objective=objective)
    if tuning is None:
        derive_run(run, folder, smaller, "pruned", _metrics(report), lambda path: _save(report, run, path))
    else:
        config, quiet = derived_config(tuning, smaller), make_progress(options.json)
        try:
            tuned = train(
                config, folder, model=smaller, loaded=dataset, made_from=run, root=options.root, progress=quiet
            )
        except Interrupted:
            _save(report, run, folder)
            raise
        if test is not None and (folder / "model.safetensors").exists():  # missing if training diverged at once
            report = replace(report, tuned=evaluate_model(tuned.model, test, objective=objective))
        _save(report, run, folder)
    return report


def _explain(options: PruneOptions, usage: DepthUsage) -> None:
    """Say how many layers are used."""
    from verydeep.cli._console import print_line
    from verydeep.cli._run_usage import usage_lines

    if not options.json:
        for line in usage_lines(usage):
            print_line(line)


def tuning_config(run: Run, options: PruneOptions) -> TrainConfig:
    """The configuration of fine-tuning: as the run was trained, but at a smaller learning rate that falls to 0."""
    from verydeep.training import ScheduleConfig

    if "dataset" in run.user_supplied:
        raise UserError(f"{run.path} was trained on data given in Python; fine-tune it there: train(..., model=...)")
    config = run.config
    lr = config.optim.lr / 10 if options.lr is None else options.lr
    optim = replace(config.optim, lr=lr)
    assert options.fine_tune is not None
    distill = replace(config.distill, hint_epochs=0)  # hints serve the first epochs of an untrained network
    schedule = ScheduleConfig("cosine")
    return replace(config, optim=optim, schedule=schedule, distill=distill, epochs=options.fine_tune, patience=0)


def _metrics(report: PruneReport) -> EpochMetrics:
    """The only line of the new run's metrics."""
    from verydeep.training import EpochMetrics

    found = {"test": report.test} | ({report.split: report.chosen} if report.split in ("train", "valid") else {})
    measured: dict[str, Any] = {"epoch": 0}
    for split, scores in found.items():
        if scores is not None:
            measured |= {f"{split}_loss": scores[1].loss, f"{split}_{report.measure}": scores[1].accuracy}
    return EpochMetrics.from_dict(measured)


def _save(report: PruneReport, run: Run, folder: Path) -> None:
    from verydeep.analysis import Findings, save_findings, save_result
    from verydeep.files import write_atomic

    save_findings(Findings(prune=report), run.path / "analysis")
    save_result(report, folder / "prune.npz")
    write_atomic(folder / "prune.json", json.dumps(asdict(report), indent=1) + "\n")


def _print(options: PruneOptions, report: PruneReport, folder: Path) -> None:
    if options.json:
        echo(json.dumps(asdict(report) | {"folder": str(folder)}))
        return
    from verydeep.cli._console import console, print_line, right_aligned_table

    table = right_aligned_table("", "before", "after", "")
    for row in _rows(report):
        table.add_row(*row)
    console.print(table)
    if len(report.kept) == len(report.layers):
        print_line(f"every layer is needed to stay within the tolerance; a copy of the network is the run {folder}")
    else:
        print_line(f"the smaller network is the run {folder}")


def _rows(report: PruneReport) -> list[tuple[str, str, str, str]]:
    from verydeep.analysis import split_name
    from verydeep.words import MEASURES, score

    measure = MEASURES.get(report.measure, report.measure)
    (wide, narrow), (much, little), (slow, fast) = report.parameters, report.multiply_adds, report.latency
    rows = [("layers that can be closed", str(len(report.layers)), str(len(report.kept)), "")]
    for name, pair in ((report.split, report.chosen), ("test", report.test)):
        if pair is not None:
            before, after = pair
            change = after.accuracy - before.accuracy
            shown = ("+" if change >= 0 else "-") + score(report.measure, abs(change))
            rows.append((f"{measure}, {split_name(name)}", before.text, after.text, shown))
    if report.tuned is not None:
        rows.append((f"{measure}, test set, fine-tuned", "", report.tuned.text, ""))
    rows.append(("parameters", f"{wide:,}", f"{narrow:,}", f"{narrow / wide:.0%}"))
    rows.append(("multiply-adds", f"{much:,}", f"{little:,}", f"{little / max(much, 1):.0%}"))
    times = f"{slow * 1e3:.2f} ms", f"{fast * 1e3:.2f} ms", f"{slow / fast:.1f}x as fast"
    rows.append((f"a batch of {report.latency_batch}", *times))
    return rows
