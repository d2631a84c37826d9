"""Files that are damaged, are no files or come from elsewhere: one or two lines, exit code 2, and nothing hangs."""

import io
import json
import os
import shutil
from collections.abc import Callable
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from verydeep.analysis import lesion_study, save_result
from verydeep.cli import main
from verydeep.data import DataConfig, load_dataset
from verydeep.search import Options, Range, SearchConfig, start_search
from verydeep.training import ModelConfig, Run, TrainConfig, list_runs, train

ONE = ("--threads", "1")


class Terminal(io.StringIO):
    """A terminal that can be read."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was analysed, one on a table, and a search."""
    home = tmp_path_factory.mktemp("home")
    source = DataConfig("digits", validation=0.2)
    config = TrainConfig(source, ModelConfig(depth=3, width=6), epochs=2, threads=1)
    run = train(config, home / "run", progress=False)
    save_result(lesion_study(run.model, load_dataset(source).test), home / "run" / "analysis" / "lesions.npz")
    table = home / "table.csv"
    table.write_text("a,b,class\n" + "".join(f"{i},{i * i},{'xy'[i % 2]}\n" for i in range(40)))
    model = ModelConfig(depth=2, width=4)
    train(TrainConfig(DataConfig(str(table)), model, epochs=1, threads=1), home / "own", progress=False)
    start_search(home / "search", SearchConfig(config, {"optim.lr": Range(0.01, 0.1)}, Options(trials=2)))
    return home


