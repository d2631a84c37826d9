"""`verydeep train`: what it takes from files and options, and what it says of mistakes."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch

from verydeep.cli import main
from verydeep.cli._run_options import computing
from verydeep.cli._status import status
from verydeep.cli.commands._train import TrainOptions, parse, what_is_trained
from verydeep.config import from_dict
from verydeep.errors import UserError
from verydeep.studies import Seeds
from verydeep.training import ModelConfig, Run, TrainConfig, train

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
        ("patience = -1", "patience must be 0 or more, got -1"),
        ("seed = -1", "seed must be at least 0 and less than 2 ** 63, got -1"),
        ("seed = 100000000000000000000", "seed must be at least 0 and less than 2 ** 63, got 1"),
        ("checkpoint_every = -0.1", "checkpoint_every must be 0 or more"),
        ("divergence_factor = 1.0", "divergence_factor must be more than 1"),
        ("optim = {lr = 0}", "optim.lr must be positive and finite"),
        ("optim = {lr = nan}", "optim.lr must be positive and finite, got nan"),
        ("optim = {lr = inf}", "optim.lr must be positive and finite, got inf"),
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
        ("model = {depth = -1}\ndata = {source = 'digits'}", "must be at least 0; got -1"),
        ("device = 'abacus'\ndata = {source = 'digits'}", "there is no device 'abacus'"),
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


def test_the_file_may_stand_anywhere(file: Path, tmp_path: Path) -> None:
    assert main(["train", "--epochs", "1", "--folder", str(tmp_path / "run"), str(file), "--quiet"]) == 0
    config = Run.load(tmp_path / "run").config
    assert (config.epochs, config.model.depth) == (1, 3)


def test_a_line_an_epoch_where_there_is_no_terminal_and_nothing_when_quiet(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", str(file), "--folder", str(tmp_path / "a")]) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == "training highway-mlp on digits"
    summary, epochs = [line.strip() for line in lines if line[0] == " "], [line for line in lines if line[0] != " "]
    assert summary[0] == "1,797 grey images of 8 x 8 pixels"
    assert summary[1].startswith("classification, 10 classes; 10.")
    assert summary[-1].startswith("24 updates: 2 epochs of 12 batches of 100; sgd, learning rate ")
    assert [line.split("  ")[0] for line in epochs[:2]] == ["epoch 1/2", "epoch 2/2"]
    assert all(word in epochs[0] for word in ("loss ", "valid ", "test ", "%", "lr "))
    assert epochs[2].startswith("finished after 2 epochs")
    assert lines[-1].endswith(str(tmp_path / "a"))
    assert main(["train", str(file), "--folder", str(tmp_path / "b"), "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_the_last_line_says_which_epoch_is_kept(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    assert main(["train", str(file), "--folder", str(run), "--quiet"]) == 0
    summary = json.loads((run / "summary.json").read_text())
    first = json.loads((run / "metrics.jsonl").read_text().splitlines()[0])
    (run / "summary.json").write_text(json.dumps(summary | {"best": first}))
    assert main(["train", "--resume", str(run)]) == 0
    wanted = f"finished after 2 epochs, the best after 1: training accuracy {first['accuracy']:.2%}"
    assert capsys.readouterr().out.splitlines()[1].startswith(wanted)


def test_the_training_accuracy_is_that_after_the_epoch_if_it_was_measured(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert main(["train", str(file), "--folder", str(run), "--evaluate-train"]) == 0
    last = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
    ending = capsys.readouterr().out.splitlines()[-1]
    assert f"epochs: training accuracy {last['train_accuracy']:.2%}, " in ending
    assert ending.count("training accuracy") == 1


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


@pytest.mark.parametrize("others", [["--lr=1"], ["other.toml"], ["--folder", "x"], ["--compile"]])
def test_resume_takes_no_other_settings(others: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--resume", "run", "--quiet", *others]) == 2
    assert f"does not take {others[0].partition('=')[0]}" in one_line(capsys)


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


@pytest.fixture
def flowers(tmp_path: Path) -> Path:
    rows = [f"{i % 7 + 10 * (i % 2)},{i % 3},{'rose' if i % 2 else 'tulip'}" for i in range(60)]
    path = tmp_path / "flowers.csv"
    path.write_text("size,colour,kind\n" + "\n".join(rows) + "\n")
    return path


def settings(*arguments: str) -> TrainConfig:
    options = parse(list(arguments))
    assert isinstance(options, TrainOptions)
    return options.settings


@pytest.mark.parametrize("ignore", [["--ignore", "colour"], ["--data.ignore", "colour", "--data.ignore", ""]])
def test_a_table_is_trained_on(flowers: Path, tmp_path: Path, ignore: list[str]) -> None:
    command = ["train", str(flowers), "--target", "kind", *ignore, "--depth", "3", "--epochs", "1", "--quiet"]
    if "" in ignore:
        flowers.write_text(flowers.read_text().replace("size", ",size", 1).replace("\n", "\n0,")[:-2])
    assert main([*command, "--folder", str(tmp_path / "run")]) == 0
    run = Run.load(tmp_path / "run")
    assert (run.config.data.source, run.config.data.target) == (str(flowers), ("kind",))
    assert run.model.input_shape == (1,)


def test_a_table_whose_target_is_not_known_asks_for_it(flowers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", str(flowers)]) == 2
    assert "which column is to be predicted? Add --target with one of 'size', 'colour'" in one_line(capsys)


def test_the_table_may_follow_a_list_of_columns(flowers: Path) -> None:
    config = settings("--target", "kind", "--ignore", "colour", "size", str(flowers))
    assert (config.data.source, config.data.ignore) == (str(flowers), ("colour", "size"))


@pytest.mark.parametrize("count", ["0", "-1", "1000000000000"])
def test_an_impossible_number_of_seeds_is_refused(
    file: Path, count: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", str(file), "--quiet", "--seeds", count, "--folder", str(tmp_path / "runs")]) == 2
    assert "the number of seeds must be from 1 to 10,000, got " in one_line(capsys)
    assert not (tmp_path / "runs").exists()


def test_a_diverged_run_is_not_offered_more_epochs(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", str(file), "--lr", "1e9", "--quiet", "--folder", str(tmp_path / "run")]) == 0
    assert main(["train", "--resume", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().out.startswith("diverged after 1 epoch")


def test_initial_weights_are_found_by_the_name_of_their_run(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", str(file), "--quiet", "--folder", "runs/first"]) == 0
    assert settings("digits", "--init", "first").init == "runs/first"
    assert settings("digits", "--init", "runs/first/model.safetensors").init == "runs/first/model.safetensors"


def test_data_and_configurations_are_found_by_name(tmp_path: Path) -> None:
    assert settings("digits").data.source == "digits"
    assert settings(str(tmp_path)).data.source == str(tmp_path)
    config = settings("highway50-mnist", "--lr", "0.5")
    assert (config.model.depth, config.data.source, config.optim.lr) == (50, "mnist", 0.5)
    assert settings("fast/highway-a").model.name == "highway-a"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["mnst"], "did you mean 'mnist'?"),
        (["highway50-mnst"], "did you mean 'highway50-mnist'?"),
        (["flowers.cvs"], "did you mean 'flowers.csv'?"),
        (["nothing-like-it"], "nothing-like-it"),
        (
            ["digits", "--model", "highway-a", "--depth", "5"],
            "highway-a has no setting 'depth'; these networks",
        ),
        (["digits", "--blocks", "5"], "highway-mlp has no setting 'blocks'; these networks have it: resnet-110"),
        (["flowers.csv", "--target", "kind", "--model", "highway-a"], "highway-a takes images of shape"),
        (["digits", "--device", "cud"], "there is no device 'cud'; give cpu, cuda, or auto"),
        (["digits", "--device", "mps"], "device 'mps' cannot be used: PyTorch finds no GPU of Apple's; give cpu"),
        (["digits", "--activation", "a", "b"], "--activation takes one value, but 'b' follows 'a'"),
        (["digits", "--layers", "3"], "did you mean --depth?"),
        (["digits", "--bs", "3"], "did you mean --batch-size?"),
        (["digits", "--wd", "3"], "did you mean --weight-decay?"),
        (["digits", "--gpu"], "did you mean --device?"),
        (["digits", "--nam", "3"], "unknown option --nam (see"),
        (["Flowers.csv"], "did you mean 'flowers.csv'?"),
        (["MNIST"], "did you mean 'mnist'?"),
        (["highway50"], "did you mean 'highway50-mnist'?"),
        (["nothing"], "nothing is neither a file nor a dataset nor a configuration; verydeep train --help"),
        (["table.txt"], "table.txt is neither data nor a configuration: data is a .csv, .parquet or .npz file"),
        (["empty.txt"], "empty.txt is neither data nor a configuration"),
        (["/dev/zero"], "/dev/zero is neither data nor a configuration"),
        (["flowers.csv", "--data", "digits"], "flowers.csv and --data digits are both data; give one of them"),
        (["digits", "--init", "nothing"], "there is no run nothing"),
        (["--resume", "old", "--lr", "3"], "it does not take --lr (--init RUN starts a new run"),
    ],
)
def test_near_misses_and_wrong_options_are_explained(
    arguments: list[str],
    words: str,
    flowers: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.txt").write_text("a b\n1 2\n")
    (tmp_path / "empty.txt").touch()
    assert main(["train", *arguments]) == 2
    assert words in one_line(capsys)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("command", [["train", "digits"], ["train", "digits", "--depth", "3"]])
def test_a_gpu_that_is_not_there_is_a_plain_line(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "--device", "cuda"]) == 2
    assert one_line(capsys) == "verydeep: device 'cuda' cannot be used: PyTorch finds no GPU; give cpu or auto\n"


def test_a_run_is_not_taken_for_data(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run"
    assert main(["train", str(file), "--epochs", "1", "--folder", str(path), "--quiet"]) == 0
    assert main(["train", str(path)]) == 2
    assert one_line(capsys) == f"verydeep: {path} is a run; continue it with: verydeep train --resume {path}\n"


def test_seeds_name_their_network_and_data() -> None:
    assert what_is_trained(TrainOptions(what="mnist")) == "training on mnist"
    named = TrainOptions(settings=TrainConfig(model=ModelConfig("plain-mlp")))
    assert what_is_trained(named) == "training plain-mlp on mnist"


def test_one_epoch_is_singular(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", str(file), "--epochs", "1", "--folder", str(tmp_path / "run")]) == 0
    assert "finished after 1 epoch: " in capsys.readouterr().out


@pytest.mark.parametrize("command", ["eval", "report", "prune", "analyze", "export"])
def test_a_folder_of_seeds_is_answered_with_its_runs(
    file: Path, tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config = settings(str(file), "--epochs", "1")
    folder = Seeds.create(tmp_path / "two", config, (0, 1))
    extra = ["--onnx", str(tmp_path / "out.onnx")] if command == "export" else []
    assert main([command, str(folder.path), *extra]) == 2
    assert "none has been started yet" in one_line(capsys)
    train(config, folder.folder(0))
    assert main([command, str(folder.path), *extra]) == 2
    assert f"holds one run per seed; give one of them, best first: {folder.folder(0)}" in one_line(capsys)


@pytest.mark.parametrize("command", ["eval", "report", "prune", "analyze", "export"])
def test_whatever_computes_takes_threads(
    file: Path, tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run"
    assert main(["train", str(file), "--epochs", "1", "--folder", str(path), "--quiet"]) == 0
    extra = ["--onnx", str(tmp_path / "out.onnx")] if command == "export" else []
    assert main([command, str(path), *extra, "--threads", "0"]) == 2
    assert "--threads must be from 1 to 1024, got 0" in one_line(capsys)


def test_threads_hold_while_a_command_computes() -> None:
    before = torch.get_num_threads()
    with computing(1):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_what_takes_seconds_is_said_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for terminal in (True, False):
        stderr = StringIO()
        monkeypatch.setattr("sys.stderr", stderr)
        monkeypatch.setattr(stderr, "isatty", lambda terminal=terminal: terminal, raising=False)
        with status("reading mnist"):
            assert ("reading mnist ..." in stderr.getvalue()) == terminal
        assert stderr.getvalue().endswith("\r\x1b[K") == terminal


def test_a_run_is_found_as_it_is_listed(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", str(file), "--epochs", "1", "--folder", "runs/first", "--quiet"]) == 0
    for path in ("first", "runs/first"):
        assert main(["eval", path, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["run"] == "runs/first"
    for command in (
        ["eval", "frst"],
        ["eval", "runs/frst"],
        ["train", "--resume", "frst"],
        ["compare", "frst", "first"],
    ):
        assert main(command) == 2
        assert "there is no run " in (line := one_line(capsys))
        assert line.endswith("did you mean runs/first?\n")


def test_the_metric_that_selects_the_weights_is_said_at_the_end(
    flowers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", str(flowers), "--target", "kind", "--depth", "3", "--epochs", "2", "--metric", "log_loss"]
    assert main([*command, "--validation", "0.2", "--folder", str(tmp_path / "run")]) == 0
    assert ", validation log loss " in capsys.readouterr().out.splitlines()[-1]
