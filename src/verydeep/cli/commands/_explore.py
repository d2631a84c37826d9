"""`verydeep explore`: a page in which a run's network answers for samples, drawings and rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from verydeep.cli._options import DataRoot, RunFolder, Threads, option, read_options
from verydeep.terminal import echo


@dataclass(frozen=True)
class ExploreOptions:
    """Write a page where one chooses or draws a sample, watches it travel through the layers, and closes layers.

    The page is one HTML file with the network inside. It needs no server and no network access, and can be mailed or
    put on a web site.
    """

    run: RunFolder
    out: Annotated[Path | None, option("FILE.html", aliases=("-o",))] = None
    """The file to write; by default, RUN/explore.html."""
    open: bool = True
    """Open the page in a browser; with --no-open, only write it."""
    samples: Annotated[int | None, option("N")] = None
    """Count the idle layers on N random samples; by default, on all, as verydeep analyze and verydeep report do."""
    root: DataRoot = None
    threads: Threads = None


OPTIONS = {"explore": ExploreOptions}


def main(arguments: list[str]) -> None:
    """Run the command."""
    options = read_options(ExploreOptions, "explore", arguments)
    from verydeep.cli._run_options import computing, load_model, open_run
    from verydeep.cli._status import status
    from verydeep.cli.views._bar import progress_bar
    from verydeep.errors import UserError

    if options.out is not None and options.out.suffix.lower() not in (".html", ".htm"):
        raise UserError(f"{options.out}: the name of the page must end in .html")
    run = open_run(options.run)
    path = options.out or run.path / "explore.html"
    with computing(options.threads):
        from verydeep.report import write_explore

        load_model(run)
        shown = write_explore(run, path, samples=options.samples, root=options.root, status=status, bar=progress_bar)
    echo(f"{path}: {path.stat().st_size / 1e6:.1f} MB, self-contained, with {len(shown.x)} samples")
    if options.open and not _open(path):
        echo("open it in a browser")


def _open(path: Path) -> bool:
    """Open a page in the user's browser; False if there is none that shows it."""
    import os
    import sys
    import webbrowser

    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False  # only browsers in a terminal, which would block it
    try:
        return webbrowser.open(path.resolve().as_uri())
    except webbrowser.Error:
        return False
