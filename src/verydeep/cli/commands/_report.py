"""`verydeep report`: one page about a run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from verydeep.cli._options import read_options

if TYPE_CHECKING:
    from verydeep.analysis import Findings
    from verydeep.training import Run

_TRAINING_ONLY = "Nobody has looked inside this network: the report was made without an analysis."
_NO_HIGHWAYS = "This network has no highway layers, so there are no gates to look at and no layers to close."
_NO_WEIGHTS = "There are no weights to look at: no epoch has been completed without diverging."
_STALE = "Training went on after the analysis: the figures below the curves are of earlier weights."
_OWN = "This network is a module of its own, so only a program can look inside it (verydeep.analysis)."
_OWN_DATA = (
    "It was trained on data given in Python: verydeep analyze RUN --data PATH looks inside, then make this page."
)


@dataclass(frozen=True)
class ReportOptions:
    """Write one self-contained page about a run: how it trained, what its gates do, which of its layers it needs.

    What `verydeep analyze RUN` has found is shown. If nobody has looked yet, the analysis is made first.
    """

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The run's folder."""
    out: Annotated[Path | None, tyro.conf.arg(aliases=("-o",), metavar="FILE.html")] = None
    """The page; RUN/report.html unless given."""
    analysis: bool = True
    """Look inside the network; with --no-analysis, the page is about training only."""
    root: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Where known datasets are kept, for an analysis; $VERYDEEP_DATA or the user's cache unless given."""


def main(arguments: list[str]) -> None:
    """Run the command."""
    options = read_options(ReportOptions, "report", arguments)
    from verydeep.errors import UserError
    from verydeep.report import write_report
    from verydeep.training import Run

    path = options.out or options.run / "report.html"
    if path.suffix.lower() not in (".html", ".htm"):
        raise UserError(f"{path}: a report's name must end in .html")
    run = Run.load(options.run)
    findings, note = _look_inside(run, options.root) if options.analysis else (None, _TRAINING_ONLY)
    write_report(run, path, findings, note)
    print(f"{path} has {path.stat().st_size / 1e3:,.0f} kB and needs nothing else; open it in a browser")


def _look_inside(run: Run, root: Path | None) -> tuple[Findings | None, str]:
    """What was found, or why there is nothing to find."""
    from verydeep.analysis import Findings, load_findings

    if not run.is_network:
        return None, _OWN
    if not (run.path / "model.safetensors").exists():
        return None, _NO_WEIGHTS
    folder = run.path / "analysis"
    found = load_findings(folder)
    if replace(found, prune=None) == Findings():  # pruning alone says too little
        if run.model.highway_depth == 0:
            return None, _NO_HIGHWAYS
        if "dataset" in run.user_supplied:
            return None, _OWN_DATA
        from verydeep.cli.commands import _analyze

        _analyze.main([str(run.path), *(() if root is None else ("--root", str(root)))])
        found = load_findings(folder)
    return found, _STALE if _is_stale(run) else ""


def _is_stale(run: Run) -> bool:
    """Whether training went on after the analysis, or after a part of it that was not made again."""
    weights, found = run.path / "model.safetensors", list((run.path / "analysis").glob("*.npz"))
    return weights.exists() and weights.stat().st_mtime > min(file.stat().st_mtime for file in found)
