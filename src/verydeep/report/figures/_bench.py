"""The benchmark figure: relative time of competitors, and time per layer and memory against depth."""

from collections.abc import Iterable
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from verydeep.report.figures._theme import FigurePath, Palette, Theme, ThemedFigure, themed_figure

_NAMES = {"eager": "eager PyTorch", "compiled": "torch.compile", "jax": "JAX", "onnx": "ONNX Runtime"}
_SYMBOLS = dict(zip(_NAMES, "osD^", strict=True))
_MODES = {"train": "training step", "infer": "inference"}
_USUAL = {"width": 50, "batch": 100}  # not repeated in every label

_Case = dict[str, Any]
_Ratios = dict[tuple[str, str], dict[str, dict[int, float]]]  # of a label and a mode, by competitor and threads


def plot_bench(results: dict[str, dict[str, Any]], path: FigurePath = None, *, theme: Theme = "light") -> ThemedFigure:
    """Draw results of `verydeep bench`.

    Each row is a network and each symbol a competitor; it is hollow for the smallest number of threads. Below are time
    per layer and memory against depth.

    Args:
        results: The results by name.
        path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
        theme: Colours for a light or a dark background.
    """
    ratios, threads = _by_network(result for result in results.values() if "times" in result)
    labels = list(dict.fromkeys(label for label, _ in ratios))
    depths = sorted((row for row in results.values() if "us_per_layer" in row), key=lambda row: row["depth"])
    height = 1.3 + 0.34 * max(len(labels), 3)
    with themed_figure(path, 9, height + 3, theme) as (figure, palette):
        parts: Any = figure.subfigures(2, 1, height_ratios=(height, 3))  # an array, which the type does not say
        upper, lower = parts
        upper.suptitle("How many times as long as verydeep the others take", fontsize="large")
        panels = upper.subplots(1, 2, sharex=True, sharey=True)
        for axes, mode in zip(panels, _MODES, strict=True):
            _ratio_panel(axes, mode, labels, ratios, palette)
        handles, title = _legend(ratios, palette), _explained(threads)
        upper.legend(handles=handles, title=title, loc="outside lower center", ncols=5, frameon=False)
        lower.suptitle("Training highway networks of width 50, one thread", fontsize="large")
        left, right = lower.subplots(1, 2)
        _against_depth(left, depths, "us_per_layer", "microseconds per layer", palette)
        _against_depth(right, depths, "megabytes", "peak memory, MB", palette)
        right.set_yscale("log")
        right.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        left.set_ylim(bottom=0)
    return figure


def _by_network(rows: Iterable[dict[str, Any]]) -> tuple[_Ratios, list[int]]:
    """The ratios to our time, and all thread counts."""
    found: _Ratios = {}
    threads = set()
    for row in rows:
        case = row["case"]
        threads.add(case["threads"])
        ratios = found.setdefault((_label(case), case["mode"]), {})
        for key in _NAMES.keys() & row["times"].keys():
            ratios.setdefault(key, {})[case["threads"]] = row["times"][key]["ratio"]
    return found, sorted(threads)


def _label(case: _Case) -> str:
    unusual = {name: f"{name} {case[name]}" for name, usual in _USUAL.items() if case[name] != usual}
    if case["kind"] == "named":
        label = case["network"]
    elif case["kind"] == "conv":
        label = f"{case['depth']} convolutions of {case['width']}, {case['side']}×{case['side']}"
    else:
        label = "" if case["kind"] == "highway" else f"{case['kind']}, "
        label += f"{case['depth']:,} layers"
    if case["kind"] in ("named", "conv"):
        unusual.pop("width", None)
    return ", ".join([label, *unusual.values()])


def _explained(threads: list[int]) -> str:
    usual = f"Width {_USUAL['width']}, batches of {_USUAL['batch']} unless the label says otherwise"
    if len(threads) < 2:
        return usual
    few, many = threads[0], threads[-1]
    return f"{usual}; hollow: {few} {'thread' if few == 1 else 'threads'}, filled: {many}"


def _ratio_panel(axes: Axes, mode: str, labels: list[str], ratios: _Ratios, palette: Palette) -> None:
    used = [key for key in _NAMES if any(key in found for found in ratios.values())]
    most = max((threads for found in ratios.values() for each in found.values() for threads in each), default=1)
    axes.axvline(1, color=palette.colours[0], linewidth=2)
    for number in range(0, len(labels), 2):
        axes.axhspan(number - 0.5, number + 0.5, color=palette.faint, alpha=0.25, linewidth=0)
    for place, label in enumerate(labels):
        for rank, key in enumerate(used):
            found = sorted(ratios.get((label, mode), {}).get(key, {}).items())
            values = [ratio for _, ratio in found]
            height = place + 0.26 * (rank - (len(used) - 1) / 2)
            colour = _colour(key, palette)
            axes.plot(values, [height] * len(values), "-", color=colour, linewidth=1.5)
            for threads, ratio in found:
                face = palette.paper if threads < most else colour
                axes.plot(ratio, height, _SYMBOLS[key], color=colour, markerfacecolor=face, markersize=5)
    axes.set(xscale="log", yticks=range(len(labels)), yticklabels=labels, ylim=(max(len(labels), 1) - 0.5, -0.5))
    axes.set_title(_MODES[mode], fontsize="large")
    axes.xaxis.set_major_locator(FixedLocator([1, 2, 5, 10, 20]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(axis="y", length=0, labelsize="medium")
    axes.grid(axis="x", alpha=0.4)
    axes.spines[["top", "right", "left"]].set_visible(False)


def _legend(ratios: _Ratios, palette: Palette) -> list[Line2D]:
    used = [key for key in _NAMES if any(key in found for found in ratios.values())]
    ours = Line2D([], [], color=palette.colours[0], linewidth=2, label="verydeep")
    others = [Line2D([], [], marker=_SYMBOLS[key], color=_colour(key, palette), label=_NAMES[key]) for key in used]
    return [ours, *others]


def _colour(key: str, palette: Palette) -> str:
    return palette.colours[1 + list(_NAMES).index(key)]


def _against_depth(axes: Axes, depths: list[dict[str, Any]], key: str, label: str, palette: Palette) -> None:
    for colour, recompute in zip(palette.colours, (False, True), strict=False):
        points = [(row["depth"], row[key]) for row in depths if row["recompute"] == recompute]
        if points:
            name = "recomputed activations" if recompute else "stored activations"
            axes.plot(*zip(*points, strict=True), "s--" if recompute else "o-", color=colour, label=name)
            axes.legend(frameon=False)
    axes.set(xlabel="layers", ylabel=label, xscale="log")
    ticks = sorted({row["depth"] for row in depths})
    axes.set_xticks(ticks, [f"{depth:,}" for depth in ticks])
    axes.set_xticks([], minor=True)
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
