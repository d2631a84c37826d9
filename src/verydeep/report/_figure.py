"""Figures on paper: drawn without a screen, written whole, the look in one place."""

import warnings
from pathlib import Path

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from verydeep.errors import UserError
from verydeep.files import write_whole

# Okabe and Ito's colours: told apart by the colour-blind, and in this order also in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_FORMATS = ("png", "svg", "pdf")


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of so many inches; it belongs to no window and no global list."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, path: Path) -> None:
    """Write the figure as its suffix says; equal figures give equal files."""
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in _FORMATS:
        raise UserError(f"{path}: a picture's name must end in .{', .'.join(_FORMATS)}")
    dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix)
    with rc_context({"svg.hashsalt": "verydeep"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a name in a script the font lacks shows as boxes
        write_whole(path, lambda partial: figure.savefig(partial, format=suffix, dpi=150, metadata=dated))
