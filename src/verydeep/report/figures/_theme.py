"""Figures on paper: drawn without a screen, written whole, the look of light and dark in one place."""

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
    """Colours of a theme.

    Attributes:
        paper: Behind everything.
        ink: Text, axes, and what must be seen first.
        faint: What is there but says nothing: blocks a layer does not have, differences that may be noise.
        colours: Of curves: Okabe and Ito's, told apart by the colour-blind and, in this order, also in grey.
        sequential: The map of values from little to much: perceptually uniform, and fit for the colour-blind.
        diverging: The map of values on both sides of a middle; the middle has the brightness of the paper.
    """

    paper: str
    ink: str
    faint: str
    colours: tuple[str, ...]
    sequential: str
    diverging: str

    @property
    def settings(self) -> dict[str, Any]:
        """For matplotlib."""
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
    """A figure of so many inches to draw on, and its look; written when the drawing is complete.

    It belongs to no window and no global list. Equal figures give equal files.

    Args:
        path: The picture, by its suffix PNG, SVG or PDF.
        width: In inches.
        height: In inches.
        theme: On white or on black.
    """
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in _FORMATS:
        raise UserError(f"{path}: a picture's name must end in .{', .'.join(_FORMATS)}")
    if theme not in PALETTES:
        raise unknown("theme", theme, PALETTES)
    palette = PALETTES[theme]
    settings: Any = {"svg.hashsalt": "verydeep", **palette.settings}
    with rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a name in a script the font lacks shows as boxes
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        yield figure, palette
        dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix)
        write_atomic(path, lambda partial: figure.savefig(partial, format=suffix, dpi=150, metadata=dated))
