"""Tables 1, 2 and 3: the published numbers, resumable results, and tables of unfinished runs."""

import json
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import torch

from verydeep.cli import main
from verydeep.cli._options import read_options
from verydeep.cli.commands._reproduce import ReproduceOptions, _fig1_study, _tables, read_seeds, table_panel
from verydeep.config import dotted, to_dict
from verydeep.data import DataConfig
from verydeep.errors import UserError
from verydeep.models import create_model, list_models
from verydeep.paper import (
    AUTHOR_LOGS,
    TABLE_ROWS,
    TABLES,
    TEACHER,
    SeedCurve,
    StudyOptions,
    TableResult,
    Tables,
    _recipes as recipes,
    log_lines,
    page_path,
    read_recipe,
    read_results,
    replaced_recipes,
    results_page,
    selected_rows,
    table_lines,
    time_left,
)
from verydeep.paper.tables._page import core_hours
from verydeep.studies import TrainingRecord, open_study, work
from verydeep.training import EpochMetrics, Run
from verydeep.training.step._distillation import _make_regressor

ROOT = Path(__file__).parents[2]
NAMED = {row.name: row for row in TABLE_ROWS if row.name}
MACHINE = {"processor": "Abacus", "threads": 1, "gpu": None}


def curve(accuracies: list[float], seconds: float = 60.0, status: str = "training") -> SeedCurve:
    lines = [EpochMetrics(n, seconds=seconds * n, test_accuracy=a) for n, a in enumerate(accuracies, 1)]
    return SeedCurve(status, tuple(lines), MACHINE)


def made_up(folder: Path, name: str, curves: list[SeedCurve], recipe: recipes.Recipe = "fast") -> TableResult:
    result = TableResult(folder, NAMED[name], recipe)
    result.start(read_recipe(name, recipe))
    result.curves = dict(enumerate(curves))
    result.write()
    return TableResult(folder, NAMED[name], recipe)


