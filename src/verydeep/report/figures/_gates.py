"""Transform gates, as in the paper's Figure 2, and the gates of feature maps at every position."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import CenteredNorm, Normalize, PowerNorm

from verydeep.analysis import GateStatistics
from verydeep.errors import UserError
from verydeep.report.figures._axes import LAYER, Array, add_colour_bar, draw_heat_map, layer_grid, with_names
from verydeep.report.figures._theme import FigurePath, Palette, Theme, ThemedFigure, themed_figure

GATE_TICKS = (0, 0.05, 0.2, 0.5, 1)
_TITLES = ("transform gate biases", "mean transform gate outputs", "transform gate outputs, one sample",
           "block outputs, the same sample")  # fmt: skip
_MOST_LAYERS, _MOST_MAPS = 12, 10  # in the figure of feature maps


def plot_gates(
    gates: GateStatistics | Sequence[tuple[str, GateStatistics]], path: FigurePath = None, *, theme: Theme = "light"
) -> ThemedFigure:
    """Draw Figure 2: biases, mean gate outputs, and the gate and block outputs of one sample, layers by blocks.

    Biases are coloured around their initial value, if they all had the same. Feature maps are averaged over positions;
    blocks that a layer does not have are hatched.

    Args:
        gates: The statistics of one network, or of several with their names; each gets a row.
        path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
        theme: Colours for a light or a dark background.

    Example:
        >>> from verydeep.analysis import gate_statistics
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> from verydeep.report import plot_gates
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> figure = plot_gates(gate_statistics(model, data.test), "gates.png")
    """
    networks = with_names(gates)
    with themed_figure(path, 13, 0.4 + 4.6 * len(networks), theme) as (figure, palette):
        panels = figure.subplots(len(networks), 4, squeeze=False)
        for row, (name, found) in zip(panels, networks, strict=True):
            _draw_network(list(row), found, palette)
            row[0].set_ylabel(f"{name}\n{LAYER}" if name else LAYER, parse_math=False)
        for axes, title in zip(panels[0], _TITLES, strict=True):
            axes.set_title(title)
        for axes in panels[-1]:
            axes.set_xlabel("feature map (from 1)" if has_feature_maps(networks[-1][1]) else "block (from 1)")
    return figure


def gate_scale() -> Normalize:
    """The colour scale of gate outputs, from 0 to 1, which spreads the small values where most gates are."""
    return PowerNorm(0.5, 0, 1)


def common_initial_bias(gates: GateStatistics) -> float | None:
    """The initial value of all gate biases, if they had the same and it is known."""
    starts = np.unique(np.concatenate([bias.ravel() for bias in gates.initial_bias]))
    return float(starts[0]) if len(starts) == 1 and np.isfinite(starts[0]) else None


def largest_deviation(values: Array, middle: float = 0) -> float:
    """The largest distance from the middle, for a symmetric colour scale; 1 if all values equal the middle."""
    finite = np.abs(values[np.isfinite(values)] - middle)
    return float(finite.max(initial=0)) or 1.0


def _draw_network(row: list[Axes], gates: GateStatistics, palette: Palette) -> None:
    _draw_biases(row[0], gates, palette)
    for axes, values in ((row[1], gates.mean), (row[2], gates.sample_gates)):
        image = draw_heat_map(axes, layer_grid(values), palette, gate_scale(), palette.sequential)
        add_colour_bar(axes, image, "gate output", GATE_TICKS, "{x:g}")
    outputs = layer_grid(gates.sample_outputs)
    image = draw_heat_map(row[3], outputs, palette, CenteredNorm(0, largest_deviation(outputs)), palette.diverging)
    add_colour_bar(row[3], image, "block output")


def _draw_biases(axes: Axes, gates: GateStatistics, palette: Palette) -> None:
    values, start = layer_grid(gates.bias), common_initial_bias(gates)
    if start is None:
        image = draw_heat_map(axes, values, palette, Normalize(), palette.sequential)
        add_colour_bar(axes, image, "bias")
        return
    image = draw_heat_map(
        axes, values, palette, CenteredNorm(start, largest_deviation(values, start)), palette.diverging
    )
    bar = add_colour_bar(axes, image, f"bias; ▲ initial value, {start:g}")
    bar.ax.plot([start], [-0.25], "^", color=palette.ink, markersize=6, clip_on=False)


def has_feature_maps(gates: GateStatistics) -> bool:
    """Whether any layer has feature maps, whose gates differ between positions."""
    return any(sample.ndim == 3 for sample in gates.sample_gates)


def plot_feature_gates(gates: GateStatistics, path: FigurePath = None, *, theme: Theme = "light") -> ThemedFigure:
    """Draw where in the image the gates of one sample are open, with a row per layer and a square per feature map.

    If there are many layers, an evenly spread selection is drawn; if there are many feature maps, those that vary most.

    Args:
        gates: The statistics of a network with feature maps.
        path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
        theme: Colours for a light or a dark background.

    Example:
        >>> from verydeep.analysis import gate_statistics
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> from verydeep.report import plot_feature_gates
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mnist-16", input_shape=(1, 8, 8))
        >>> gates = gate_statistics(model, (data.test.x[:10], data.test.y[:10]))
        >>> figure = plot_feature_gates(gates, "feature-gates.png")
    """
    maps = {number: sample for number, sample in enumerate(gates.sample_gates) if sample.ndim == 3}
    if not maps:
        raise UserError("this network has no convolutional highway layers, so its gates have no positions")
    chosen = [list(maps)[round(i)] for i in np.linspace(0, len(maps) - 1, min(_MOST_LAYERS, len(maps)))]
    columns = min(_MOST_MAPS, max(len(maps[layer]) for layer in chosen))
    with themed_figure(path, 1.4 + 1.0 * columns, 1.0 + 1.05 * len(chosen), theme) as (figure, palette):
        panels = figure.subplots(len(chosen), columns, squeeze=False)
        for row, layer in zip(panels, chosen, strict=True):
            _draw_maps(list(row), maps[layer], palette)
            row[0].set_ylabel(f"layer {layer + 1}", rotation=0, ha="right", va="center")
        bar = figure.colorbar(
            panels[0][0].images[0],
            ax=panels,
            location="bottom",
            aspect=60,
            fraction=0.03,
            ticks=GATE_TICKS,
            format="{x:g}",
        )
        bar.set_label(
            f"gate output of sample {gates.sample} (from 0); layers and feature maps (above each square) from 1"
        )
    return figure


def _draw_maps(row: list[Axes], sample: Array, palette: Palette) -> None:
    most_varied = np.argsort(-sample.reshape(len(sample), -1).std(1), kind="stable")[: len(row)]
    for axes in row[len(most_varied) :]:
        axes.set_axis_off()
    for axes, number in zip(row, sorted(most_varied), strict=False):
        axes.imshow(sample[number], cmap=palette.sequential, norm=gate_scale(), interpolation="nearest", aspect="auto")
        axes.set(xticks=[], yticks=[])
        axes.set_title(str(number + 1), fontsize=7, pad=2)
