import json
from collections.abc import Callable
from pathlib import Path

import pytest

from verydeep.cli import main
from verydeep.cli.commands._compare import short_names
from verydeep.data import Dataset
from verydeep.errors import UserError
from verydeep.lock import exclusive_lock
from verydeep.studies import Seeds
from verydeep.training import ModelConfig, OptimConfig, Run, TrainConfig, compare_runs, remove_run, train

Configure = Callable[..., TrainConfig]


@pytest.fixture
def pair(tmp_path: Path, tiny: Dataset, configure: Configure) -> tuple[Run, Run]:
    first = train(configure(optim=OptimConfig(lr=0.1)), tmp_path / "a", dataset=tiny)
    other = configure(optim=OptimConfig(lr=0.2), model=ModelConfig("plain-mlp", depth=4, width=6), epochs=3)
    return first, train(other, tmp_path / "b", dataset=tiny)


def seeds_folder(path: Path, tiny: Dataset, config: TrainConfig, seeds: tuple[int, ...]) -> Path:
    folder = Seeds.create(path, config, seeds)
    for seed in seeds:
        train(TrainConfig(**vars(config) | {"seed": seed}), folder.folder(seed), dataset=tiny)
    return path


def test_settings_that_differ_and_results_stand_side_by_side(pair: tuple[Run, Run]) -> None:
    found = compare_runs(*pair)
    assert found.settings == {
        "model.name": ("highway-mlp", "plain-mlp"),
        "model.depth": (3, 4),
        "optim.lr": (0.1, 0.2),
        "epochs": (2, 3),
    } | {name: row for name, row in found.settings.items() if name == "model.gate_bias"}
    for run, compared in zip(pair, found.runs, strict=True):
        assert run.measured is not None
        assert compared.test_accuracy == run.measured.test_accuracy
        assert compared.loss == run.metrics[-1].loss
        assert compared.metrics == tuple(run.metrics)
        assert (compared.status, compared.epochs_done) == ("finished", run.config.epochs)


def test_a_comparison_shows_itself_in_a_line_and_in_a_notebook(pair: tuple[Run, Run]) -> None:
    comparison = compare_runs(*pair)
    assert "EpochMetrics" not in repr(comparison.runs[0])
    first, second = pair
    assert repr(comparison).startswith(f"<RunComparison: {first.path} and {second.path}, which differ in ")
    assert repr(compare_runs(first, first)).endswith("which differ in no setting>")
    html = comparison._repr_html_()
    assert all(part in html for part in (str(first.path), "test accuracy", *comparison.settings))


def test_what_a_network_chose_for_itself_is_compared(tmp_path: Path, tiny: Dataset, configure: Configure) -> None:
    train(configure(model=ModelConfig(depth=3, width=6, gate_bias=-7.0)), tmp_path / "a", dataset=tiny)
    train(configure(model=ModelConfig(depth=3, width=6)), tmp_path / "b", dataset=tiny)
    chosen = json.loads((tmp_path / "b" / "config.json").read_text())["config"]["gate_bias"]
    assert compare_runs(tmp_path / "a", tmp_path / "b").settings == {"model.gate_bias": (-7.0, chosen)}


def test_a_folder_of_seeds_counts_with_its_mean(tmp_path: Path, tiny: Dataset, configure: Configure) -> None:
    folder = seeds_folder(tmp_path / "five", tiny, configure(), (0, 1, 2))
    train(configure(), tmp_path / "one", dataset=tiny)
    several, one = compare_runs(folder, tmp_path / "one").runs
    runs = Seeds.load(folder).runs.values()
    accuracies = [line.test_accuracy for run in runs if (line := run.measured) and line.test_accuracy is not None]
    assert several.test_accuracy == pytest.approx(sum(accuracies) / 3)
    assert several.test_accuracy_std is not None
    assert (several.seeds, one.seeds, one.test_accuracy_std) == ((0, 1, 2), (0,), None)
    losses = [run.metrics[1].loss or 0 for run in runs]
    assert several.metrics[1].loss == pytest.approx(sum(losses) / 3)


def test_unfinished_and_untrained_runs_are_compared(pair: tuple[Run, Run], tmp_path: Path) -> None:
    (pair[0].path / "summary.json").unlink()
    (pair[1].path / "metrics.jsonl").unlink()
    first, second = compare_runs(*pair).runs
    assert first.status == "unfinished"
    assert (second.epochs_done, second.loss, second.metrics) == (0, None, ())


