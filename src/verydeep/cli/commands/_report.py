"""`verydeep report`: a self-contained HTML page about a run."""

from __future__ import annotations

import errno
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from verydeep.cli._options import DataRoot, RunFolder, Threads, option, read_options
from verydeep.terminal import echo

if TYPE_CHECKING:
    from verydeep.analysis import Findings
    from verydeep.training import Evaluation, Run

_NO_ANALYSIS = "This report was made without an analysis, so it covers training only."
_NO_HIGHWAYS = "This network has no highway or residual layers, so it has no gates to show and no layers to close."
_NO_WEIGHTS = "There are no weights to analyse: no epoch has been completed without diverging."
_OUTDATED = "Training continued after the analysis: the figures below the training curves show earlier weights."
_OWN_MODEL = "This network is your own module, so it can only be analysed in Python (verydeep.analysis)."
_OWN_DATA = (
    "This network was trained on data given in Python: run verydeep analyze RUN --data PATH, then make this page again."
)
# of data; after other errors, a part of the page would be missing by chance
_GONE = {errno.ENOENT, errno.ENOTDIR, errno.EACCES}


@dataclass(frozen=True)
class ReportOptions:
    """Write a self-contained HTML page about a run: how it trained, what its gates do, which layers it needs.

    The page shows the results of `verydeep analyze RUN`; if there are none yet, the analysis is made first.
    """

    run: RunFolder
    out: Annotated[Path | None, option("FILE.html", aliases=("-o",))] = None
    """The file to write; by default, RUN/report.html."""
    analysis: bool = True
    """Include the analysis; with --no-analysis, the page covers training only."""
    root: DataRoot = None
    threads: Threads = None


OPTIONS = {"report": ReportOptions}


def main(arguments: list[str]) -> None:
    """Run the command."""
    options = read_options(ReportOptions, "report", arguments)
    from verydeep.cli._run_options import computing, open_run
    from verydeep.cli._status import status
    from verydeep.errors import UserError

    if options.out is not None and options.out.suffix.lower() not in (".html", ".htm"):
        raise UserError(f"{options.out}: the name of a report must end in .html")
    run = open_run(options.run)
    path = options.out or run.path / "report.html"
    with computing(options.threads):
        from verydeep.report import write_report

        findings, note = _analysis_of(run, options.root) if options.analysis else (None, _NO_ANALYSIS)
        evaluation, split = _evaluation_of(run, options.root) if options.analysis else (None, "test")
        with status("drawing the report"):
            write_report(run, path, findings, note, evaluation=evaluation, split=split)
    echo(f"{path}: {path.stat().st_size / 1e3:,.0f} kB, self-contained; open it in a browser")


def _analysis_of(run: Run, root: Path | None) -> tuple[Findings | None, str]:
    """Load the analysis, making it first if necessary, with a note to the reader if it is missing or out of date."""
    from verydeep.analysis import Findings, closable_layers, load_findings
    from verydeep.models import ResidualConfig

    if not run.is_network:
        return None, _OWN_MODEL
    if not (run.path / "model.safetensors").exists():
        return None, _NO_WEIGHTS
    folder = run.path / "analysis"
    from verydeep.cli.commands import _analyze

    found = load_findings(folder)
    is_unfinished = (folder / _analyze.UNFINISHED).exists()  # the command that made it was killed
    if is_unfinished or replace(found, prune=None, usage=None) == Findings():  # pruning alone says too little
        if not closable_layers(run.model) and not isinstance(run.model.config, ResidualConfig):
            return None, _NO_HIGHWAYS
        if "dataset" in run.user_supplied:
            return None, _OWN_DATA
        _analyze.main([str(run.path), *(() if root is None else ("--root", str(root)))])
        found = load_findings(folder)
    return found, _OUTDATED if _is_outdated(run) else ""


def _evaluation_of(run: Run, root: Path | None) -> tuple[Evaluation | None, str]:
    """Evaluate the network on held-out data: the test set, unless the run never looks at it; None if that cannot be."""
    from verydeep.cli._run_options import evaluate_run, read_samples
    from verydeep.errors import UserError

    split = "valid" if run.config.evaluate_test == "never" else "test"
    if not run.is_network or not (run.path / "model.safetensors").exists():
        return None, split
    try:
        return evaluate_run(run, read_samples(run, None, split, root)), split
    except UserError as error:  # the data was given in Python, has changed or is gone; the analysis can still be shown
        if isinstance(error.__cause__, OSError) and error.__cause__.errno not in _GONE:
            raise
        echo(f"verydeep: the page does not say how good the predictions are: {error}", file=sys.stderr)
        return None, split


def _is_outdated(run: Run) -> bool:
    """Whether the weights are newer than the analysis or any part of it."""
    weights, found = run.path / "model.safetensors", list((run.path / "analysis").glob("*.npz"))
    return weights.exists() and weights.stat().st_mtime > min(file.stat().st_mtime for file in found)
