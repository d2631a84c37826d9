"""`verydeep demo`: how deep a network must be for MNIST, or for the small digits, in about three minutes."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

from verydeep.cli._options import DataRoot, option, read_options
from verydeep.cli._status import load_torch
from verydeep.errors import UserError
from verydeep.terminal import echo
from verydeep.words import named_score

if TYPE_CHECKING:
    from verydeep.depth import DepthAnswer

_MINUTES = 2.5
_NEXT = """Try next (after make: . .venv/bin/activate):
  verydeep depth FILE.csv --target COLUMN
      the same question for your own table, or a folder of images
  verydeep report {network}
      what the layers of the recommended network do
  verydeep train {data} --depth 100 --lr 0.1
      a network twice as deep
  verydeep depth {data} --minutes 30
      a longer look"""


@dataclass(frozen=True)
class DemoOptions:
    """Find out how deep a network must be for MNIST, in about three minutes.

    Highway and plain networks of 0 to 50 layers are trained and compared; the page shows the result.
    """

    data: Annotated[str | None, option("NAME")] = None
    """The dataset, mnist or digits; by default, mnist if it is available."""
    minutes: Annotated[float | None, option("N")] = None
    """How long it may take; by default, 2.5 minutes, or what a slow machine needs."""
    folder: Annotated[Path, option("FOLDER")] = Path("runs/demo")
    """Each demo has a new folder inside this one; one that was stopped is continued."""
    root: DataRoot = None


OPTIONS = {"demo": DemoOptions}


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = read_options(DemoOptions, "demo", arguments)
    load_torch()
    from verydeep.depth import DepthInterrupted, how_deep, make_depth_progress

    data = options.data or _choose_data(options.root)
    if data not in ("mnist", "digits"):
        raise UserError(f"the demo is for mnist or digits; for other data: verydeep depth {quote(data)}")
    folder = next(
        folder for number in count(1) if not ((folder := options.folder / str(number)) / "depth.json").exists()
    )
    echo(f"How deep must a network be for {data}?", flush=True)
    try:
        progress = make_depth_progress(quiet=False)
        answer = how_deep(
            data,
            folder=folder,
            minutes=_MINUTES if options.minutes is None else options.minutes,
            extend=options.minutes is None,
            root=options.root,
            progress=progress,
        )
    except DepthInterrupted:
        echo("verydeep: interrupted and saved; the same command continues", file=sys.stderr)
        return 130
    _print(answer, folder, data)
    return 0


def _choose_data(root: Path | None) -> str:
    """MNIST if it is available, otherwise the digits, and why."""
    from verydeep.data import load_dataset

    echo("Looking for MNIST ...", flush=True)
    try:
        load_dataset("mnist", root)
    except UserError as error:
        first, *rest = str(error).splitlines()
        reasons = [line.removeprefix("  - ") for line in rest if line.startswith("  - ")]
        why = f"{first} {'; '.join(reasons)}".strip()
        echo(f"MNIST is not available: {why}\nUsing the small digits that come with scikit-learn instead.", flush=True)
        return "digits"
    return "mnist"


def _print(answer: DepthAnswer, folder: Path, data: str) -> None:
    picture = folder / "depth.png"
    answer.plot(picture)
    echo(f"\n{answer.sentence}")
    if answer.disagreement:
        echo(answer.disagreement)
    if (compared := _compare_deepest(answer)) is not None:
        echo(compared)
    echo("This is only a first look: few seeds, few epochs, few settings.")
    echo(f"\nThe page:    {folder / 'depth.html'}\nThe picture: {picture}")
    if answer.network is not None:
        network = folder / answer.network.path
        echo(f"The network: {network}\n")
        echo(_NEXT.format(data=data, network=quote(str(network))))


def _compare_deepest(answer: DepthAnswer) -> str | None:
    """The deepest highway and plain networks in a sentence."""
    deepest = max(point.depth for point in answer.points)
    highway, plain = answer.point(deepest, "highway"), answer.point(deepest, "plain")
    if deepest < 2 or highway is None or plain is None:
        return None
    scores = [named_score(answer.measure, point.score) for point in (highway, plain)]
    return (
        f"With {deepest} layers, highway networks reach {scores[0]} on held-out data, and plain networks {scores[1]}."
    )
