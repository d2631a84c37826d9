"""What is drawn is what was found."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from PIL import Image

from verydeep import report
from verydeep.errors import UserError

from . import _made_up as made_up

EVERY: list[tuple[str, Callable[[], Any]]] = [
    ("plot_gates", made_up.gates),
    ("plot_feature_gates", made_up.conv_gates),
    ("plot_routing", made_up.routing),
    ("plot_class_distances", made_up.routing),
    ("plot_lesions", made_up.lesions),
    ("plot_pair_lesions", made_up.pairs),
    ("plot_depth_usage", made_up.usage),
    ("plot_signal_flow", made_up.flow),
    ("plot_prune", made_up.pruned),
]


def drawn(axes: Axes) -> np.ndarray[Any, Any]:
    return np.ma.filled(axes.images[0].get_array().astype(float), np.nan)  # type: ignore[union-attr]


def test_a_matplotlibrc_does_not_choose_how_text_is_drawn(tmp_path: Path) -> None:
    with rc_context({"text.usetex": True, "text.latex.preamble": r"\input{secret}", "font.size": 500}):
        report.plot_gates(made_up.gates(), tmp_path / "with.png")
    report.plot_gates(made_up.gates(), tmp_path / "without.png")
    assert (tmp_path / "with.png").read_bytes() == (tmp_path / "without.png").read_bytes()


def points(line: Line2D) -> np.ndarray[Any, Any]:
    return np.asarray(line.get_xydata(), float)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "make"), EVERY)
@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_every_figure_is_drawn_on_white_and_on_black(
    tmp_path: Path, name: str, make: Callable[[], Any], suffix: str
) -> None:
    corners = {}
    for theme in ("light", "dark"):
        path = tmp_path / f"{theme}.{suffix}"
        figure = getattr(report, name)(make(), path, theme=theme)
        assert to_hex(figure.get_facecolor()) == {"light": "#ffffff", "dark": "#16181d"}[theme]
        if suffix == "png":
            corners[theme] = sum(Image.open(path).convert("RGB").getpixel((0, 0)))  # type: ignore[arg-type]
        else:
            text = path.read_text()
            assert ("#16181d" in text) == (theme == "dark")
    assert suffix == "svg" or corners == {"light": 3 * 255, "dark": 0x16 + 0x18 + 0x1D}


def test_every_figure_has_an_optional_path_and_then_keywords() -> None:
    names = [name for name in report.__all__ if name.startswith("plot_")]
    assert len(names) > 10
    for name in names:
        signature = inspect.signature(getattr(report, name)).parameters
        path = signature["folder" if name == "plot_findings" else "path"]
        assert path.default is None
        assert [p.name for p in signature.values() if p.kind is p.KEYWORD_ONLY][-1] == "theme"
        positional = [p.name for p in signature.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        assert positional[-1] == path.name


def test_a_figure_without_a_path_writes_nothing_and_keeps_its_theme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    figure = report.plot_lesions(made_up.lesions(), theme="dark")
    assert list(tmp_path.iterdir()) == []
    report.plot_lesions(made_up.lesions(), "a.png", theme="dark")  # text, not a Path
    (tmp_path / "b.png").write_bytes(figure.png())
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_equal_results_give_equal_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        report.plot_gates(made_up.gates(), tmp_path / f"{name}.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_the_four_columns_of_figure_2_are_the_statistics(tmp_path: Path) -> None:
    found = made_up.gates()
    figure = report.plot_gates(found, tmp_path / "a.png")
    columns = (found.bias, found.mean, found.sample_gates, found.sample_outputs)
    for axes, values in zip(figure.axes[:4], columns, strict=True):
        np.testing.assert_array_equal(drawn(axes), np.stack(values))
        assert axes.get_ylim() == (made_up.DEPTH + 0.5, 0.5)  # layer 1 on top
    outputs = figure.axes[3].images[0].norm
    assert outputs.vmin == -outputs.vmax  # type: ignore[operator]


def test_biases_are_coloured_around_where_they_started(tmp_path: Path) -> None:
    scale = report.plot_gates(made_up.gates(start=-4.0), tmp_path / "a.png").axes[0].images[0].norm
    assert scale(np.array([-4.0])) == pytest.approx(0.5)
    unknown = replace(made_up.gates(), initial_bias=tuple(np.full(5, np.nan) for _ in range(6)))
    figure = report.plot_gates(unknown, tmp_path / "b.png")
    assert figure.axes[0].images[0].norm.vmin == pytest.approx(np.stack(unknown.bias).min())


def test_several_networks_have_a_row_each_and_narrow_layers_are_padded(tmp_path: Path) -> None:
    figure = report.plot_gates([("MNIST", made_up.gates()), ("maps $x", made_up.conv_gates())], tmp_path / "a.png")
    assert figure.axes[0].get_ylabel() == "MNIST\nlayer (from 1)"
    assert figure.axes[4].get_ylabel() == "maps $x\nlayer (from 1)"
    shown = drawn(figure.axes[6])
    assert shown.shape == (3, 3)
    assert np.isnan(shown[0, 2])
    assert np.isfinite(shown).sum() == 8
    np.testing.assert_allclose(shown[1], made_up.conv_gates().sample_gates[1].mean((1, 2)))


def test_gates_of_feature_maps_are_drawn_position_by_position(tmp_path: Path) -> None:
    found = made_up.conv_gates()
    figure = report.plot_feature_gates(found, tmp_path / "a.png")
    first = next(axes for axes in figure.axes if axes.images)
    np.testing.assert_array_equal(drawn(first), found.sample_gates[0][0])
    with pytest.raises(UserError, match="no convolutional highway layers"):
        report.plot_feature_gates(made_up.gates(), tmp_path / "b.png")


def test_figure_3_shows_the_first_class_and_the_most_different_one(tmp_path: Path) -> None:
    found = made_up.routing()
    figure = report.plot_routing(found, tmp_path / "a.png")
    assert [axes.get_title().split()[0] for axes in figure.axes[:2]] == ["cat", "fox"]
    for axes, number in zip(figure.axes[:2], (0, 3), strict=True):
        np.testing.assert_array_equal(drawn(axes), np.stack([layer[number] for layer in found.difference]))
        scale = axes.images[0].norm
        assert scale.vmin == -scale.vmax == pytest.approx(-0.3)  # type: ignore[operator]


def test_only_differences_that_may_be_noise_are_veiled(tmp_path: Path) -> None:
    axes = report.plot_routing(made_up.routing(), tmp_path / "a.png", classes=["cat"]).axes[0]
    veil = np.isfinite(np.ma.filled(axes.images[1].get_array().astype(float), np.nan))  # type: ignore[union-attr]
    assert not veil[:, 0].any()
    assert veil[:, 1:].all()


def test_classes_that_do_not_exist_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="unknown class 'cta'; did you mean 'cat'"):
        report.plot_routing(made_up.routing(), tmp_path / "a.png", classes=["cta"])
    with pytest.raises(UserError, match="from 1 to 8"):
        report.plot_routing(made_up.routing(), tmp_path / "a.png", classes=[])
    assert list(tmp_path.iterdir()) == []


def test_classes_are_ordered_by_their_tree(tmp_path: Path) -> None:
    shuffled = replace(made_up.routing(), linkage=np.array([[1, 3, 0.1, 2], [0, 4, 0.2, 3], [2, 5, 0.4, 4]], float))
    figure = report.plot_class_distances(shuffled, tmp_path / "a.png")
    branches, axes = figure.axes[:2]
    order = [label.get_text() for label in axes.get_yticklabels()]
    assert order == ["emu", "cat", "dog", "fox"]
    np.testing.assert_array_equal(drawn(axes), shuffled.distance[np.ix_([2, 0, 1, 3], [2, 0, 1, 3])])
    joined = [points(line).tolist() for line in branches.get_lines()]
    assert joined[0] == [[0, 2], [0.1, 2], [0.1, 3], [0, 3]]  # dog and fox, side by side


@pytest.mark.parametrize("metric", ["error", "loss"])
def test_figure_4_is_the_study_with_the_whole_network_dashed(tmp_path: Path, metric: Any) -> None:
    found = made_up.lesions()
    axes = report.plot_lesions(found, tmp_path / "a.png", metric=metric, log=True).axes[0]
    curve, baseline = axes.get_lines()
    np.testing.assert_array_equal(points(curve)[:, 0], range(1, 7))
    np.testing.assert_array_equal(points(curve)[:, 1], getattr(found, metric))
    assert set(points(baseline)[:, 1]) == {getattr(found.baseline, metric)}
    assert baseline.get_linestyle() == "--"
    assert axes.get_yscale() == "log"


def test_pairs_show_what_two_layers_cost_beyond_each_alone(tmp_path: Path) -> None:
    found = made_up.pairs()
    left, right = report.plot_pair_lesions(found, tmp_path / "a.png").axes[:2]
    np.testing.assert_array_equal(drawn(left), found.error)
    expected = np.zeros((6, 6))
    expected[0, 1] = expected[1, 0] = 0.9 - (0.12 + 0.07 - 0.02)
    np.testing.assert_allclose(drawn(right), expected, atol=1e-12)


def test_the_layers_a_network_needs_are_marked(tmp_path: Path) -> None:
    axes, strip = report.plot_depth_usage(made_up.usage(), tmp_path / "a.png").axes
    curve, lowest, chosen = axes.get_lines()
    np.testing.assert_allclose(points(curve), [[6 - n, 0.98 if n < 5 else 0.5] for n in range(7)])
    np.testing.assert_allclose(points(lowest)[:, 1], 0.979)
    np.testing.assert_allclose(points(chosen), [[2, 0.98]])
    kept = [bar for bar in strip.patches if to_hex(bar.get_facecolor()) == "#0072b2"]
    assert [round(bar.get_center()[0]) for bar in kept] == [1, 2]  # type: ignore[attr-defined]


def test_networks_differ_in_colour_and_moments_in_line(tmp_path: Path) -> None:
    left, right = report.plot_signal_flow(made_up.flow(), tmp_path / "a.png").axes
    new, trained, plain = left.get_lines()
    assert new.get_color() == trained.get_color() != plain.get_color()
    assert new.get_linestyle() == plain.get_linestyle() != trained.get_linestyle()
    np.testing.assert_array_equal(points(trained)[:, 1], 2.0)
    assert np.isnan(points(right.get_lines()[2])[-1, 1])  # a gradient of 0 leaves a gap


def test_a_thousand_layers_can_be_drawn(tmp_path: Path) -> None:
    figure = report.plot_gates(made_up.gates(1000, 50), tmp_path / "a.png")
    assert drawn(figure.axes[1]).shape == (1000, 50)
    assert [int(tick) for tick in figure.axes[0].get_yticks()][:2] == [1, 200]
    report.plot_lesions(made_up.lesions(1000), tmp_path / "b.png")


def test_an_unknown_theme_or_suffix_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="did you mean 'dark'"):
        report.plot_lesions(made_up.lesions(), tmp_path / "a.png", theme="drak")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="must end in"):
        report.plot_lesions(made_up.lesions(), tmp_path / "a.gif")
    assert list(tmp_path.iterdir()) == []


def test_settings_are_drawn_over_their_gate_bias_and_over_the_open_layers(tmp_path: Path) -> None:
    settings = {100: [(0.0, 0.5)], 10: [(0.0, 0.25), (-2.0, 0.125)]}
    left, right = report.plot_gate_bias(settings, 2, tmp_path / "gate-bias.png").axes
    over_bias, over_open = ([np.asarray(each.get_offsets()) for each in axes.collections] for axes in (left, right))
    assert np.array_equal(over_bias[0], [(0.0, 0.25), (-2.0, 0.125)])
    assert over_open[0][:, 0] == pytest.approx([5.0, 1.192], rel=1e-3)
    assert over_open[1][:, 0] == pytest.approx([50.0])


def test_lines_of_claims_mark_what_diverged_and_name_every_mark() -> None:
    points = [(10, 0.1), (20, 0.2), (50, float("inf"))]
    band = [(10, 0.05, 0.15), (20, 0.1, 0.3)]
    figure = report.plot_claim_lines(
        {"": {"plain": points}}, x="layers", y="loss", line=(1.0, "limit"), bands={"plain": band}
    )
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["plain", "95 % interval", "limit", "diverged"]
    crosses = [np.asarray(line.get_xdata()).tolist() for line in figure.axes[0].lines if line.get_marker() == "x"]
    assert crosses == [[50], []]  # the second is that of the legend
