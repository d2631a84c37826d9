"""The size of activations and gradients, layer by layer."""

from collections.abc import Sequence

import numpy as np

from verydeep.analysis import SignalFlow
from verydeep.report.figures._axes import LAYER, Array, add_legend, layer_ticks, style_axes
from verydeep.report.figures._theme import FigurePath, Theme, ThemedFigure, themed_figure

_STYLES = ("--", "-", ":", "-.")


def plot_signal_flow(
    flows: SignalFlow | Sequence[SignalFlow], path: FigurePath = None, *, theme: Theme = "light"
) -> ThemedFigure:
    """Draw the size of activations and gradients in every layer.

    A name such as "highway, trained" means a network and a moment: colours distinguish networks, line styles moments.

    Args:
        flows: One network at one moment, or several to compare.
        path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
        theme: Colours for a light or a dark background.

    Example:
        >>> from verydeep.analysis import signal_flow
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> from verydeep.report import plot_signal_flow
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> figure = plot_signal_flow(signal_flow(model, data.test, "highway, untrained"))
    """
    flows = [flows] if isinstance(flows, SignalFlow) else flows
    styles = curve_styles([flow.name for flow in flows])
    with themed_figure(path, 11, 4.2, theme) as (figure, palette):
        panels = figure.subplots(1, 2)
        for axes, kind in zip(panels, ("activation", "gradient"), strict=True):
            for flow, (colour, line) in zip(flows, styles, strict=True):
                values = positive(getattr(flow, kind))
                hue, style = palette.colours[colour % len(palette.colours)], _STYLES[line % len(_STYLES)]
                axes.plot(range(1, len(values) + 1), values, style, color=hue, label=flow.name)
            longest = max((len(flow.layers) for flow in flows), default=1)
            axes.set(yscale="log", xlabel=LAYER, xticks=layer_ticks(longest))
            style_axes(axes)
        panels[0].set(title="activations, forward", ylabel="root mean square of the layer's output")
        panels[1].set(title="gradients, backward", ylabel="root mean square of the loss's gradient")
        if any(flow.name for flow in flows):
            add_legend(panels[0])
    return figure


def curve_styles(names: Sequence[str]) -> list[tuple[int, int]]:
    """Number the network, for its colour, and the moment, for its line style, of each "network, moment"."""
    parts = [name.partition(", ")[::2] for name in names]
    networks, moments = ([*dict.fromkeys(part[i] for part in parts)] for i in (0, 1))
    return [(networks.index(network), moments.index(moment)) for network, moment in parts]


def positive(values: Array) -> Array:
    """Replace what a logarithmic axis cannot show by NaN; a gradient of exactly 0 leaves a gap."""
    return np.where(values > 0, values, np.nan)
