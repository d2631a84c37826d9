"""All figures of an analysis at once."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure

from verydeep.analysis import Findings
from verydeep.report.figures._gates import has_feature_maps, plot_feature_gates, plot_gates
from verydeep.report.figures._lesions import plot_depth_usage, plot_lesions, plot_pair_lesions
from verydeep.report.figures._routing import plot_class_distances, plot_routing
from verydeep.report.figures._signal_flow import plot_signal_flow
from verydeep.report.figures._theme import Theme

Draw = Callable[[Path, Theme], Figure]


def plot_findings(findings: Findings, folder: Path, theme: Theme = "light") -> list[Path]:
    """Draw every result that is present as PNG and SVG, and return the files.

    Args:
        findings: The results.
        folder: The folder for gates.png, gates.svg, routing.png, ...
        theme: Colours for a light or a dark background.
    """
    pictures = {folder / f"{name}.{suffix}": draw for name, draw in _figures_of(findings) for suffix in ("png", "svg")}
    for path, draw in pictures.items():
        draw(path, theme)
    return list(pictures)


def _figures_of(findings: Findings) -> list[tuple[str, Draw]]:
    gates, routing, usage = findings.gates, findings.routing, findings.usage
    found: list[tuple[str, Draw]] = []
    if gates:
        found.append(("gates", partial(plot_gates, gates)))
        found += [("feature-gates", partial(plot_feature_gates, gates))] if has_feature_maps(gates) else []
    if routing:
        found.append(("routing", lambda path, theme: plot_routing(routing, path, theme=theme)))
        found.append(("classes", partial(plot_class_distances, routing)))
    if lesions := findings.lesions:
        found.append(("lesions", lambda path, theme: plot_lesions(lesions, path, theme=theme)))
        found.append(("lesions-loss", lambda path, theme: plot_lesions(lesions, path, "loss", theme=theme)))
    if pairs := findings.pairs:
        found.append(("pairs", lambda path, theme: plot_pair_lesions(pairs, path, theme=theme)))
    found += [("usage", partial(plot_depth_usage, usage))] if usage else []
    found += [("flow", partial(plot_signal_flow, findings.flow))] if findings.flow else []
    return found
