"""No process of ours imports from the directory it is started in."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from verydeep.bench import BenchTask
from verydeep.bench._run import _process
from verydeep.data import DataConfig
from verydeep.paper._jobs import _Worker
from verydeep.paper._side_by_side import _start
from verydeep.processes import python_command
from verydeep.search.worker._pool import WorkerProcess
from verydeep.training import TrainConfig
from verydeep.training.seeds._train_seeds import SeedProcess

NAMES = ("json", "pickle", "random", "signal", "socket", "struct", "threading")


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that names the modules imported from the working directory; there should be none."""
    folder, marker = tmp_path / "downloads", tmp_path / "imported"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(f"print({name!r}, file=open({str(marker)!r}, 'a'))\n")
    monkeypatch.chdir(folder)
    return marker


def test_the_planted_modules_would_be_imported(planted: Path) -> None:
    subprocess.run([sys.executable, "-c", "import random"], check=True)
    assert planted.read_text() == "random\n"


def test_a_python_command_does_not(planted: Path) -> None:
    subprocess.run(python_command("-c", f"import {', '.join(NAMES)}"), check=True)
    assert not planted.exists()


@pytest.mark.slow
def test_the_process_of_a_seed_does_not(planted: Path, tmp_path: Path) -> None:
    process = SeedProcess(tmp_path, 0, None, False)
    assert "expected a folder made by train_seeds" in process.problem
    assert not planted.exists()


def test_the_worker_of_a_search_does_not(planted: Path, tmp_path: Path) -> None:
    options: dict[str, object] = dict.fromkeys(("storage", "heartbeat", "root", "seconds", "epochs"))
    worker = WorkerProcess(tmp_path, 0, options)
    worker._process.wait()
    worker.stop()
    assert "no study here" in worker.problem
    assert not planted.exists()


def test_the_process_of_a_benchmark_does_not(planted: Path, tmp_path: Path) -> None:
    with _process(BenchTask("peak", 1, {}), tmp_path) as ask:
        assert ask({"task": "peak", "seconds": 0.0})
    assert not planted.exists()


@pytest.mark.slow
def test_the_process_of_an_experiment_does_not(planted: Path) -> None:
    worker = _Worker(None)
    worker.connection.close()
    worker.process.join()
    assert worker.process.exitcode == 0
    assert not planted.exists()


@pytest.mark.slow
def test_the_processes_of_the_demo_do_not(planted: Path, tmp_path: Path) -> None:
    process, connection = _start("plain", TrainConfig(DataConfig("nothing")), tmp_path / "run", None)
    assert "nothing" in connection.recv()
    process.join()
    assert not planted.exists()


def test_a_spawned_process_and_the_resource_tracker_do_not(planted: Path, tmp_path: Path) -> None:
    (tmp_path / "program").mkdir()
    program = tmp_path / "program" / "program.py"
    program.write_text(
        "import os\n"
        "from verydeep.processes import spawn\n"
        "if __name__ == '__main__':\n"
        "    spawn(print, 'spawned').join()\n"
        "    print(os.environ.get('PYTHONSAFEPATH'))\n"
    )
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    command = [sys.executable, str(program)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=variables)
    assert done.stdout == "spawned\nNone\n"
    assert not planted.exists()
