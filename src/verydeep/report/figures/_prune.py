"""A network before and after its idle layers were removed."""

from matplotlib.ticker import PercentFormatter

from verydeep.analysis import PruneReport, split_name
from verydeep.report.figures._theme import FigurePath, Theme, ThemedFigure, themed_figure
from verydeep.words import MEASURES


def plot_prune(report: PruneReport, path: FigurePath = None, *, theme: Theme = "light") -> ThemedFigure:
    """Draw how much of a network is left after pruning, and what that costs in accuracy.

    Args:
        report: The measurements before and after pruning.
        path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
        theme: Colours for a light or a dark background.

    Example:
        >>> from verydeep.analysis import depth_usage, greedy_lesions, prune, prune_report
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> from verydeep.report import plot_prune
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> usage = depth_usage(greedy_lesions(model, data.test, "test"), tolerance=0.9)
        >>> figure = plot_prune(prune_report(model, prune(model, usage), usage, data.test))
    """
    slow, fast = report.latency
    rows: dict[str, tuple[float, float, str]] = {
        "highway layers": (len(report.layers), len(report.kept), "{:,}"),
        "parameters": (*report.parameters, "{:,}"),
        "multiply-adds per sample": (*report.multiply_adds, "{:,}"),
        f"time for {report.latency_batch} samples": (1e3 * slow, 1e3 * fast, "{:.2f} ms"),
    }
    with themed_figure(path, 7.5, 2.8, theme) as (figure, palette):
        axes = figure.add_subplot()
        axes.barh(range(len(rows)), 1, color=palette.faint, height=0.6)
        shares = [after / before if before else 0 for before, after, _ in rows.values()]
        axes.barh(range(len(rows)), shares, color=palette.colours[0], height=0.6)
        for place, (before, after, style) in enumerate(rows.values()):
            text = f"{style.format(before)} → {style.format(after)}"
            axes.text(1.02, place, text, va="center", transform=axes.get_yaxis_transform())
        axes.set(
            xlim=(0, max(1, *shares)), yticks=range(len(rows)), yticklabels=list(rows), xlabel="left after pruning"
        )
        axes.xaxis.set_major_formatter(PercentFormatter(1))
        axes.invert_yaxis()
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.set_title(_accuracies(report), parse_math=False)
    return figure


def _accuracies(report: PruneReport) -> str:
    before, after = report.test or report.chosen
    where = "test set" if report.test else split_name(report.split)
    name = MEASURES.get(report.measure, report.measure)
    return f"{name}{f', {where}' if where else ''}: {before.text} → {after.text}"
