"""The benchmarks in one picture: how much longer others take, cost per layer and memory against depth."""

from pathlib import Path
from typing import Any

from verydeep.report._figure import COLOURS, new_figure, save_figure

_NAMES = {"eager": "eager PyTorch", "compiled": "torch.compile", "jax": "JAX"}


def plot_bench(results: dict[str, dict[str, Any]], path: Path) -> None:
    """Draw results of `verydeep bench`, by name."""
    rows = {name: result["times"] for name, result in results.items() if "times" in result}
    figure = new_figure(10, 3 + 0.22 * len(rows))
    grid = figure.add_gridspec(2, 2, width_ratios=(2, 1))
    _ratios(figure.add_subplot(grid[:, 0]), rows)
    depths = sorted((r for r in results.values() if "us_per_layer" in r), key=lambda r: r["depth"])
    _against_depth(figure.add_subplot(grid[0, 1]), depths, "us_per_layer", "microseconds per layer")
    _against_depth(figure.add_subplot(grid[1, 1]), depths, "megabytes", "peak memory, MB")
    save_figure(figure, path)


def _ratios(axes: Any, rows: dict[str, dict[str, Any]]) -> None:  # noqa: ANN401 - matplotlib's axes
    for colour, (key, label) in zip(COLOURS[1:], _NAMES.items(), strict=False):
        points = [(times[key], place) for place, times in enumerate(rows.values()) if key in times]
        if not points:
            continue
        ratios = [times["ratio"] for times, _ in points]
        spread = [[abs(t["ratio_quartiles"][i] - t["ratio"]) for t, _ in points] for i in (0, 2)]
        axes.errorbar(ratios, [at for _, at in points], xerr=spread, fmt="o", color=colour, label=label, markersize=4)
    axes.axvline(1, color=COLOURS[0], label="ours")
    axes.set(xlabel="time of a step, in ours", xscale="log", yticks=range(len(rows)), yticklabels=list(rows))
    axes.invert_yaxis()
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)


def _against_depth(axes: Any, depths: list[dict[str, Any]], key: str, label: str) -> None:  # noqa: ANN401
    for colour, recompute in zip(COLOURS, (False, True), strict=False):
        points = [(row["depth"], row[key]) for row in depths if row["recompute"] == recompute]
        if points:
            name = "computed again" if recompute else "all kept"
            axes.plot(*zip(*points, strict=True), "o-", color=colour, label=name)
            axes.legend(frameon=False)
    axes.set(xlabel="depth", ylabel=label, xscale="log", ylim=(0, None))
    axes.grid(alpha=0.3)
