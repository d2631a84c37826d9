"""The palettes of the light and the dark theme, and the context in which figures are drawn and saved."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from verydeep.errors import UserError, unknown
from verydeep.files import write_atomic

Theme = Literal["light", "dark"]
_FORMATS = ("png", "svg", "pdf")


@dataclass(frozen=True)
class Palette:
    """The colours of a theme.

    Attributes:
        paper: The background.
        ink: Text and axes.
        faint: Things without information, such as idle layers and blocks that a layer does not have.
        colours: The colours of curves: those of Okabe and Ito, which the colour-blind can tell apart, and also in grey
            in this order.
        sequential: The colour map of values from low to high: perceptually uniform and suitable for the colour-blind.
        diverging: The colour map of values around a middle, which has the brightness of the background.
    """

    paper: str
    ink: str
    faint: str
    colours: tuple[str, ...]
    sequential: str
    diverging: str

    @property
    def settings(self) -> dict[str, Any]:
        """The palette as rc parameters of matplotlib."""
        inked = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
        papered = ("figure.facecolor", "axes.facecolor", "savefig.facecolor")
        rest = {"hatch.color": self.faint, "axes.titlesize": "medium"}
        return dict.fromkeys(inked, self.ink) | dict.fromkeys(papered, self.paper) | rest


_OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_ON_BLACK = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#0072B2")
PALETTES: dict[str, Palette] = {
    "light": Palette("#ffffff", "#1a1a1a", "#d0d0d0", (*_OKABE_ITO, "#000000"), "viridis", "RdBu_r"),
    "dark": Palette("#16181d", "#e8e8e8", "#4a4d55", (*_ON_BLACK, "#ffffff"), "viridis", "berlin"),
}


@contextmanager
def saved_figure(path: Path, width: float, height: float, theme: Theme = "light") -> Iterator[tuple[Figure, Palette]]:
    """Yield a new figure and its palette, and save the figure when the body has drawn it.

    The figure belongs to no window and is not registered with pyplot. Equal figures give equal files.

    Args:
        path: The file to write; its suffix selects PNG, SVG or PDF.
        width: The width in inches.
        height: The height in inches.
        theme: Colours for a light or a dark background.
    """
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in _FORMATS:
        raise UserError(f"{path}: the name of a figure must end in .{', .'.join(_FORMATS)}")
    if theme not in PALETTES:
        raise unknown("theme", theme, PALETTES)
    palette = PALETTES[theme]
    settings: Any = {"svg.hashsalt": "verydeep", **palette.settings}
    with rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # names in scripts that the font lacks show as boxes
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        yield figure, palette
        dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix)
        write_atomic(path, lambda partial: figure.savefig(partial, format=suffix, dpi=150, metadata=dated))
