"""`verydeep train`: what it takes from files and options, and what it says of mistakes."""

import json
from pathlib import Path
from typing import Any

import pytest

from verydeep.cli import main
from verydeep.config import from_dict
from verydeep.errors import UserError
from verydeep.training import Run, TrainConfig

TINY = """
epochs = 2
batch_size = 100
threads = 1

[data]
source = "digits"
validation = 0.2

[model]
depth = 3
width = 6
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("verydeep: ")
    assert printed.err.count("\n") == 1
    return printed.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("epoch = 3", "{file}: unknown setting 'epoch'; did you mean 'epochs'?"),
        ("optim = {lrr = 3}", "{file}: unknown setting 'lrr' in [optim]; did you mean 'lr'?"),
        ("[schedul]\nfactor = 1", "{file}: unknown table 'schedul'; did you mean [schedule]?"),
        ("epochs = 'ten'", "{file}: epochs: expected int, got str 'ten'"),
        ("schedule = {name = 'cosin'}", "{file}: schedule.name: expected 'constant' or"),
        ("epochs = 0", "epochs must be at least 1, got 0"),
        ("batch_size = -1", "batch_size must be at least 1, got -1"),
        ("threads = 0", "threads must be from 1 to 1024, got 0"),
        ("patience = 0", "patience must be at least 1, got 0"),
        ("seed = -1", "seed must be at least 0 and less than 2 ** 63, got -1"),
        ("seed = 100000000000000000000", "seed must be at least 0 and less than 2 ** 63, got 1"),
        ("checkpoint_every = -0.1", "checkpoint_every must be 0 or more"),
        ("divergence_factor = 1.0", "divergence_factor must be more than 1"),
        ("optim = {lr = 0}", "optim.lr must be more than 0"),
        ("optim = {lr = nan}", "optim.lr must be more than 0, and finite, got nan"),
        ("optim = {lr = inf}", "optim.lr must be more than 0, and finite, got inf"),
        ("optim = {momentum = 1.0}", "optim.momentum must be at least 0 and less than 1"),
        ("optim = {momentum = 0.0, nesterov = true}", "optim.nesterov needs optim.momentum above 0"),
        ("optim = {weight_decay = -1.0}", "optim.weight_decay must be 0 or more"),
        ("optim = {bias_lr = -1.0}", "optim.bias_lr must be 0 or more"),
        ("optim = {classifier_decay = -1.0}", "optim.classifier_decay must be 0 or more"),
        ("optim = {clip = 0.0}", "optim.clip must be more than 0"),
        ("schedule = {name = 'multistep'}", "schedule.milestones: a multistep schedule needs at least one"),
        ("schedule = {milestones = [5, 3]}", "schedule.milestones must be ascending numbers of epochs"),
        ("schedule = {warmup = 1.0}", "schedule.warmup must be at least 0 and less than 1"),
        ("schedule = {factor = 1.5}", "schedule.factor must be more than 0 and at most 1"),
        ("model = {name = 'highway-mpl'}\ndata = {source = 'digits'}", "did you mean 'highway-mlp'?"),
        ("model = {depth = 1}\ndata = {source = 'digits'}", "depth must be at least 2"),
        ("device = 'abacus'\ndata = {source = 'digits'}", "device 'abacus' cannot be used"),
        ("epochs = ", "{file} is not TOML"),
        ("data = {source = 'nowhere.csv'}", "nowhere.csv"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(
    text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(text)
    assert main(["train", str(file), "--folder", str(tmp_path / "run")]) == 2
    assert words.format(file=file) in one_line(capsys)
    assert not (tmp_path / "run" / "config.json").exists()


def test_a_file_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", str(tmp_path / "no.toml")]) == 2
    assert f"there is no configuration '{tmp_path / 'no.toml'}'" in one_line(capsys)


def test_a_mistyped_option_names_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--optim.lrr", "1"]) == 2
    assert "did you mean --optim.lr?" in one_line(capsys)


def test_options_win_over_the_file_and_all_of_it_is_saved(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "run"
    assert main(["train", str(file), "--folder", str(path), "--epochs", "1", "--optim.lr", "0.5", "--quiet"]) == 0
    saved = json.loads((path / "config.json").read_text())["training"]
    config = Run.load(path).config
    assert (config.epochs, config.optim.lr, config.batch_size, config.model.depth) == (1, 0.5, 100, 3)
    assert from_dict(TrainConfig, saved) == config
    assert set(saved) == set(TrainConfig.__dataclass_fields__)
    environment = json.loads((path / "environment.json").read_text())
    assert {"torch", "python", "threads", "processor", "git", "verydeep"} <= set(environment)


def test_the_file_comes_first_so_that_it_is_never_overlooked(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--epochs", "1", str(file)]) == 2
    assert "the configuration file comes first" in one_line(capsys)


def test_a_line_an_epoch_where_there_is_no_terminal_and_nothing_when_quiet(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", str(file), "--folder", str(tmp_path / "a")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines[:2]] == ["epoch 1/2", "epoch 2/2"]
    assert all(word in lines[0] for word in ("loss ", "valid ", "test ", "%", "lr 0.01"))
    assert lines[2].startswith("finished after 2 epochs: ")
    assert lines[2].endswith(str(tmp_path / "a"))
    assert main(["train", str(file), "--folder", str(tmp_path / "b"), "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_the_last_line_says_which_epoch_is_kept(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    assert main(["train", str(file), "--folder", str(run), "--quiet"]) == 0
    summary = json.loads((run / "summary.json").read_text())
    first = json.loads((run / "metrics.jsonl").read_text().splitlines()[0])
    (run / "summary.json").write_text(json.dumps(summary | {"best": first}))
    assert main(["train", "--resume", str(run)]) == 0
    wanted = f"finished after 2 epochs, the best after 1: accuracy {first['accuracy']:.2%}"
    assert capsys.readouterr().out.splitlines()[1].startswith(wanted)


def test_runs_are_numbered_unless_named(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        main(["train", str(file), "--quiet", "--epochs", "1"])
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == [f"highway-mlp-digits-{n}" for n in (1, 2)]


@pytest.mark.parametrize("command", [["--folder"], ["--resume"]])
def test_a_folder_that_cannot_be_a_run_is_refused(
    command: list[str], file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = [str(file)] if command == ["--folder"] else []
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("")
    for path in (tmp_path / "full", file, file / "below"):
        assert main(["train", *first, *command, str(path)]) == 2
        assert str(path) in one_line(capsys)
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["thesis.tex"]


def test_a_finished_run_is_neither_overwritten_nor_trained_again(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run"
    main(["train", str(file), "--folder", str(path), "--quiet"])
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    assert main(["train", str(file), "--folder", str(path)]) == 2
    assert f"{path} already exists; choose another folder, or resume the run in it" in one_line(capsys)
    assert main(["train", "--resume", str(path)]) == 0
    assert capsys.readouterr().out.startswith(
        f"{path} has already finished (train it for longer with --epochs N)\nfinished after 2 epochs"
    )
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before


@pytest.mark.parametrize("others", [["--optim.lr=1"], ["other.toml"], ["--folder", "x"], ["--compile"]])
def test_resume_takes_no_other_settings(others: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--resume", "run", "--quiet", *others]) == 2
    assert f"does not take {' '.join(others)}" in one_line(capsys)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda saved: saved | {"format": 99}, "another version"),
        (lambda saved: saved | {"training": saved["training"] | {"warp": 1}}, "unknown setting"),
        (lambda saved: {}, "another version"),
        (lambda saved: [], "expected a JSON table of keys"),
    ],
)
def test_a_run_of_another_version_is_named_as_such(
    change: Any, words: str, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run"
    main(["train", str(file), "--folder", str(path), "--quiet"])
    (path / "summary.json").unlink()
    (path / "config.json").write_text(json.dumps(change(json.loads((path / "config.json").read_text()))))
    assert main(["train", "--resume", str(path)]) == 2
    assert words in one_line(capsys)
    (path / "config.json").write_text("{")
    with pytest.raises(UserError, match="is not JSON"):
        Run.load(path)


def test_vanished_data_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "own.csv"
    table.write_text("a,b,class\n" + "".join(f"{i},{i % 7},{'yes' if i % 2 else 'no'}\n" for i in range(60)))
    path = tmp_path / "run"
    arguments = ["--data.source", str(table), "--model.depth", "3", "--epochs", "1", "--threads", "1", "--quiet"]
    assert main(["train", *arguments, "--folder", str(path)]) == 0
    (path / "summary.json").unlink()
    table.rename(tmp_path / "gone.csv")
    assert main(["train", "--resume", str(path)]) == 2
    assert str(table) in one_line(capsys)
    (tmp_path / "gone.csv").rename(table)
    assert main(["train", "--resume", str(path), "--quiet"]) == 0
