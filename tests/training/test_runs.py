import json
from collections.abc import Callable
from pathlib import Path

import pytest
from torch import nn

from verydeep.cli import main
from verydeep.cli._console import console
from verydeep.data import Dataset
from verydeep.errors import UserError
from verydeep.lock import exclusive_lock, is_held
from verydeep.training import OptimConfig, RunInfo, TrainConfig, list_runs, train

Configure = Callable[..., TrainConfig]


def named(folder: Path) -> dict[str, RunInfo]:
    return {run.name: run for run in list_runs(folder)}


def test_a_run_is_listed_with_what_it_reached(tmp_path: Path, tiny: Dataset, configure: Configure) -> None:
    run = train(configure(), tmp_path / "a", dataset=tiny)
    info = named(tmp_path)["a"]
    assert (info.status, info.epochs_done, info.epochs) == ("finished", 2, 2)
    assert (info.model, info.data, info.depth) == ("highway-mlp", "tiny", 3)
    assert info.parameters == sum(p.numel() for p in run.model.parameters())
    assert info.valid_accuracy == max(line.to_dict()["valid_accuracy"] for line in run.metrics)
    assert info.test_accuracy == getattr(run.measured, "test_accuracy", None)
    assert info.loss == run.metrics[-1].loss


def test_the_status_says_how_a_run_ended(tmp_path: Path, tiny: Dataset, configure: Configure) -> None:
    train(configure(optim=OptimConfig(lr=1e6)), tmp_path / "diverged", dataset=tiny)
    train(configure(optim=OptimConfig(lr=1e-9), patience=1, epochs=9), tmp_path / "early", dataset=tiny)
    killed = train(configure(), tmp_path / "killed", dataset=tiny)
    (killed.path / "summary.json").unlink()
    runs = named(tmp_path)
    assert runs["diverged"].status == "diverged"
    assert runs["early"].status == "stopped early"
    assert runs["killed"].status == "unfinished"
    killed.log("interrupted")
    assert named(tmp_path)["killed"].status == "interrupted"


def test_a_run_that_a_process_works_on_is_training(tmp_path: Path, tiny: Dataset, configure: Configure) -> None:
    run = train(configure(), tmp_path / "a", dataset=tiny)
    (run.path / "summary.json").unlink()
    with exclusive_lock(run.path / "lock", "busy"):
        assert named(tmp_path)["a"].status == "training"
    assert not is_held(run.path / "lock")
    assert not is_held(tmp_path / "no such lock")
    assert not (tmp_path / "no such lock").exists()


def test_modules_of_your_own_and_runs_in_folders_are_listed(
    tmp_path: Path, tiny: Dataset, configure: Configure
) -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
    train(configure(), tmp_path / "seeds" / "seed-0", dataset=tiny, model=model)
    info = named(tmp_path)["seeds/seed-0"]
    assert (info.model, info.depth, info.parameters) == ("(your own)", None, 51)


def test_broken_folders_do_not_break_the_list(
    tmp_path: Path, tiny: Dataset, configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    train(configure(), tmp_path / "good", dataset=tiny)
    spoilt = {
        "cut/config.json": "{",
        "list/config.json": "[]",
        "old/config.json": '{"format": 99}',
        "lost/environment.json": "{}",
        "empty/notes.txt": "nothing",
    }
    for name, text in spoilt.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    bad = train(configure(), tmp_path / "metrics", dataset=tiny)
    (bad.path / "metrics.jsonl").write_text("{nonsense}\n")
    odd = train(configure(), tmp_path / "odd", dataset=tiny)
    (odd.path / "metrics.jsonl").write_text("3\n")
    runs = named(tmp_path)
    assert {name for name, run in runs.items() if run.status == "broken"} == {
        "cut",
        "list",
        "old",
        "lost",
        "metrics",
        "odd",
    }
    assert all(run.problem for run in runs.values() if run.status == "broken")
    assert runs["good"].status == "finished"
    assert main(["runs", str(tmp_path)]) == 0
    assert "good" in capsys.readouterr().out


def test_the_list_comes_as_json_and_as_a_table(
    tmp_path: Path, tiny: Dataset, configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    train(configure(), tmp_path / "first", dataset=tiny)
    train(configure(), tmp_path / "second", dataset=tiny)
    assert main(["runs", str(tmp_path), "--json"]) == 0
    assert [run["name"] for run in json.loads(capsys.readouterr().out)] == ["first", "second"]
    assert main(["runs", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert printed.index("first") < printed.index("second")
    assert printed.count("finished") == 2


def test_the_trials_of_a_search_are_listed_in_its_own_folder_only(
    tmp_path: Path, tiny: Dataset, configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    study = tmp_path / "study"
    train(configure(), tmp_path / "run", dataset=tiny)
    train(configure(), study / "trials" / "0000", dataset=tiny)
    (study / "study.json").write_text("{}")
    assert list(named(tmp_path)) == ["run"]
    assert list(named(study)) == ["trials/0000"]
    assert main(["runs", str(tmp_path)]) == 0
    assert f"{study} is a search" in capsys.readouterr().out
    assert main(["runs", str(study)]) == 0
    assert "is a search" not in capsys.readouterr().out


def test_the_runs_of_other_studies_are_listed_but_not_their_searched_settings(
    tmp_path: Path, tiny: Dataset, configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    study = tmp_path / "tables"
    train(configure(), study / "highway" / "seed-0", dataset=tiny)
    train(configure(), study / "plain-10" / "0007", dataset=tiny)
    (study / "study.json").write_text("{}")
    assert list(named(tmp_path)) == ["tables/highway/seed-0"]
    assert list(named(study)) == ["highway/seed-0", "plain-10/0007"]
    assert main(["eval", str(study)]) == 2
    assert "is a study of several runs; verydeep runs" in capsys.readouterr().err


def test_folders_without_runs_are_said_to_be_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"no runs in {tmp_path}\n"
    with pytest.raises(UserError, match="no such folder"):
        list_runs(tmp_path / "none")


@pytest.mark.parametrize("width", [40, 60, 100])
def test_the_tables_fit_narrow_terminals(
    width: int,
    tmp_path: Path,
    tiny: Dataset,
    configure: Configure,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(console, "width", width)
    names = ["a-run-with-a-rather-long-name-as-they-are", "b"]
    for name in names:
        train(configure(epochs=1, optim=OptimConfig(lr=0.1 * len(name))), tmp_path / name, dataset=tiny)
    assert main(["runs", str(tmp_path)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].split()[:2] == ["run", "epochs" if width < 100 else "model"]
    assert main(["compare", *(str(tmp_path / name) for name in names)]) == 0
    compared = capsys.readouterr().out.splitlines()
    table = compared[: compared.index("")]
    assert max(map(len, [*shown, *table])) <= width
    assert all("finished" in line and "1/1" in line for line in [*shown[1:3], *table[1:3]])
