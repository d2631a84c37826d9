"""The palettes of the light and the dark theme, and figures that keep theirs when they are saved or shown."""

import io
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from matplotlib import rc_context, rcdefaults, rcParams
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from verydeep.errors import UserError, unknown
from verydeep.files import write_atomic

Theme = Literal["light", "dark"]
FigurePath = str | os.PathLike[str] | None
_FORMATS = ("png", "svg", "pdf")
_DPI, _NOTEBOOK_DPI = 150, 72


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


class ThemedFigure(Figure):
    """A figure that keeps its theme whenever it is drawn, and shows itself in a notebook.

    It belongs to no window and is not registered with pyplot, so a notebook shows it once, as the value of its cell.
    """

    def __init__(self, width: float, height: float, settings: dict[str, Any]) -> None:
        super().__init__(figsize=(width, height), layout="constrained")
        self.settings = settings
        FigureCanvasAgg(self)

    def draw(self, renderer: RendererBase) -> None:
        """Draw with the colours of the theme: matplotlib creates some ticks only now, from the settings in force."""
        with _settings(self.settings):
            super().draw(renderer)

    def save(self, path: Path) -> None:
        """Write the figure as PNG, SVG or PDF, atomically; equal figures give equal files."""
        suffix = _suffix(path)
        dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix)
        with _settings(self.settings):
            write_atomic(path, lambda partial: self.savefig(partial, format=suffix, dpi=_DPI, metadata=dated))

    def png(self, dpi: int = _DPI) -> bytes:
        """The content of a PNG file of the figure."""
        buffer = io.BytesIO()
        with _settings(self.settings):
            self.savefig(buffer, format="png", dpi=dpi)
        return buffer.getvalue()

    def _repr_png_(self) -> bytes:
        return self.png(_NOTEBOOK_DPI)


@contextmanager
def themed_figure(
    path: FigurePath, width: float, height: float, theme: Theme = "light"
) -> Iterator[tuple[ThemedFigure, Palette]]:
    """Yield a new figure and its palette; when the body has drawn the figure, save it, unless `path` is None.

    Args:
        path: The file to write; its suffix selects PNG, SVG or PDF. None writes nothing.
        width: The width in inches.
        height: The height in inches.
        theme: Colours for a light or a dark background.
    """
    file = None if path is None else Path(path)
    if file is not None:
        _suffix(file)
    if theme not in PALETTES:
        raise unknown("theme", theme, PALETTES)
    palette = PALETTES[theme]
    settings: dict[str, Any] = {"svg.hashsalt": "verydeep", **palette.settings}
    with _settings(settings):
        figure = ThemedFigure(width, height, settings)
        yield figure, palette
    if file is not None:
        figure.save(file)


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in _FORMATS:
        raise UserError(f"{path}: the name of a figure must end in .{', .'.join(_FORMATS)}")
    return suffix


@contextmanager
def _settings(settings: Any) -> Iterator[None]:  # noqa: ANN401 - matplotlib lists every key
    fonts = {name: rcParams[name] for name in ("font.family", "font.sans-serif")}
    with rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # names in scripts that the font lacks show as boxes
        rcdefaults()  # not those of a matplotlibrc in the working directory, which could start LaTeX
        with rc_context(fonts | settings):
            yield
