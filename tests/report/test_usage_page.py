"""What the report and its figures say about layers: the curve first, its noise, and what to do next."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.transforms import Bbox

from verydeep.analysis import DepthUsage, Findings, GreedyLesion, LesionStudy, Score, depth_usage
from verydeep.report import plot_depth_usage, plot_lesions, write_report
from verydeep.report.html._charts import Chart, Series
from verydeep.report.html._interactive_figures import lesion_charts, usage_chart
from verydeep.report.html._sentences import about_lesions
from verydeep.training import Run

from . import _made_up as made_up
from .test_html import read

DEPTH = 6


def usage() -> DepthUsage:
    """Four of six layers are idle on held-out data, give or take one."""
    error = np.array([0.02, 0.02, 0.021, 0.021, 0.022, 0.1, 0.5])
    noise = np.array([0, 0.001, 0.001, 0.001, 0.003, 0.01, 0.02])
    draws = (error - error[0] + noise * np.random.default_rng(0).normal(size=(1000, 7))).astype(np.float32)
    order = tuple(range(DEPTH - 1, -1, -1))
    training = GreedyLesion(made_up.names(), "train", 5000, order, error, error / 2, standard_error=noise / 2)
    greedy = GreedyLesion(
        made_up.names(), "valid", 500, order, error, error,
        standard_error=noise, draws=draws, training=training, selected_on="train", selected_samples=5000,
    )  # fmt: skip
    return depth_usage(greedy)


def noise_only() -> LesionStudy:
    """Errors of 4.23 to 4.29 %: no layer costs more than noise."""
    error = 0.0426 + 0.0003 * np.array([-1, 1, 0, 1, -1, 0.5])
    loss = 0.15 + 0.0002 * np.array([-1, 1, 0, 1, -1, 0.5])
    found = LesionStudy(made_up.names(), "valid", 5000, Score(0.15, 0.0426), loss, error)
    return replace(found, standard_error=np.full(6, 0.0005), loss_standard_error=np.full(6, 0.0005))


def test_the_page_leads_with_the_curve_the_interval_and_the_next_command(trained: Run, page: Path) -> None:
    found = usage()
    write_report(trained, page, Findings(usage=found))
    text = page.read_text()
    answer = text[text.index('<div class="answer">') : text.index('<dl class="facts">')]
    assert found.interval is not None
    assert f"95% interval: {found.interval[0]} to {found.interval[1]} layers" in answer
    assert 'data-chart="usage"' in answer
    assert text.count('data-chart="usage"') == 1
    assert "500 samples of the validation set" in re.sub(r"\s+", " ", answer)
    assert "On the training set, as in the paper: 2 of 6 layers" in answer
    assert f"<code>verydeep prune {trained.path}</code> removes the 4 idle layers" in answer
    assert "<code>verydeep depth digits</code>" in answer
    write_report(trained, page, Findings(usage=found, prune=made_up.pruned()))
    assert "verydeep prune" not in page.read_text().partition('<dl class="facts">')[0]


def test_the_curve_has_its_band_and_the_training_set_beside_it() -> None:
    found = usage()
    chart = usage_chart(found)
    held_out, training = chart.series
    assert (held_out.name, training.name) == ("validation set", "training set, as in the paper")
    assert found.greedy.band is not None
    assert list(held_out.low) == pytest.approx((1 - found.greedy.band[1][::-1]).tolist())
    assert list(held_out.high) == pytest.approx((1 - found.greedy.band[0][::-1]).tolist())
    assert chart.rule is not None
    assert chart.rule[0] == pytest.approx(0.98 - found.within)
    assert found.within == pytest.approx(0.003)  # one standard error


def test_noise_is_not_drawn_as_mountains() -> None:
    study = noise_only()
    charts = lesion_charts(study)
    for key in ("error", "loss"):
        low, high = charts[key].y_range
        assert np.ptp(getattr(study, key)) < 0.1 * (high - low)
    axes = plot_lesions(study).axes[0]
    low, high = axes.get_ylim()
    assert np.ptp(study.error) < 0.1 * (high - low)


def test_an_axis_that_is_widened_stays_about_within_the_possible() -> None:
    sure = Chart("", [1, 2], [Series("", [0.999, 1.0])], "", "", percent=True, least=0.1)
    assert sure.y_range == pytest.approx((0.905, 1.005))
    never = Chart("", [1, 2], [Series("", [0.001, 0.0])], "", "", percent=True, least=0.1)
    assert never.y_range == pytest.approx((0, 0.1))


def test_the_labels_of_an_axis_are_too_short_to_reach_its_title() -> None:
    for values in ([0.04231, 0.04288], [0.0912345, 0.0912456], [123456.7, 123999.1], [-0.5, 1.0]):
        for percent in (True, False):
            chart = Chart("", [1, 2], [Series("", values)], "", "", percent=percent)
            assert all(len(text) <= 9 for _, text in chart.y_ticks)


def test_costs_within_noise_are_not_said_to_matter(trained: Run, page: Path) -> None:
    first, idle = about_lesions(noise_only())
    assert first.found == "No single lesion raises the loss by more than noise."
    assert idle.found.startswith("100% of the layers")
    write_report(trained, page, Findings(lesions=noise_only(), usage=usage()))
    strip = re.search(r'<svg class="strip".*?</svg>', page.read_text(), flags=re.S)
    assert strip is not None
    assert set(re.findall(r' height="([\d.]+)"', strip[0])) == {"10.0"}  # no bar is taller than another
    matters = replace(noise_only(), loss=np.array([0.3] + [0.15] * 5), error=np.array([0.1] + [0.0426] * 5))
    assert about_lesions(matters)[0].found == (
        "Closing layer 1 raises the loss most. A single closed layer raises the error by up to 5.74% (± 0.05%)."
    )


def test_the_legend_is_not_crossed_by_a_curve() -> None:
    figure = plot_depth_usage(usage())
    figure.png()  # which lays it out
    axes = figure.axes[0]
    legend = axes.get_legend()
    assert legend is not None
    assert not Bbox.intersection(legend.get_window_extent(), axes.get_window_extent())


def test_the_gate_bias_that_was_used_is_shown(trained: Run, page: Path) -> None:
    write_report(trained, page)
    text = read(page).text
    assert "gate_bias none" not in text
    assert re.search(r"config\.gate_bias -\d[\d.]* ", text)