@pytest.fixture
def place(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, in which the test runs."""
    shutil.copytree(home, tmp_path / "home")
    monkeypatch.chdir(tmp_path / "home")
    return tmp_path / "home"


def entry(name: str, value: object) -> Callable[[Path], None]:
    """Change an entry of a JSON file, or of every line of one; `a.b` is the entry b of the table a."""

    def change(file: Path) -> None:
        lines = file.read_text().splitlines() if file.suffix == ".jsonl" else [file.read_text()]
        found = [json.loads(line) for line in lines]
        for values in found:
            *tables, last = name.split(".")
            reduce(dict.__getitem__, tables, values)[last] = value
        file.write_text("".join(json.dumps(values) + "\n" for values in found))

    return change


def line(text: str) -> Callable[[Path], None]:
    """Add a line."""

    def add(file: Path) -> None:
        file.write_text(file.read_text() + text + "\n")

    return add


def pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def device(file: Path) -> None:
    file.unlink()
    file.symlink_to("/dev/zero")


@pytest.mark.parametrize(
    ("file", "change", "command", "words"),
    [
        ("run/metrics.jsonl", entry("loss", "low"), "report run", "metrics.jsonl line 1 is damaged: 'loss' is not"),
        ("run/metrics.jsonl", entry("loss", 10**400), "compare run run", ""),
        ("run/metrics.jsonl", line("[" * 10**5), "compare run run", "metrics.jsonl line 3 is damaged"),
        (
            "run/metrics.jsonl",
            entry("seconds", None),
            "compare run run",
            "metrics.jsonl line 1 is damaged: 'seconds' is",
        ),
        ("run/metrics.jsonl", entry("seconds", 1e400), "runs . --json", ""),
        ("run/metrics.jsonl", pipe, "report run", "a pipe that nothing writes to"),
        ("run/summary.json", entry("last", {"loss": 1}), "report run", "summary.json is damaged ('epoch' is not"),
        ("run/summary.json", pipe, "report run", "a pipe that nothing writes to"),
        ("run/config.json", entry("training.more", 3), "eval run", "config.json: training: unknown setting 'more'"),
        ("run/config.json", entry("config.more", 3), "eval run", "unknown setting 'more'"),
        ("run/config.json", entry("size", 3), "explore run --no-open", "'size'"),
        ("run/config.json", entry("size.depth", "3"), "report run", "expected a whole number as 'size.depth', got '3'"),
        ("run/config.json", entry("own", [3]), "report run", "expected a list of texts as 'own', got '[3]'"),
        ("run/config.json", entry("data.train", "many"), "report run", "expected a whole number as 'data.train'"),
        ("run/config.json", device, "eval run", "not a regular file"),
        ("run/data.json", entry("classes", 3), "eval run", "data.json"),
        ("run/data.json", entry("name", None), "report run", "data.json is damaged: it names no dataset"),
        ("run/data.json", entry("task.names", ["a", "b"]), "eval run", "names 2 outputs of a network with 10"),
        ("run/data.json", entry("task.names", []), "eval run", "names 0 outputs of a network with 10"),
        ("run/model.safetensors", pipe, "eval run", "not a regular file"),
        ("run/analysis/lesions.npz", pipe, "report run", "not a result of an analysis, or is damaged"),
        ("search/study.json", entry("storage", 3), "search show search", "expected text as 'storage', got '3'"),
        ("search/study.json", entry("name", []), "search best search", "expected text as 'name', got '[]'"),
        ("search/journal.log", line('{"op_code": 77}'), "search show search", "journal.log is damaged or is not a"),
        ("search/journal.log", line('{"op_code": 8}'), "search show search", "journal.log is damaged or is not a"),
        ("search/journal.log", device, "search show search", "journal.log is not a regular file"),
    ],
)
def test_a_damaged_file_is_named(
    file: str,
    change: Callable[[Path], None],
    command: str,
    words: str,
    place: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    change(place / file)
    code = main(command.split())
    error = capsys.readouterr().err
    assert code == (2 if words else 0)
    assert words in error
    assert len(error.strip().splitlines()) <= 2


def test_one_damaged_run_is_one_line_of_the_table(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damages: dict[str, Callable[[], object]] = {
        "metrics.jsonl": lambda: entry("loss", "low")(place / "bad0" / "metrics.jsonl"),
        "summary.json": lambda: entry("last", {"loss": 1})(place / "bad1" / "summary.json"),
        "config.json": lambda: entry("training.data", 3)(place / "bad2" / "config.json"),
        "config.json is": lambda: pipe(place / "bad3" / "config.json"),
        "metrics.jsonl:": lambda: pipe(place / "bad4" / "metrics.jsonl"),
    }
    for number, damage in enumerate(damages.values()):
        shutil.copytree(place / "run", place / f"bad{number}")
        damage()
    (place / "foreign").mkdir()
    (place / "foreign" / "config.json").write_text('{"model_type": "gpt2"}')
    infos = {info.name: info for info in list_runs(place)}
    assert infos.pop("run").status == infos.pop("own").status == "finished"
    assert {name: info.status for name, info in infos.items()} == dict.fromkeys(
        [*(f"bad{number}" for number in range(5)), "foreign"], "broken"
    )
    assert all(info.problem for info in infos.values())
    assert main(["runs", "."]) == 0
    assert "finished" in capsys.readouterr().out


@pytest.mark.parametrize("change", [pipe, device])
@pytest.mark.parametrize("name", ["new.csv", "new.npz", "new.parquet", "new.png"])
def test_new_data_that_is_no_file_is_refused(
    name: str, change: Callable[[Path], None], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / name).touch()
    change(place / name)
    run = "own" if name.endswith(("csv", "parquet")) else "run"
    assert main(["predict", run, name, *ONE]) == 2
    assert f"{name} is not a regular file; expected a file" in capsys.readouterr().err


def test_a_pipe_among_images_arrays_and_checkpoints_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("images/a/0.png", "images/b/0.png", "images/b/1.png"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.zeros((8, 8), np.uint8)).save(place / name)
    pipe(place / "images/b/1.png")
    assert main(["train", "images", "--folder", "new"]) == 2
    assert "1.png is not a regular file" in capsys.readouterr().err
    (place / "arrays").mkdir()
    for split in ("train", "test"):
        np.save(place / "arrays" / f"{split}_x.npy", np.zeros((9, 4), np.float32))
        np.save(place / "arrays" / f"{split}_y.npy", np.arange(9) % 3)
    pipe(place / "arrays/test_y.npy")
    assert main(["train", "arrays", "--folder", "new"]) == 2
    assert "test_y.npy is not a regular file" in capsys.readouterr().err
    for checkpoint in (place / "run" / "checkpoint").iterdir():
        pipe(checkpoint)
    (place / "run" / "summary.json").unlink()
    assert main(["train", "--resume", "run"]) == 2
    assert "is not a regular file" in capsys.readouterr().err


@pytest.mark.parametrize("when", ["_metrics", "_save"])
def test_a_prune_that_was_killed_is_repeated(when: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"verydeep.cli.commands._prune.{when}", kill)
        assert main(["prune", "run", "--samples", "100", *ONE]) == 130
    assert not (place / "run-pruned" / "config.json").exists()
    assert main(["prune", "run", "--samples", "100", *ONE]) == 0
    pruned = Run.load("run-pruned")
    assert len(pruned.metrics) == 1
    assert main(["eval", "run-pruned", *ONE]) == 0


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("export own --onnx own/config.json", "must end in .onnx"),
        ("export own --onnx table.csv", "must end in .onnx"),
        ("analyze own --only gates --out run", "the folder of a run"),
        ("predict own table.csv -o own/metrics.jsonl", "holds the metrics of the run"),
    ],
)
def test_results_do_not_replace_the_files_of_a_run(
    command: str, words: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    assert main([*command.split(), *ONE]) == 2
    assert words in capsys.readouterr().err
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before


def test_a_terminal_does_not_obey_names(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "own").rename(place / "\x1b]0;title")
    entry("training.data.source", "\x1b[31mred")(place / "run" / "config.json")
    assert main(["eval", "run", *ONE]) == 2
    assert "\\x1b[31mred" in capsys.readouterr().err
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    assert main(["runs", "."]) == 0
    assert "\\x1b]" in terminal.getvalue()
    assert not any(control in terminal.getvalue() for control in ("\x1b]", "\x07"))
