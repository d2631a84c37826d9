"""Results describe themselves in one line, and show a table and a picture in a notebook."""

import base64
import io
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from PIL import Image

from verydeep.analysis import Findings, depth_usage

from . import _made_up as made_up

RESULTS: dict[str, tuple[Any, str]] = {
    "GateStatistics": (made_up.gates(), "6 layers, 30 gates, 1,000 samples; mean gate 0.214, 10.7% open (above 0.5)"),
    "ClassRouting": (
        made_up.routing(),
        "4 classes, 6 layers, 1,000 samples; from the gates alone, a linear classifier reaches 91.0% accuracy "
        "(most frequent class: 25.0%)",
    ),
    "LesionStudy": (
        made_up.lesions(),
        "6 layers, 1,000 samples of the training set; error 2.00%, and 32.00% with layer 0 closed, the highest loss "
        "(layers are counted from 0)",
    ),
    "PairLesion": (
        made_up.pairs(),
        "6 layers, 500 samples of the validation set; error 2.00%, and 90.00% with layers 0 and 1 closed, the highest "
        "loss (layers are counted from 0)",
    ),
    "GreedyLesion": (
        made_up.usage().greedy,
        "6 layers, 1,000 samples of the training set; error 2.00%, and 50.00% with 6 layers closed in the order "
        "5, 4, 3, 2, 1, 0 (layers are counted from 0)",
    ),
    "DepthUsage": (
        made_up.usage(),
        "2 of 6 layers used within 0.10% accuracy on 1,000 samples of the training set; idle: 2-5 "
        "(layers are counted from 0)",
    ),
    "SignalFlow": (
        made_up.flow()[1],
        "'highway, trained', 6 layers; from the first to the last layer, activations 2 to 2, gradients 0.02 to 0.02",
    ),
    "PruneReport": (
        made_up.pruned(),
        "2 of 6 layers kept; accuracy 97.00% -> 96.80% on the test set, parameters 3,000 -> 1,000; removed: 2-5 "
        "(layers are counted from 0)",
    ),
    "Findings": (made_up.findings(), "gates, routing, lesions, pairs, usage, prune, flow 1, flow 2, flow 3"),
}


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_says_in_one_line_what_it_holds(name: str) -> None:
    result, summary = RESULTS[name]
    assert repr(result) == f"<{name}: {summary}>"


def test_large_results_and_single_layers_have_short_lines_too() -> None:
    assert len(repr(made_up.lesions(1000))) < 200
    assert len(repr(made_up.usage(1000))) < 200
    assert len(repr(replace(made_up.usage(100), idle=tuple(range(0, 98, 2))))) < 200
    assert repr(made_up.lesions(1)).startswith("<LesionStudy: 1 layer, ")
    assert repr(replace(made_up.lesions(), split="")).startswith("<LesionStudy: 6 layers, 1,000 samples; ")
    assert repr(Findings()) == "<Findings: none yet>"


def test_a_single_layer_can_cost_more_than_every_pair() -> None:
    pairs = made_up.pairs()
    loss = pairs.loss.copy()
    loss[2, 2] = 9.0  # on the diagonal, one layer is closed
    single = replace(pairs, loss=loss)
    assert "with layer 2 closed, the highest loss" in repr(single)
    assert "with layer 2 closed" in single._repr_html_()


@pytest.mark.parametrize("name", RESULTS)
def test_notebooks_show_a_table_and_a_picture(name: str) -> None:
    page = RESULTS[name][0]._repr_html_()
    assert f"<b>{name}</b>" in page
    assert page.count("<tr>") >= 4
    encoded = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    assert len(encoded) == 1
    assert Image.open(io.BytesIO(base64.b64decode(encoded[0]))).width > 300


def test_names_are_escaped() -> None:
    assert "<script>" not in replace(made_up.lesions(), split="<script>")._repr_html_()


def test_plot_draws_what_the_function_of_the_report_draws(tmp_path: Path) -> None:
    figure = made_up.lesions().plot(str(tmp_path / "a.png"), metric="loss")
    assert isinstance(figure, Figure)
    assert figure.axes[0].get_ylabel() == "mean cross-entropy, training set"
    assert (tmp_path / "a.png").exists()
    greedy, usage = made_up.usage().greedy.plot(), depth_usage(made_up.usage().greedy).plot()
    assert (len(greedy.axes), len(usage.axes)) == (1, 2)
    few = Findings(lesions=made_up.lesions(), prune=made_up.pruned())
    assert set(few.plot(tmp_path / "few")) == {"lesions", "lesions-loss", "prune"}
    assert {path.stem for path in (tmp_path / "few").iterdir()} == {"lesions", "lesions-loss", "prune"}


def test_figures_do_not_touch_pyplot() -> None:
    before = sys.modules.get("matplotlib.pyplot")
    figures = Findings(lesions=made_up.lesions()).plot()
    assert sys.modules.get("matplotlib.pyplot") is before
    assert all(figure._repr_png_().startswith(b"\x89PNG") for figure in figures.values())  # type: ignore[attr-defined]
    assert "<img" in figures._repr_html_()  # type: ignore[attr-defined]
