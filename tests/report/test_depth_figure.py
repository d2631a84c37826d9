"""The figure of score against depth shows what was found, also at the limits."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D

from verydeep.depth import DepthAnswer, OtherModel
from verydeep.report import plot_depth
from verydeep.report.figures._axes import accuracy_at, choose_ticks, error_position, spread_labels
from verydeep.report.figures._depth_layout import below_the_axis, depth_ticks, score_limits

from . import _made_up_depth as made_up


def curve(axes: Axes, label: str) -> Line2D:
    return next(line for line in axes.lines if str(line.get_label()).startswith(label))


@pytest.mark.parametrize("make", made_up.EVERY.values(), ids=made_up.EVERY)
def test_every_answer_is_drawn_in_both_themes(make: Callable[[], DepthAnswer]) -> None:
    for theme, paper in (("light", "#ffffff"), ("dark", "#16181d")):
        figure = plot_depth(make(), theme="light" if theme == "light" else "dark")
        assert figure.png(40).startswith(b"\x89PNG")
        assert to_hex(figure.get_facecolor()) == paper


def test_the_curves_are_the_scores_and_the_answer_has_a_ring_and_its_interval() -> None:
    answer = made_up.answer()
    axes = plot_depth(answer).axes[0]
    for kind in ("highway", "plain"):
        points = answer.curve("highway" if kind == "highway" else "plain")
        expected = np.array([(point.depth, point.score) for point in points])
        np.testing.assert_allclose(np.asarray(curve(axes, f"{kind} networks").get_xydata()), expected)
    assert answer.used is not None
    thin = np.asarray(curve(axes, "the highway of 50 layers").get_xydata())
    np.testing.assert_allclose(thin, np.array([answer.used.kept, answer.used.score]).T)
    ring = curve(axes, "the answer: 2 layers (95 % interval 2 to 4)")
    assert np.asarray(ring.get_xydata()).tolist() == [[2, 0.974]]
    texts = [text.get_text() for text in axes.texts]
    assert texts == ["linear model 95.8%", "gradient boosting 96.9%", "blind guess 10.1%"]


def test_all_depths_are_ticks_where_they_fit_and_the_answer_always_is() -> None:
    axes = plot_depth(made_up.answer()).axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0", "1", "2", "3", "4", "8", "16", "50"]
    shown = [int(text.get_text()) for text in plot_depth(made_up.many_depths()).axes[0].get_xticklabels()]
    assert {0, 1, 2, 4, 8, 16, 32, 64, 96} <= set(shown)
    assert depth_ticks(made_up.many_depths())[0] == 96


def test_labels_of_depths_do_not_overlap() -> None:
    figure = plot_depth(made_up.many_depths())
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in figure.axes[0].get_xticklabels()]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_labels_of_models_do_not_overlap_and_are_inside_the_figure() -> None:
    figure = plot_depth(made_up.hostile())
    figure.canvas.draw()
    boxes = sorted((text.get_window_extent() for text in figure.axes[0].texts), key=lambda box: box.y0)
    assert len(boxes) == 4
    assert all(low.y1 <= high.y0 + 1 for low, high in pairwise(boxes))
    assert all(box.x1 <= figure.bbox.x1 for box in boxes)


def test_diverged_networks_do_not_flatten_the_others_and_the_figure_says_so() -> None:
    answer = made_up.regression()
    low, high = score_limits(answer)
    assert -1 < low < 0 < high < 1
    assert below_the_axis(answer)[0] == "plain networks of depth 32 (−1,834)"
    axes = plot_depth(answer).axes[0]
    assert "below the axis: plain networks of depth 32 (−1,834)" in axes.get_xlabel()
    triangles = next(line for line in axes.lines if line.get_marker() == "v")
    assert np.asarray(triangles.get_xydata()).tolist() == [[32, low]]


def test_a_guess_that_one_extreme_value_spoils_does_not_flatten_the_curves() -> None:
    spoiled = replace(made_up.regression(), guess_score=-5000.0)
    low, high = score_limits(spoiled)
    assert -1 < low < 0.4
    assert 0.8 < high < 1
    poor = OtherModel("ridge regression", -900.0)
    named = below_the_axis(replace(spoiled, others=(poor,)))
    assert "ridge regression (−900)" in named
    assert "a blind guess (−5,000)" in named


def test_networks_that_are_all_worse_than_a_guess_can_still_be_told_apart() -> None:
    low, high = score_limits(made_up.diverged())
    assert low < -5 < 0 < high  # the best of them, and the guess
    assert low > -50


def test_r2_names_itself_and_has_no_percentages() -> None:
    axes = plot_depth(made_up.regression()).axes[0]
    assert axes.get_ylabel() == "R² on held-out data"
    assert axes.get_xlabel().startswith("depth (hidden layers)")
    assert not any("%" in text.get_text() for text in [*axes.texts, *axes.get_yticklabels()])


def test_layers_per_stage_have_no_curve_of_layers_kept() -> None:
    axes = plot_depth(made_up.convolutional()).axes[0]
    assert axes.get_xlabel() == "depth (layers per stage)"
    labels = [str(line.get_label()) for line in axes.lines]
    assert "the answer: 12 layers per stage (95 % interval 8 to 16)" in labels
    assert not any("closed" in label for label in labels)


def test_no_answer_has_no_ring_and_no_interval() -> None:
    axes = plot_depth(made_up.nothing_learned()).axes[0]
    assert not any("answer" in str(line.get_label()) for line in axes.lines)
    without = plot_depth(replace(made_up.answer(), interval=None)).axes[0]
    assert any(line.get_label() == "the answer: 2 layers" for line in without.lines)
    assert len(without.patches) == 0 < len(plot_depth(made_up.answer()).axes[0].patches)


def test_a_perfect_accuracy_is_drawn() -> None:
    answer = made_up.answer()
    perfect = tuple(replace(each, score=1.0, score_high=1.0) if each.depth == 8 else each for each in answer.points)
    low, high = score_limits(replace(answer, points=perfect))
    assert low < 0.12
    assert high == 1.0
    assert plot_depth(replace(answer, points=perfect)).png(40)


@given(st.floats(0, 1))
def test_the_axis_of_errors_can_be_inverted(accuracy: float) -> None:
    assert accuracy_at(error_position(accuracy)) == pytest.approx(accuracy, abs=1e-9)


@given(st.lists(st.floats(0, 1), max_size=8))
def test_spread_labels_keep_their_order_and_distance(places: list[float]) -> None:
    found = spread_labels(places, 0.1, 0, 1)
    assert all(second - first >= 0.1 - 1e-9 for first, second in pairwise(sorted(found)))
    assert all(-1e-9 <= place <= 1 + 1e-9 for place in found)
    order = sorted(range(len(places)), key=lambda label: places[label])
    assert [found[label] for label in order] == sorted(found)


def test_labels_that_do_not_overlap_stay_where_they_are() -> None:
    assert spread_labels([0.9, 0.1, 0.5], 0.1, 0, 1) == [0.9, 0.1, 0.5]
    np.testing.assert_allclose(spread_labels([0.5, 0.5], 0.1, 0, 1), [0.45, 0.55])


def test_less_important_labels_give_way() -> None:
    assert choose_ticks([(50, "50", 10), (0, "0", 10), (48, "48", 10), (20, "20", 10)]) == [
        (0, "0"), (20, "20"), (50, "50"),
    ]  # fmt: skip


def test_the_figure_is_written(tmp_path: Path) -> None:
    made_up.answer().plot(tmp_path / "depth.svg", theme="dark")
    assert "#16181d" in (tmp_path / "depth.svg").read_text()
