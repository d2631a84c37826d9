import math
from pathlib import Path

import pytest

from verydeep.errors import UserError
from verydeep.report import TableCurves, plot_curves, plot_tables
from verydeep.training import EpochMetrics, Run

HIGHWAY = [EpochMetrics(n, train_loss=1 / n, train_accuracy=1 - 0.5 / n) for n in range(1, 8)]
PLAIN = [EpochMetrics(n, train_loss=2.3, train_accuracy=0.11) for n in range(1, 8)]


def test_every_curve_is_drawn_under_its_name(tmp_path: Path) -> None:
    plot_curves({"highway, 50 layers": HIGHWAY, "plain, 50 layers": PLAIN}, tmp_path / "both.svg")
    text = (tmp_path / "both.svg").read_text()
    assert "highway, 50 layers" in text
    assert "plain, 50 layers" in text
    assert text.count("stroke-width: 1.8") >= 4  # two curves and their two samples in the legend


def test_runs_are_drawn_under_the_names_of_their_folders(trained: Run) -> None:
    (axes,) = plot_curves(trained).axes
    assert [line.get_label() for line in axes.get_lines()] == ["small"]
    assert axes.get_ylabel() == "mean cross-entropy, training set"
    (axes,) = plot_curves({"quick": [EpochMetrics(1, loss=0.5), EpochMetrics(2, loss=0.25)]}).axes
    assert axes.get_ylabel() == "mean cross-entropy during the epoch"


def test_equal_curves_give_equal_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        plot_curves({"highway": HIGHWAY}, tmp_path / f"{name}.svg", metric="train_accuracy", log=False)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_an_epoch_that_diverged_leaves_a_gap(tmp_path: Path) -> None:
    plot_curves({"bad": [*PLAIN, EpochMetrics(8, train_loss=math.inf)]}, tmp_path / "bad.png")
    plot_curves({"worse": [EpochMetrics(1, train_loss=math.inf)]}, tmp_path / "worse.png")
    plot_curves({"at once": [EpochMetrics(1, loss=math.inf)], "highway": HIGHWAY}, tmp_path / "at once.png")
    assert (tmp_path / "worse.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("metrics", "metric", "name", "message"),
    [
        (HIGHWAY, "train_los", "a.png", "did you mean 'train_loss'"),
        ([], "train_loss", "a.png", "no epoch is complete"),
        (HIGHWAY, "train_loss", "a.bmp", "must end in .png"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    tmp_path: Path, metrics: list[EpochMetrics], metric: str, name: str, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        plot_curves({"highway": metrics}, tmp_path / name, metric=metric)
    assert list(tmp_path.iterdir()) == []


def test_a_curve_of_a_few_epochs_is_shown_whole_beside_a_published_value(tmp_path: Path) -> None:
    short, long = TableCurves("short", ((0.3, 0.4),), 0.9), TableCurves("long", ((0.1, *[0.8] * 9),), 0.9)
    figure = plot_tables([("few", [short]), ("many", [long])], tmp_path / "curves.png")
    few, many = (axes.get_ylim()[0] for axes in figure.axes)
    assert few < 0.3
    assert many > 0.1
