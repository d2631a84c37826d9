"""What stands beside a result, and a run that goes on in another place."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from verydeep.data import Dataset
from verydeep.training import TrainConfig, child_environment, environment, resume, train


@pytest.mark.parametrize(
    ("program", "said"),
    [("/home/me/bin/verydeep", "verydeep"), ("/x/verydeep/__main__.py", "verydeep"), ("/x/batches.py", "batches.py")],
)  # fmt: skip
def test_the_command_tells_nothing_of_the_machines_folders(
    program: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", [program, "bench", "--quick"])
    assert environment()["command"] == f"{said} bench --quick"


def test_the_command_tells_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["train.py", "--storage", "postgresql://me:SECRET@server/db", "PASSWORD=SECRET"])
    assert environment()["command"] == "train.py --storage postgresql://me@server/db PASSWORD=***"


def test_a_run_goes_on_with_other_threads_if_asked_to_and_says_so(
    tmp_path: Path, tiny: Dataset, configure: Callable[..., TrainConfig], stop_after: Any, capsys: Any
) -> None:
    with pytest.raises(KeyboardInterrupt):
        train(configure(), tmp_path / "run", dataset=tiny, progress=stop_after(2))
    run = resume(tmp_path / "run", dataset=tiny, threads=2)
    assert run.summary is not None
    assert "threads was 1 and is 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [([""], "python"), (["/x/ipykernel_launcher.py", "-f", "/root/kernel-1.json"], "a notebook"), (["-c"], "-c")],
)
def test_python_without_a_program_is_named_too(
    arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", arguments)
    assert environment()["command"] == said


def test_a_process_that_trains_for_another_records_the_command_of_that_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["verydeep", "search", "a.toml", "--storage", "postgresql://me:SECRET@server/db"])
    variables = child_environment()
    assert "SECRET" not in str(set(variables.items()) - set(os.environ.items()))
    monkeypatch.setattr("sys.argv", ["/x/verydeep/search/worker/_main.py", "runs/study"])
    monkeypatch.setattr("os.environ", variables)
    assert environment()["command"] == "verydeep search a.toml --storage postgresql://me@server/db"
