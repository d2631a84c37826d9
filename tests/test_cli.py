import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TextIO

import pytest

from verydeep.bench import bench_page
from verydeep.cli import main
from verydeep.cli.commands._bench import _show


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == main([]) == 0
    shown = capsys.readouterr().out
    assert all(f"\n  {name} " in shown for name in ("data", "models", "train"))


@pytest.mark.slow
def test_models_are_listed_without_cutting_names_at_80_columns() -> None:
    environment = os.environ | {"COLUMNS": "80"}
    command = [sys.executable, "-m", "verydeep", "models"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    assert "highway-19-nin classes=100" in shown
    assert "2,265,928" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "not ours.\n" in shown


@pytest.mark.slow
def test_models_as_json_are_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["name"]: row["parameters"] for row in rows}["highway-mnist-16"] == 38_986


@pytest.mark.slow
def test_one_model_is_shown_with_what_was_inferred(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "highway-c"]) == 0
    shown = capsys.readouterr().out
    assert "inferred:" in shown
    assert "HighwayConv2d" in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["modles"], "unknown command 'modles'; did you mean 'models'?"),
        (["models", "higway-a"], "unknown model 'higway-a'; did you mean 'highway-a'?"),
        (["models", "--jsn"], "unrecognized options: --jsn; did you mean --json? (see verydeep models --help)"),
        (["models", "a", "b"], "unrecognized options: b (see verydeep models --help)"),
        (["train", "--epochs", "x"], "--epochs must be a whole number, not 'x' (see verydeep train --help)"),
        (["train", "--epochs=1.5"], "--epochs must be a whole number, not '1.5' (see verydeep train --help)"),
        (["train", "--optim.lr", "hint"], "--optim.lr must be a number, not 'hint' (see verydeep train --help)"),
        (["train", "--average", "2"], "--average is now called --ema-half-life"),
        (["train", "--epochs", "1", "--explosion=9"], "--explosion is now called --divergence-factor"),
        (["search", "show"], "missing: STUDY (see verydeep search show --help)"),
        (["export", "run"], "missing: --onnx FILE (see verydeep export --help)"),
        (["data"], "expected one of {list, get, check, show} (see verydeep data --help)"),
        (["train", "--resume"], "missing value for argument '--resume'. Expected 1 values (see verydeep train --help)"),
    ],
)
def test_mistakes_get_one_line_and_exit_code_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err == f"verydeep: {words}\n"


@pytest.mark.parametrize("width", ["40", "80", "200"])
def test_a_wrong_choice_is_said_in_a_line_whatever_the_terminals_width(
    width: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    assert main(["reproduce", "table1", "--recipe", "slow"]) == 2
    words = "invalid choice 'slow' for argument '--recipe'. Expected one of ('fast', 'paper')"
    assert capsys.readouterr().err == f"verydeep: {words} (see verydeep reproduce --help)\n"


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", [["models"], ["--help"]])
def test_a_reader_who_has_had_enough_is_no_error(command: list[str], unbuffered: str) -> None:
    read, write = os.pipe()
    os.close(read)  # before there is anything to read
    with os.fdopen(write, "w") as pipe:
        done = _verydeep(command, pipe, unbuffered)
    assert (done.returncode, done.stderr) == (141, "")  # as if the signal had ended it


def _verydeep(command: list[str], out: TextIO, unbuffered: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "verydeep", *command],
        env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        stdout=out,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_cannot_be_written_is_said_in_a_line(unbuffered: str) -> None:
    with open("/dev/full", "w") as full:
        done = _verydeep(["models"], full, unbuffered)
    assert done.returncode == 2
    assert done.stderr == "verydeep: [Errno 28] No space left on device\n"


def test_the_bench_prints_a_folder_with_brackets_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    _show({}, "", Path("bench[bold]"), False)
    assert capsys.readouterr().out.endswith("are in bench[bold]\n")


def test_the_bench_page_shows_no_password() -> None:
    facts = dict.fromkeys(("processor", "cores", "system", "python", "torch", "verydeep", "git"), "x")
    environment = facts | {"command": "verydeep bench --storage postgresql://me:SECRET@host/db"}
    page = bench_page({"case": {"date": "2026-01-01T00:00", "environment": environment}})
    assert "verydeep bench" in page
    assert "SECRET" not in page
