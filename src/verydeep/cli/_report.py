"""`verydeep report`: one page about a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

if TYPE_CHECKING:
    from verydeep.report import Findings
    from verydeep.training import Run


@dataclass(frozen=True)
class Report:
    """Write one self-contained page about a run: how it trained, what its gates do, which of its layers it needs.

    What `verydeep analyze RUN` has found is shown; if nobody has looked yet, the analysis is made first.
    """

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The run's folder."""
    out: Annotated[Path | None, tyro.conf.arg(aliases=("-o",), metavar="FILE.html")] = None
    """The page; RUN/report.html unless given."""
    analysis: bool = True
    """Look inside the network; without it the page is about training only."""
    figures: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Also draw every figure as PNG and SVG into this folder."""
    theme: Literal["light", "dark"] = "light"
    """Of these figures; the page itself follows its reader's system."""
    root: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Where known datasets are kept; $VERYDEEP_DATA or the user's cache unless given."""
