"""Commands and reports for runs that predict numbers, labels or a rare class."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from verydeep.cli import main
from verydeep.data import DataConfig
from verydeep.report import plot_calibration, plot_curves, plot_depth_usage, plot_evaluation, plot_lesions, plot_run
from verydeep.report.html._charts import Chart, Series
from verydeep.report.html._interactive_figures import _without_collapse
from verydeep.training import (
    EpochMetrics,
    ModelConfig,
    Run,
    TrainConfig,
    compare_runs,
    describe,
    evaluate_metrics,
    list_runs,
    load_data,
    train,
)

from . import _made_up as made_up

ROWS = 2500


def write_table(path: Path, targets: dict[str, np.ndarray], x: np.ndarray) -> None:
    columns = [f"x{number}" for number in range(x.shape[1])]
    rows = np.column_stack([x.round(4).astype(str), *targets.values()])
    path.write_text("\n".join([",".join([*columns, *targets]), *(",".join(row) for row in rows)]) + "\n")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """A run per task, each with its table."""
    folder, random = tmp_path_factory.mktemp("tasks"), np.random.default_rng(0)
    x = random.normal(size=(ROWS, 4))
    signal = 2.5 * x[:, 0] + 2 * x[:, 1] + 0.7 * random.logistic(size=ROWS)
    tables = {
        "price": {"price": (200 + 40 * x[:, 0] + 10 * random.normal(size=ROWS)).round(2).astype(str)},
        "rare": {"fraud": np.where(signal > np.quantile(signal, 0.98), "yes", "no")},
        "labels": {"red": (x[:, 0] > 0).astype(int).astype(str), "blue": (x[:, 1] > 0.5).astype(int).astype(str)},
    }
    found = {}
    for name, targets in tables.items():
        write_table(folder / f"{name}.csv", targets, x)
        data = DataConfig(str(folder / f"{name}.csv"), target=tuple(targets))
        config = TrainConfig(data, ModelConfig(depth=4, width=8), epochs=10, batch_size=60)
        found[name] = train(config, folder / "runs" / name, progress=False)
    return found


def page_of(run: Run) -> str:
    assert main(["report", str(run.path)]) == 0
    return (run.path / "report.html").read_text()


@pytest.mark.slow
def test_a_useful_network_on_a_rare_class_is_not_called_worthless(
    runs: dict[str, Run], capsys: pytest.CaptureFixture[str]
) -> None:
    """Its accuracy is that of the majority, but its loss is far below a blind guess, and it ranks samples well."""
    assert main(["eval", str(runs["rare"].path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["metrics"]["roc_auc"]["value"] > 0.95
    assert found["loss"] < 0.75 * found["guess_loss"]
    assert found["accuracy"] < found["majority_share"] + 0.02
    assert found["positive_class"] == "yes"
    page = page_of(runs["rare"])
    assert "barely better" not in page
    assert "next to nothing" not in page
    assert re.search(r"this network needs (all|none of|\d of) its 3 highway layers", page)
    assert f"would be correct for {found['majority_share']:.2%}" in page
    assert f"<dt>most frequent class, test set</dt><dd>{found['majority_share']:.2%}</dd>" in page
    assert "balanced accuracy" in page


@pytest.mark.slow
def test_the_report_of_a_regression_speaks_of_r2(runs: dict[str, Run]) -> None:
    page = page_of(runs["price"])
    shown = page.split('<section id="made">')[0]
    assert re.search(r"<dt>test R²</dt><dd>0\.\d{4}</dd>", shown)
    assert "How gates differ between ranges of the target" in shown
    assert "R² against layers kept" in shown
    assert "RMSE" in shown
    assert "accuracy" not in re.sub("<[^>]*>", " ", shown)


@pytest.mark.slow
def test_the_report_of_labels_has_every_label(runs: dict[str, Run]) -> None:
    page = page_of(runs["labels"])
    assert "How gates differ between labels" in page
    assert "Metrics of each label" in page
    assert page.count("data:image/png") == 4  # two figures in two themes


@pytest.mark.slow
def test_analyze_prints_r2_of_a_regression(
    runs: dict[str, Run], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = ["--only", "routing,lesions,usage", "--samples", "200"]
    assert main(["analyze", str(runs["price"].path), "--out", str(tmp_path), *parts]) == 0
    printed = capsys.readouterr().out
    assert "accuracy" not in printed
    assert "R² without" in printed
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert 0 < summary["baseline"]["r2"] < 1
    assert summary["routing"]["grouped_by"] == "range"


@pytest.mark.parametrize("name", ["price", "labels"])
def test_prune_takes_every_task(
    runs: dict[str, Run], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pruned = tmp_path / "pruned"
    assert main(["prune", str(runs[name].path), "--tolerance", "20%", "--folder", str(pruned)]) == 0
    assert ("R², test set" in capsys.readouterr().out) == (name == "price")
    smaller = Run.load(pruned)
    assert smaller.measure == runs[name].measure
    assert smaller.measured is not None
    assert smaller.measured.get(f"test_{smaller.measure}") is not None


def test_eval_of_a_regression_is_in_the_units_of_the_target(
    runs: dict[str, Run], capsys: pytest.CaptureFixture[str]
) -> None:
    run = runs["price"]
    assert main(["eval", str(run.path)]) == 0
    printed = capsys.readouterr().out
    assert "RMSE" in printed
    assert "accuracy" not in printed
    folder = run.path / "eval" / "price-test"
    assert {path.name for path in folder.iterdir()} == {"evaluation.json", "residuals.png", "residuals.svg"}
    saved = json.loads((folder / "evaluation.json").read_text())
    assert 9 < saved["metrics"]["rmse"]["value"] < 40  # the noise has a standard deviation of 10
    assert run.measured is not None
    assert saved["metrics"]["r2"]["value"] == pytest.approx(run.measured.get("test_r2"), rel=1e-5)
    assert saved["loss"] == pytest.approx(run.measured.test_loss, rel=1e-5)


def test_eval_of_labels_has_a_row_for_each(runs: dict[str, Run], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", str(runs["labels"].path), "--json"]) == 0
    saved = json.loads(capsys.readouterr().out)
    assert set(saved["labels"]) == {"red", "blue"}
    assert saved["labels"]["red"]["roc_auc"]["low"] <= saved["labels"]["red"]["roc_auc"]["value"]
    assert runs["labels"].measured is not None
    assert saved["metrics"]["accuracy"]["value"] == pytest.approx(runs["labels"].measured.test_accuracy)


def test_lists_and_comparisons_name_r2(runs: dict[str, Run], capsys: pytest.CaptureFixture[str]) -> None:
    price, labels = runs["price"], runs["labels"]
    assert re.search(r"test R² 0\.\d{4}", repr(price))
    assert "accuracy" not in repr(price)
    assert "R² 0." in price._repr_html_()
    assert main(["runs", str(price.path.parent)]) == 0
    assert "R² 0." in capsys.readouterr().out
    info = {each.name: each for each in list_runs(price.path.parent)}
    assert info["price"].measure == "r2"
    assert "test R²" in repr(info["price"])
    assert main(["compare", str(price.path), str(labels.path)]) == 0
    assert "R² 0." in capsys.readouterr().out
    assert "test R²" in compare_runs(price, labels)._repr_html_()


def test_compare_draws_any_metric_that_was_measured(
    runs: dict[str, Run], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = [str(runs[name].path) for name in ("price", "labels")]
    assert main(["compare", *both, "-o", str(tmp_path / "curves.png")]) == 0  # both have validation, but of other kinds
    one = [both[0], both[0], "-o", str(tmp_path / "curves.png")]
    assert main(["compare", *one, "--metric", "valid_r2"]) == 0
    capsys.readouterr()
    assert main(["compare", *one, "--metric", "valid_r3"]) == 2
    assert "valid_r2" in capsys.readouterr().err


def test_the_lines_of_a_regression_have_r2_and_other_metrics() -> None:
    line = EpochMetrics.from_dict(
        {"epoch": 3, "lr": 0.1, "loss": 0.5, "r2": 0.5, "valid_loss": 0.6, "valid_r2": -0.25, "valid_rmse": 51.234}
    )
    assert describe(line, 10) == "epoch  3/10  loss 0.5 R² 0.5000  valid 0.6 R² -0.2500 RMSE 51.23  lr 0.1  0:00"
    classes = EpochMetrics(3, 0.1, 0.5, 0.9, valid_loss=0.6, valid_accuracy=0.8, extra={"valid_roc_auc": 0.95})
    assert "valid 0.6 80.00% ROC-AUC 0.9500" in describe(classes, 10)


def test_figures_of_a_regression_have_no_percentages(runs: dict[str, Run]) -> None:
    figure = plot_run(runs["price"])
    axes = figure.axes[1]
    assert axes.get_ylabel() == "R²"
    figure.draw_without_rendering()
    assert not any("%" in label.get_text() for label in axes.get_yticklabels())
    curves = plot_curves(runs["price"], metric="valid_r2", log=False)
    assert curves.axes[0].get_ylabel() == "R², validation set"
    assert plot_curves(runs["price"]).axes[0].get_ylabel() == "mean loss during the epoch"


def test_lesions_of_a_regression_are_drawn_as_one_minus_r2() -> None:
    found = made_up.lesions()
    number = type(found)(
        found.layers, "test", 10, type(found.baseline)(0.4, 0.4, "r2"), 3 * found.error, 3 * found.error
    )
    assert plot_lesions(number).axes[0].get_ylabel() == "1 − R², test set"
    assert plot_lesions(number, metric="loss").axes[0].get_ylabel() == "mean loss, test set"


def test_a_very_bad_r2_does_not_flatten_the_curve() -> None:
    usage = made_up.usage()
    error = np.where(np.arange(made_up.DEPTH + 1) < made_up.DEPTH - 2, 0.2, 80.0)
    greedy = type(usage.greedy)(usage.greedy.layers, "test", 10, usage.greedy.order, error, error, "r2")
    figure = plot_depth_usage(type(usage)(greedy, 0.001, usage.kept, usage.idle))
    assert figure.axes[0].get_ylim()[0] == -1
    chart = _without_collapse(Chart("", [1, 2, 3], [Series("R²", [-79.0, 0.5, 0.8])], "layers", "R²"))
    low, high = chart.y_range
    assert 0 < low < high < 1
    assert chart.path(chart.series[0]).count("M") == 1  # the lowest point is left out, the others are joined
    assert "not below −1" in chart.y_name


def test_evaluations_are_drawn_in_both_themes(runs: dict[str, Run]) -> None:
    for name, panels in (("price", 2), ("labels", 3)):
        run = runs[name]
        found = evaluate_metrics(run.model, load_data(run))
        for theme in ("light", "dark"):
            assert len(plot_evaluation(found, theme=theme).axes) == panels
        assert "Evaluation" in found._repr_html_()
    bars = plot_calibration(found).axes[1].patches
    assert sum(bar.get_bbox().height for bar in bars if isinstance(bar, Rectangle)) == 2 * found.samples