def test_a_comparison_needs_two_runs(pair: tuple[Run, Run], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="two runs or more"):
        compare_runs(pair[0])
    with pytest.raises(UserError, match="nowhere"):
        compare_runs(pair[0], tmp_path / "nowhere")


def test_the_command_prints_tables_and_draws_curves(
    pair: tuple[Run, Run], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "curves.png"
    assert main(["compare", str(pair[0].path), str(pair[1].path), "-o", str(picture)]) == 0
    shown = capsys.readouterr().out
    rows = {line.split()[0]: line.split()[1:] for line in shown.splitlines() if line.split()}
    assert rows["optim.lr"] == ["0.1", "0.2"]
    assert rows["setting"] == ["a", "b"]
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main(["compare", str(pair[0].path), str(pair[1].path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["settings"]["optim.lr"] == [0.1, 0.2]
    assert len(found["runs"][1]["metrics"]) == 3


def test_a_metric_that_no_run_has_is_not_drawn(
    pair: tuple[Run, Run], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "curves.png"
    command = ["compare", str(pair[0].path), str(pair[1].path), "-o", str(picture), "--metric", "train_loss"]
    assert main(command) == 2
    assert "none of these runs has measured train_loss" in capsys.readouterr().err
    assert not picture.exists()


def test_equal_runs_have_no_settings_to_show(
    tmp_path: Path, tiny: Dataset, configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    run = train(configure(), tmp_path / "a", dataset=tiny)
    assert main(["compare", str(run.path), str(run.path)]) == 0
    assert "all settings are equal" in capsys.readouterr().out


def test_names_are_shortened_where_that_is_unambiguous() -> None:
    assert short_names(["runs/a", "runs/b/c"]) == ["a", "b/c"]
    assert short_names(["runs/a", "other/a"]) == ["runs/a", "other/a"]
    assert short_names(["a", "a"]) == ["a (1)", "a (2)"]


def test_a_run_is_removed_with_everything_in_it(pair: tuple[Run, Run], tmp_path: Path) -> None:
    remove_run(pair[0])
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_a_folder_of_seeds_is_removed(tmp_path: Path, tiny: Dataset, configure: Configure) -> None:
    remove_run(seeds_folder(tmp_path / "five", tiny, configure(epochs=1), (0, 1)))
    assert list(tmp_path.iterdir()) == []


def test_a_run_in_training_and_what_is_not_a_run_stay(
    pair: tuple[Run, Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = pair[0].path
    with exclusive_lock(run / "lock", "busy"), pytest.raises(UserError, match="is being trained by another process"):
        remove_run(run)
    for path in (tmp_path, tmp_path / "nowhere", run / "config.json"):
        with pytest.raises(UserError, match=r"not a run|no such run"):
            remove_run(path)
    (tmp_path / "link").symlink_to(run)
    with pytest.raises(UserError, match="is a link"):
        remove_run(tmp_path / "link")
    monkeypatch.chdir(run)
    with pytest.raises(UserError, match="working directory"):
        remove_run(run)
    assert (run / "model.safetensors").exists()


def test_the_command_removes_runs_of_the_listed_folder_only(
    pair: tuple[Run, Run], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    pair[0].path.rename(folder / "a")
    assert main(["runs", str(folder), "--remove", "a"]) == 2
    assert "add --yes" in capsys.readouterr().err
    assert main(["runs", str(folder), "--yes", "--remove", str(pair[1].path)]) == 2
    assert "is not inside" in capsys.readouterr().err
    assert main(["runs", str(folder), "--yes", "--remove", "../b"]) == 2
    assert pair[1].path.exists()
    assert main(["runs", str(folder), "--remove", "--yes"]) == 2
    assert "name the runs to remove" in capsys.readouterr().err
    assert main(["runs", str(folder), "--remove", "a/../a", "--yes"]) == 0
    assert capsys.readouterr().out == f"removed {folder / 'a/../a'}\n"
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(("answer", "stays"), [("y", False), ("", True), ("no", True)])
def test_the_command_asks_before_it_removes(
    pair: tuple[Run, Run], tmp_path: Path, answer: str, stays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda question: answer)
    assert main(["runs", str(tmp_path), "--remove", "a"]) == 0
    assert pair[0].path.exists() == stays
