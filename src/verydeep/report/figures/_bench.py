"""The benchmark figure: relative time of competitors, and time per layer and memory against depth."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

from verydeep.report.figures._theme import FigurePath, Palette, Theme, ThemedFigure, themed_figure

_NAMES = {"eager": "eager PyTorch", "compiled": "torch.compile", "jax": "JAX", "onnx": "ONNX Runtime"}


def plot_bench(results: dict[str, dict[str, Any]], path: FigurePath = None, *, theme: Theme = "light") -> ThemedFigure:
    """Draw results of `verydeep bench`.

    Args:
        results: The results by name.
        path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
        theme: Colours for a light or a dark background.
    """
    rows = {name: result["times"] for name, result in results.items() if "times" in result}
    depths = sorted((row for row in results.values() if "us_per_layer" in row), key=lambda row: row["depth"])
    with themed_figure(path, 11, 4 + 0.22 * len(rows), theme) as (figure, palette):
        grid = figure.add_gridspec(2, 2, width_ratios=(2, 1))
        _ratios(figure.add_subplot(grid[:, 0]), rows, palette)
        _against_depth(figure.add_subplot(grid[0, 1]), depths, "us_per_layer", "microseconds per layer", palette)
        _against_depth(figure.add_subplot(grid[1, 1]), depths, "megabytes", "peak memory, MB", palette)
    return figure


def _ratios(axes: Axes, rows: dict[str, dict[str, Any]], palette: Palette) -> None:
    axes.axvline(1, color=palette.colours[0], label="ours")
    for colour, (key, label) in zip(palette.colours[1:], _NAMES.items(), strict=False):
        points = [(times[key], place) for place, times in enumerate(rows.values()) if key in times]
        for times, place in points:  # the quartiles over rounds need not enclose the ratio of minima
            low, _, high = times["ratio_quartiles"]
            axes.plot([low, high], [place, place], color=colour, linewidth=1)
        if points:
            ratios, places = [times["ratio"] for times, _ in points], [place for _, place in points]
            axes.plot(ratios, places, "o", color=colour, markersize=4, label=label)
    axes.set(xlabel="time of a step, ours = 1", xscale="log", yticks=range(len(rows)), yticklabels=list(rows))
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.invert_yaxis()
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)


def _against_depth(axes: Axes, depths: list[dict[str, Any]], key: str, label: str, palette: Palette) -> None:
    for colour, recompute in zip(palette.colours, (False, True), strict=False):
        points = [(row["depth"], row[key]) for row in depths if row["recompute"] == recompute]
        if points:
            name = "recomputed activations" if recompute else "stored activations"
            axes.plot(*zip(*points, strict=True), "o-", color=colour, label=name)
            axes.legend(frameon=False)
    axes.set(xlabel="depth", ylabel=label, xscale="log")
    ticks = sorted({row["depth"] for row in depths})
    axes.set_xticks(ticks, [f"{depth:,}" for depth in ticks], rotation=30)
    axes.set_xticks([], minor=True)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