def without_study(runs: Path) -> None:
    """Leave only the runs, as a version did that had no studies."""
    for path in runs.iterdir():
        if not path.name.endswith("-fast"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def row(folder: Path, name: str) -> str:
    row = NAMED[name]
    lines = table_lines(row.table, read_results(folder))
    (found,) = [line for line in lines if row.title in line and f"| {row.data} |" in line]
    return found


def test_a_quick_run_is_marked_and_not_compared_with_published_numbers(tmp_path: Path) -> None:
    trial = TableResult(tmp_path, NAMED["highway-a"], "fast")
    trial.start(replace(read_recipe("highway-a", "fast"), data=DataConfig("digits")))
    trial.curves = {0: curve([0.5])}
    true = made_up(tmp_path, "highway-b", [curve([0.5])])
    assert [network.published for network in table_panel("table2", [trial, true])] == [None, pytest.approx(0.9228)]
    assert "| digits (quick run) |" in (lines := "".join(table_lines("table2", [trial])))
    assert "| 1 min | | Abacus" in lines  # no speed: how many images is not known


@pytest.mark.slow
def test_published_numbers_are_those_of_the_networks_cards() -> None:
    cards = {(card.name, card.dataset): card.published for card in list_models()}
    for name, row in NAMED.items():
        config = read_recipe(name, "paper")
        if row.published and "backpropagation" not in row.title:
            assert row.published == cards[config.model.name, config.data.source]


def test_the_published_accuracy_to_reach_is_the_mean_where_there_is_one() -> None:
    assert NAMED["highway-mnist-16"].accuracy == pytest.approx(0.994)
    assert NAMED["highway-a"].accuracy == pytest.approx(0.8918)
    assert NAMED["fitnet-a"].accuracy is None


@pytest.mark.parametrize("name", NAMED)
def test_every_row_that_is_trained_here_has_both_recipes(name: str) -> None:
    assert read_recipe(name, "paper").epochs == 10 * read_recipe(name, "fast").epochs


def test_recipes_are_found_in_an_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verydeep.config._read._CHECKOUT", tmp_path / "nowhere")
    monkeypatch.setattr("verydeep.config._read._INSTALLED", tmp_path)
    with pytest.raises(UserError, match="install verydeep again"):
        read_recipe("highway-a", "paper")
    (tmp_path / "base").mkdir()
    (tmp_path / "highway-a.toml").write_text("epochs = 7")
    assert read_recipe("highway-a", "paper").epochs == 7


def test_an_epoch_counts_once_even_if_it_is_trained_again(tmp_path: Path) -> None:
    result = made_up(tmp_path, "highway-a", [curve([0.1, 0.2])])
    assert result.add(0, curve([0.9, 0.9, 0.9]).metrics, MACHINE)
    assert result.add(1, curve([0.9]).metrics, MACHINE)
    assert not result.add(0, curve([0.7]).metrics, MACHINE)
    assert [line.test_accuracy for line in result.curves[0].metrics] == [0.1, 0.2, 0.9]
    assert [result.epochs_left(*each) for each in ((0, 40), (1, 40), (2, 40), (0, 2))] == [37, 39, 40, 0]
    assert not result.add(0, (), MACHINE, "finished")  # it lacks epochs
    assert result.add(0, (), MACHINE, "diverged")
    assert result.epochs_left(0, 40) == 0


def test_results_of_other_settings_are_not_continued(tmp_path: Path) -> None:
    result = made_up(tmp_path, "highway-a", [curve([0.1])])
    config = read_recipe("highway-a", "fast")
    result.start(replace(config, seed=3, threads=1, device="cpu"))  # not settings of the recipe
    with pytest.raises(UserError, match="other settings"):
        result.start(replace(config, batch_size=7))


def test_a_row_names_the_machine_of_its_last_epoch(tmp_path: Path) -> None:
    result = made_up(tmp_path, "highway-a", [curve([0.1, 0.2])])
    assert not result.add(0, curve([0.1, 0.2]).metrics, MACHINE | {"gpu": "Loom"})
    assert "Abacus" in row(tmp_path, "highway-a")
    assert result.add(0, curve([0.1, 0.2, 0.3]).metrics, MACHINE | {"gpu": "Loom"})
    result.write()
    assert "Loom" in row(tmp_path, "highway-a")


@pytest.mark.slow
def test_a_row_of_other_settings_is_left_alone_and_the_others_are_trained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tables" / "highway-a-fast.json"
    made_up(file.parent, "highway-a", [curve([0.1])])  # on CIFAR-10, but the digits are to be trained
    before = file.read_text()
    arguments = ["--quick", "--only", "highway-a,highway-b", "--jobs", "1", "--seeds", "1", "--results", str(tmp_path)]
    for minutes in ([], ["--minutes", "0"]):
        assert main(["reproduce", "table2", *arguments, *minutes]) == 0
        said = capsys.readouterr().out
        assert f"skipped: {file} was measured with other settings" in said
        assert "nothing left" in said
    assert main(["reproduce", "table2", "--quick", "--only", "highway-a", "--results", str(tmp_path)]) == 2
    assert "was measured with other settings" in capsys.readouterr().err
    assert file.read_text() == before
    assert len(TableResult(file.parent, NAMED["highway-b"], "fast").curves[0].metrics) == 2


@pytest.mark.parametrize("text", ["{}", '{"config": {}, "seeds": [1]}', "[]", "{"])
def test_a_damaged_result_is_a_one_line_error(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "highway-a-fast.json").write_text(text)
    assert main(["reproduce", "table2", "--minutes", "0", "--results", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "highway-a-fast.json" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("wrong", ['"x"', "7", "null"])
def test_an_impossible_accuracy_is_an_error(wrong: str, tmp_path: Path) -> None:
    made_up(tmp_path, "highway-a", [curve([0.25])])
    file = tmp_path / "highway-a-fast.json"
    file.write_text(file.read_text().replace("0.25", wrong))
    with pytest.raises(UserError, match="is damaged"):
        read_results(tmp_path)


def test_a_row_shows_best_mean_and_deviation_of_the_finished_runs(tmp_path: Path) -> None:
    ended = [curve([0.5] * 29 + [last], 60, "trained") for last in (0.994, 0.996)]
    made_up(tmp_path, "highway-mnist-16", [*ended, curve([0.7]), curve([0.1], status="diverged")])
    assert row(tmp_path, "highway-mnist-16") == (
        "| Highway, 10 layers, width 16 | MNIST | 39K | 99.43 (99.40 ± 0.03) "
        "| 99.60 (99.50 ± 0.14); 1 still training; 1 diverged | fast | 30 | 2 | 30 min | 1,000 | Abacus, 1 thread |"
    )
    assert core_hours(read_results(tmp_path)) == pytest.approx((30 + 30 + 1 + 1) / 60)
    assert "not yet run" in row(tmp_path, "highway-mnist-32")
    assert "| 90.78 | not trained here |" in "".join(table_lines("table3", []))


@pytest.mark.parametrize(("last", "said"), [(0.9925, "| 99.25; 0.29 below |"), (0.9954, "| 99.54 |")])
def test_a_row_says_by_how_much_it_is_below_the_published_mean(last: float, said: str, tmp_path: Path) -> None:
    made_up(tmp_path, "highway-mnist-32", [curve([0.5] * 29 + [last], status="trained")])
    assert said in row(tmp_path, "highway-mnist-32")


def test_an_unfinished_row_says_how_far_it_is_and_how_long_the_recipe_takes(tmp_path: Path) -> None:
    made_up(tmp_path, "highway-a", [curve([0.5] * 11 + [0.851], seconds=468)])
    wanted = "12 of 40 epochs: 85.10; the full recipe would take 5 h 12 min per seed on this machine"
    assert f"| {wanted} | fast | 12 of 40 | 1 |" in row(tmp_path, "highway-a")


def test_of_several_unfinished_seeds_the_furthest_count(tmp_path: Path) -> None:
    behind, lost = curve([0.9] * 3), curve([0.1] * 9, status="diverged")
    made_up(tmp_path, "highway-a", [behind, curve([0.5] * 4), curve([0.7] * 4), lost])
    wanted = "4 of 40 epochs: 70.00 (60.00 ± 14.14); the full recipe would take 40 min per seed on this machine"
    assert f"| {wanted}; 1 still training; 1 diverged | fast | 4 of 40 | 2 | 4 min |" in row(tmp_path, "highway-a")


def test_a_row_that_learns_hints_has_no_accuracy_and_no_cost_yet(tmp_path: Path) -> None:
    hints = read_recipe("fitnet-a-hints", "fast").distill.hint_epochs
    made_up(tmp_path, "fitnet-a-hints", [curve([0.1] * hints)])
    wanted = f"| {hints} of 40 epochs: hints, no accuracy yet | fast |"
    assert wanted in row(tmp_path, "fitnet-a-hints")
    made_up(tmp_path, "fitnet-a-hints", [curve([0.1] * hints + [0.3])])
    assert "30.00; the full recipe would take 40 min per seed" in row(tmp_path, "fitnet-a-hints")


def test_a_result_of_a_recipe_that_was_changed_says_so(tmp_path: Path) -> None:
    result = made_up(tmp_path, "highway-a", [curve([0.5] * 40, status="trained")])
    assert "| fast | 40 |" in row(tmp_path, "highway-a")
    assert result.config is not None
    result.config = replace(result.config, batch_size=7)
    result.write()
    assert "| fast, since changed | 40 |" in row(tmp_path, "highway-a")


def test_replaced_recipes_show_their_accuracy_and_their_settings(tmp_path: Path) -> None:
    assert replaced_recipes(tmp_path / "replaced") == []
    result = made_up(tmp_path / "replaced" / "1", "highway-a", [curve([0.5] * 39 + [0.88], status="trained")])
    assert result.config is not None
    result.config = replace(result.config, batch_size=7)
    result.write()
    wanted = "| Highway A, 11 layers | 89.18 | 88.00; 1.18 below | 40 | batch_size 7 |"
    assert len(replaced_recipes(tmp_path / "replaced")) == 1
    (tmp_path / "tables").mkdir()
    (tmp_path / "replaced").rename(tmp_path / "tables" / "replaced")
    assert wanted in results_page(tmp_path, tmp_path)


def test_the_authors_log_stands_beside_ours(tmp_path: Path) -> None:
    name = "highway-19-nin-cifar10"
    made_up(tmp_path, name, [curve([0.3, 0.4, 0.5])], "paper")
    made_up(tmp_path, "highway-mnist-32", [curve([0.9])], "paper")
    trial = TableResult(tmp_path, NAMED["highway-19-nin-cifar100"], "paper")
    trial.start(replace(read_recipe("highway-19-nin-cifar100", "paper"), data=DataConfig("digits")))
    trial.curves = {0: curve([0.8])}
    found = [*read_results(tmp_path), trial]
    assert "| 1 | 95.88 | 90.00 |" in log_lines(found, "table1")
    lines = log_lines(found, "table3")
    assert "| 1 | 33.84 | 30.00 | 2.61 | |" in lines
    assert "| 3 | | 50.00 | | |" in lines
    assert "| 400 | 92.14 | | 68.09 | |" in lines
    assert AUTHOR_LOGS[name][201] == 90.38


def test_the_time_left_is_estimated_from_multiply_adds(tmp_path: Path) -> None:
    def rest(epochs: int | None = None) -> str:
        return time_left(Tables(rows, "fast", tmp_path, tmp_path / "runs", (0,), epochs), 2)

    rows = tuple(NAMED[name] for name in ("highway-a", "highway-b"))
    assert rest() == "no epoch trained yet"
    made_up(tmp_path, "highway-a", [curve([0.5] * 10, seconds=60)])
    assert int(rest().split(" h ")[0]) >= 2  # Highway B has about ten times the multiply-adds
    made_up(tmp_path, "highway-b", [curve([0.5] * 10, seconds=120)])
    assert rest(20) == "15 min left up to epoch 20"


@pytest.mark.parametrize(("text", "seeds"), [("3", (0, 1, 2)), ("0,4", (0, 4)), ("2,", (2,)), (None, None)])
def test_seeds_are_a_number_or_a_list(text: str | None, seeds: tuple[int, ...] | None) -> None:
    assert read_seeds(text) == seeds


def test_rows_are_selected_by_name() -> None:
    assert [row.name for row in selected_rows(("table1",))] == [
        *("highway-mnist-16", "highway-mnist-32", "maxout-mnist", "dsn-mnist")
    ]
    assert selected_rows(("table2",), "highway-a") == (NAMED["highway-a"],)
    assert {row.table for row in TABLE_ROWS} == set(TABLES)


def test_with_nothing_trained_everything_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results"
    assert main(["reproduce", "table3", "--minutes", "0", "--results", str(results)]) == 0
    said = capsys.readouterr().out
    assert said.count("not yet run") == sum(row.table == "table3" for row in NAMED.values())
    page = (results / "results.md").read_text()
    assert "Not yet run: `verydeep reproduce fig1`." in page
    made_up(results / "tables", "highway-a", [curve([0.5, 0.6])])
    assert main(["reproduce", "table2", "--minutes", "0", "--results", str(results)]) == 0
    assert (
        "![Test accuracy by epoch; the dashed lines are the published values](./tables/curves.png)"
        in (results / "results.md").read_text()
    )
    assert (results / "tables" / "curves.svg").exists()


def test_the_page_of_results_is_what_the_results_say() -> None:
    """If it is not: verydeep reproduce all --minutes 0."""
    assert (ROOT / "docs" / "results.md").read_text() == results_page(ROOT / "results", ROOT / "docs")


def test_the_page_in_docs_is_written_only_from_results_and_never_over_another(tmp_path: Path) -> None:
    results, other, page = tmp_path / "results", tmp_path / "try", tmp_path / "docs" / "results.md"
    assert page_path(results) == results / "results.md"
    page.parent.mkdir()
    assert page_path(results) == page
    assert page_path(results, quick=True) == results / "results.md"
    assert page_path(other) == other / "results.md"
    page.write_text(results_page(results, page.parent))
    assert page_path(results) == page
    page.write_text("# Results\n\nOf my thesis.\n")
    assert page_path(results) == results / "results.md"


@pytest.mark.slow
def test_a_table_trained_in_pieces_equals_one_trained_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def reproduce(folder: str, *options: str) -> tuple[str, list[Any]]:
        arguments = ["--quick", "--only", "highway-a", "--jobs", "1", "--results", str(tmp_path / folder), *options]
        assert main(["reproduce", "table2", *arguments]) == 0
        found = json.loads((tmp_path / folder / "tables" / "highway-a-fast.json").read_text())
        return capsys.readouterr().out, [line["test_accuracy"] for line in found["seeds"][0]["metrics"]]

    _, whole = reproduce("whole")
    said, half = reproduce("pieces", "--epochs", "1")
    assert "1 of 2 epochs" in said
    assert half == whole[:1]
    runs = tmp_path / "pieces" / "runs" / "tables"
    without_study(runs)
    said, both = reproduce("pieces")
    assert both == whole
    assert "nothing left" in said
    run = Run.load(runs / "highway-a-fast" / "seed-0")
    assert run.summary is not None
    assert [line.test_accuracy for line in run.metrics] == whole
    assert "training from epoch 1 batch 0" in (run.path / "events.log").read_text()
    assert not (run.path / "checkpoint").exists()


def quick(folder: Path, names: str, **options: Any) -> Tables:
    rows = selected_rows(("table2",), names)
    return Tables(rows, "fast", folder / "tables", folder / "runs" / "tables", quick=True, **options)


def train_here(tables: Tables) -> list[str]:
    """Train in this process, as `verydeep worker` does."""
    lines: list[str] = []
    tables._start(tables.missing(), StudyOptions())
    assert work(open_study(tables.runs), report=lines.append)
    tables.collect(StudyOptions())
    return lines


@pytest.mark.slow
def test_an_epoch_that_a_lost_run_trains_again_is_recorded_once(tmp_path: Path) -> None:
    assert train_here(quick(tmp_path, "highway-a", epochs=1)) == ["highway-a-fast/seed-0: paused after 1 epoch"]
    shutil.rmtree(tmp_path / "runs")
    assert train_here(quick(tmp_path, "highway-a")) == ["highway-a-fast/seed-0: finished after 2 epochs"]
    kept = TableResult(tmp_path / "tables", NAMED["highway-a"], "fast").curves[0]
    assert [line.epoch for line in kept.metrics] == [1, 2]
    assert kept.status == "trained"
    assert len(Run.load(tmp_path / "runs" / "tables" / "highway-a-fast" / "seed-0").metrics) == 2


@pytest.mark.slow
def test_rows_with_hints_bring_their_teacher_and_any_worker_trains_both(tmp_path: Path) -> None:
    tables = quick(tmp_path, "fitnet-a-hints", seeds=(3,))
    assert tables.missing() == [(TEACHER, 0), (NAMED["fitnet-a-hints"], 3)]
    tables._start(tables.missing(), StudyOptions())
    lines: list[str] = []
    assert work(open_study(tables.runs), report=lines.append)  # as verydeep worker does
    assert lines == [
        f"{name}: finished after 2 epochs" for name in ("maxout-fast/seed-0", "fitnet-a-hints-fast/seed-3")
    ]
    arguments = ["--quick", "--only", "fitnet-a-hints", "--seeds", "3,", "--results", str(tmp_path), "--minutes", "0"]
    assert main(["reproduce", "table2", *arguments]) == 0
    kept = {name: TableResult(tmp_path / "tables", NAMED[name], "fast") for name in ("maxout", "fitnet-a-hints")}
    assert [(seed, each.status) for result in kept.values() for seed, each in result.curves.items()] == [
        (0, "trained"),
        (3, "trained"),
    ]
    assert kept["maxout"].curves[0].environment["threads"] == 1
    both = quick(tmp_path, "maxout,fitnet-a-hints", seeds=(3,))
    assert both.missing() == [(TEACHER, 3)]
    assert quick(tmp_path, "fitnet-a-hints", seeds=(0,)).missing() == [(NAMED["fitnet-a-hints"], 0)]
    shutil.rmtree(tmp_path / "runs")  # which nobody keeps as long as the results
    study = both._start(both.missing(), StudyOptions())
    assert {record.name: record.status for record in study.records()} == {"maxout-fast/seed-3": "waiting"}


def test_a_student_waits_for_its_teacher(tmp_path: Path) -> None:
    tables = quick(tmp_path, "fitnet-a-hints")
    study = tables._start(tables.missing(), StudyOptions())
    student, teacher = "fitnet-a-hints-fast/seed-0", "maxout-fast/seed-0"
    assert {task.name: task.state for task in study.tasks()} == {teacher: "ready", student: "blocked"}
    study.add_result(teacher, "finished", list(curve([0.1, 0.2]).metrics))
    assert {task.name: task.state for task in study.tasks()} == {teacher: "done", student: "ready"}


@pytest.mark.slow
def test_a_teacher_stops_for_now_where_its_students_would(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--quick", "--only", "fitnet-a-hints", "--jobs", "1", "--results", str(tmp_path)]
    assert main(["reproduce", "table2", *arguments, "--epochs", "1"]) == 0
    said = capsys.readouterr().out
    assert "fitnet-a-hints-fast/seed-0 needs maxout-fast/seed-0, which is paused" in said
    assert "train it to its end, without --epochs" in said
    assert len(TableResult(tmp_path / "tables", TEACHER, "fast").curves[0].metrics) == 1


def test_a_diverged_teacher_is_reported_and_does_not_stop_other_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = quick(tmp_path, "maxout").found[TEACHER]
    assert result.add(0, curve([0.1]).metrics, MACHINE, "diverged")
    result.write()
    arguments = ["--quick", "--only", "maxout,fitnet-a-hints", "--jobs", "1", "--results", str(tmp_path)]
    assert main(["reproduce", "table2", *arguments]) == 0
    said = capsys.readouterr().out
    assert "fitnet-a-hints-fast/seed-0 needs maxout-fast/seed-0, which diverged" in said
    assert (tmp_path / "results.md").exists()


def test_a_training_that_fails_is_an_error_and_is_tried_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = quick(tmp_path, "highway-a")
    study = tables._start(tables.missing(), StudyOptions())
    study.add_result("highway-a-fast/seed-0", "failed", [])
    statuses: list[str] = []

    def fail(study: Any, *, only: list[str], **_: object) -> None:
        statuses.extend(record.status for record in study.records(only))
        study.add_result(only[0], "failed", [])

    monkeypatch.setattr("verydeep.paper._train_study.run_study", fail)
    assert main(["reproduce", "table2", "--quick", "--only", "highway-a", "--results", str(tmp_path)]) == 2
    assert "highway-a-fast/seed-0 failed: " in capsys.readouterr().err
    assert statuses == ["waiting"]


def test_several_commands_record_each_others_epochs_without_losing_any(tmp_path: Path) -> None:
    def record(tables: Tables, seed: int, accuracies: list[float], status: str) -> None:
        metrics, name = list(curve(accuracies).metrics), f"highway-a-fast/seed-{seed}"
        tables._record(TrainingRecord(seed, status, curve=metrics, name=name, group="highway-a-fast"))

    first, second = (quick(tmp_path, "highway-a", seeds=(0, 1)) for _ in range(2))
    record(first, 0, [0.1], "training")
    record(second, 1, [0.3], "training")
    record(second, 0, [0.1, 0.2], "training")
    record(first, 0, [0.1, 0.2], "finished")
    record(second, 1, [0.3, 0.4], "finished")
    kept = TableResult(tmp_path / "tables", NAMED["highway-a"], "fast").curves
    assert {seed: [line.test_accuracy for line in each.metrics] for seed, each in kept.items()} == {
        0: [0.1, 0.2],
        1: [0.3, 0.4],
    }
    assert {each.status for each in kept.values()} == {"trained"}
    assert not quick(tmp_path, "highway-a", seeds=(0, 1)).missing()


def test_commands_with_other_folders_of_runs_do_not_overwrite_each_others_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = (
        Tables(selected_rows(("table2",), "highway-a"), "fast", tmp_path, tmp_path / runs, (0, 1), quick=True)
        for runs in ("here", "there")
    )
    zero, one = (
        TrainingRecord(seed, "training", curve=list(curve([0.1]).metrics), group="highway-a-fast") for seed in (0, 1)
    )
    write, other = TableResult.write, Thread(target=there._record, args=(one,))

    def overtaken(result: TableResult) -> None:
        monkeypatch.setattr(TableResult, "write", write)
        other.start()
        other.join(0.3)
        write(result)

    monkeypatch.setattr(TableResult, "write", overtaken)
    here._record(zero)
    other.join()
    assert TableResult(tmp_path, NAMED["highway-a"], "fast").curves.keys() == {0, 1}


def test_seeds_of_earlier_commands_stay_in_the_study(tmp_path: Path) -> None:
    for seeds in ((3,), (0, 1)):
        tables = quick(tmp_path, "highway-a", seeds=seeds)
        study = tables._start(tables.missing(), StudyOptions())
    assert study.groups[0].seeds == (0, 1, 3)


def test_a_row_starts_again_after_its_recipe_has_changed_and_its_results_are_gone(tmp_path: Path) -> None:
    tables = quick(tmp_path, "highway-a,highway-b")
    study = tables._start(tables.missing(), StudyOptions())
    for name in ("highway-a-fast/seed-0", "highway-b-fast/seed-0"):
        study.add_result(name, "finished", list(curve([0.1, 0.2]).metrics))
    changed = quick(tmp_path, "highway-a,highway-b")
    changed.configs[NAMED["highway-a"]] = replace(changed.configs[NAMED["highway-a"]], epochs=3)
    changed.collect(StudyOptions())
    assert [result.row.name for result in read_results(tmp_path / "tables")] == ["highway-b"]
    study = changed._start([(NAMED["highway-a"], 0)], StudyOptions())
    assert [record.status for record in study.records()] == ["waiting", "finished"]


def test_runs_are_in_one_place_for_one_table_and_for_all(tmp_path: Path) -> None:
    found = {}
    for what in ("table2", "fig1", "all"):
        options = read_options(
            ReproduceOptions, "reproduce", [what, "--runs", str(tmp_path), "--results", str(tmp_path)]
        )
        if what != "fig1":
            found[what] = _tables(options, ("table2",), tmp_path).runs
        if what != "table2":
            assert _fig1_study(options).runs == tmp_path / "fig1"
    assert found == dict.fromkeys(("table2", "all"), tmp_path / "tables")


@pytest.mark.slow
def test_a_seed_stopped_after_its_last_epoch_gets_its_status_the_next_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["reproduce", "table2", "--quick", "--only", "highway-a", "--jobs", "1", "--results", str(tmp_path)]
    assert main(arguments) == 0
    file = tmp_path / "tables" / "highway-a-fast.json"
    trained = json.loads(file.read_text())["seeds"]
    file.write_text(file.read_text().replace('"status": "trained"', '"status": "training"'))
    assert main([*arguments, "--epochs", "1"]) == 0
    assert json.loads(file.read_text())["seeds"] == trained
    shutil.rmtree(tmp_path / "runs")
    assert main(arguments) == 0
    assert not (tmp_path / "runs").exists()  # the results are complete
    assert "nothing left" in capsys.readouterr().out


def test_the_hints_layers_have_shapes_that_fit() -> None:
    """FitNets take the maps after pooling: 192x7x7 of the teacher, 80x8x8 of FitNet B."""
    for name, maps in (("fitnet-a-hints", 32), ("fitnet-b-hints", 80)):
        config = read_recipe(name, "fast")
        student, teacher = create_model(config.model.name), create_model("maxout")
        x = torch.zeros(1, 3, 32, 32)
        assert teacher.features(x, config.distill.hint).shape == (1, 192, 7, 7)  # type: ignore[operator]
        assert student.features(x, config.distill.guided).shape == (1, maps, 8, 8)  # type: ignore[operator]
        regressor = _make_regressor(student, teacher, config.distill)
        assert regressor.weight.shape == (192, maps, 2, 2)


_WORDS = {
    "data.augment.pad": "translat",
    "data.augment.rotate": "rotated",
    "data.augment.scale": "scaled",
    "label_smoothing": "smoothed labels",
    "model.dropout": "dropout",
    "model.gate_bias": "gate bias",
    "model.init": "initial weights",
    "optim.bias_lr": "for biases",
    "optim.classifier_decay": "on the classifier",
    "optim.classifier_lr": "last layer",
    "optim.clip": "clipped gradients",
    "optim.lr": "learning rate",
    "optim.name": "Muon",
    "optim.momentum": "momentum 0.9",
    "optim.nesterov": "Nesterov",
    "batch_size": "batches of",
    "companion.head_lr": "companions",
    "optim.weight_decay": "weight decay",
    "ema_half_life": "average",
    "schedule.name": "schedule",
}


@pytest.mark.parametrize("name", [name for name in NAMED if not name.endswith("-hints")])
def test_a_fast_recipe_says_what_it_changes_and_nothing_else(name: str) -> None:
    file = ROOT / "configs" / "fast" / f"{name}.toml"
    while "What differs" not in (text := file.read_text()):  # recipes in common say it once
        file = file.parent / tomllib.loads(text)["extends"]
    comment = " ".join(line.removeprefix("# ") for line in text.splitlines() if line.startswith("#"))
    said = comment.rpartition("What differs")[2]
    paper, fast = (dotted(to_dict(read_recipe(name, recipe))) for recipe in ("paper", "fast"))
    changed = {field for field in paper if paper[field] != fast[field]}
    schedule = {"schedule.milestones", "schedule.warmup", "schedule.factor"}
    assert changed - {"epochs", "companion.until", "model.classifier_std", *schedule} <= _WORDS.keys()
    assert {field for field, words in _WORDS.items() if words in said} == changed & _WORDS.keys()
