"""All figures of an analysis at once."""

import os
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

from verydeep.analysis import Findings
from verydeep.report.figures._gates import has_feature_maps, plot_feature_gates, plot_gates
from verydeep.report.figures._lesions import plot_depth_usage, plot_lesions, plot_pair_lesions
from verydeep.report.figures._prune import plot_prune
from verydeep.report.figures._routing import plot_class_distances, plot_routing
from verydeep.report.figures._signal_flow import plot_signal_flow
from verydeep.report.figures._theme import Theme, ThemedFigure


class Figures(dict[str, ThemedFigure]):
    """Figures by name; a notebook shows all of them."""

    def __repr__(self) -> str:
        return f"<Figures: {', '.join(self) or 'none'}>"

    def _repr_html_(self) -> str:
        pictures = ((name, b64encode(figure.png(72)).decode()) for name, figure in self.items())
        return "".join(f'<p><img alt="{name}" src="data:image/png;base64,{png}"></p>' for name, png in pictures)


def plot_findings(
    findings: Findings, folder: str | os.PathLike[str] | None = None, *, theme: Theme = "light"
) -> Figures:
    """Draw every result that is present.

    Args:
        findings: The results.
        folder: The folder for gates.png, gates.svg, routing.png, ...; by default, no files are written.
        theme: Colours for a light or a dark background.

    Returns:
        The figures by name: gates, routing, lesions, ...

    Example:
        >>> from verydeep.analysis import Findings, lesion_study
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> from verydeep.report import plot_findings
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> plot_findings(Findings(lesions=lesion_study(model, data.test)), "figures")
        <Figures: lesions, lesions-loss>
    """
    figures = Figures()
    for name, figure in _draw_each(findings, theme):
        figures[name] = figure
        if folder is not None:
            for suffix in ("png", "svg"):
                figure.save(Path(folder) / f"{name}.{suffix}")
    return figures


def _draw_each(findings: Findings, theme: Theme) -> Iterator[tuple[str, ThemedFigure]]:
    if findings.gates:
        yield "gates", plot_gates(findings.gates, theme=theme)
        if has_feature_maps(findings.gates):
            yield "feature-gates", plot_feature_gates(findings.gates, theme=theme)
    if findings.routing:
        yield "routing", plot_routing(findings.routing, theme=theme)
        yield "classes", plot_class_distances(findings.routing, theme=theme)
    if findings.lesions:
        yield "lesions", plot_lesions(findings.lesions, theme=theme)
        yield "lesions-loss", plot_lesions(findings.lesions, metric="loss", theme=theme)
    if findings.pairs:
        yield "pairs", plot_pair_lesions(findings.pairs, theme=theme)
    if findings.usage:
        yield "usage", plot_depth_usage(findings.usage, theme=theme)
    if findings.flow:
        yield "flow", plot_signal_flow(findings.flow, theme=theme)
    if findings.prune:
        yield "prune", plot_prune(findings.prune, theme=theme)
