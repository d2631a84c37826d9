"""What stands beside a result, and a run that goes on in another place."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from verydeep.data import Dataset
from verydeep.training import TrainConfig, environment, resume, train


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
