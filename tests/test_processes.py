"""No process of ours imports from the directory it is started in, and none outlives its parent."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryFile

import pytest

import verydeep
from verydeep.bench import BenchTask
from verydeep.bench._run import _process
from verydeep.data import DataConfig
from verydeep.processes import ChildProcess, python_command
from verydeep.studies import Group, open_study, start_study
from verydeep.training import ModelConfig, Run, TrainConfig

NAMES = ("json", "pickle", "queue", "random", "signal", "socket", "struct", "threading")
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(verydeep.__file__).parents[1])}
WORKER, BENCH = "verydeep.studies.worker", "verydeep.bench._child"
# Starts a child, sends it messages, and passes on what it answers; both write to the same standard error.
PARENT = """
import json, os, sys, time
from verydeep.processes import ChildProcess
child = ChildProcess("-m", sys.argv[1], environment=os.environ, errors=sys.stderr)
for message in sys.argv[2:]:
    child.send(json.loads(message))
while (answer := child.receive()) is not None:
    print(json.dumps(answer), flush=True)
"""


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


def test_a_python_command_does_not_import_them(planted: Path) -> None:
    subprocess.run(python_command("-c", f"import {', '.join(NAMES)}"), check=True)
    assert not planted.exists()


def test_the_process_of_a_benchmark_does_not_import_them(planted: Path, tmp_path: Path) -> None:
    with _process(BenchTask("peak", 1, {}), tmp_path) as ask:
        assert ask({"task": "peak", "seconds": 0.0})["threads"] == 1
        assert ask({"task": "peak", "seconds": 0.01})["gflops"] > 0
    assert not planted.exists()


@pytest.mark.slow
@pytest.mark.parametrize("module", [WORKER, BENCH])
def test_a_child_that_is_told_nothing_ends(module: str) -> None:
    with TemporaryFile() as errors:
        child = ChildProcess("-m", module, environment=ENVIRONMENT, errors=errors)
        child.stop()
        child.wait()
        errors.seek(0)
        assert (child.code, errors.read()) == (0, b"")


def killed_parent(module: str, *messages: str, until: str) -> str:
    """Kill the parent of a child once the child has sent a message; return what both printed, when both have ended."""
    command = python_command("-c", PARENT, module, *messages)
    with subprocess.Popen(
        command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stderr is not None
        assert any(until in line for line in parent.stdout), parent.stderr.read()
        parent.send_signal(signal.SIGKILL)
        return parent.stderr.read()  # ends when the last process that holds it has ended


@pytest.mark.slow
def test_a_measuring_process_ends_at_once_when_its_parent_is_killed() -> None:
    tasks = ('{"threads": 1, "cores": [0]}', '{"task": "peak", "seconds": 0}', '{"task": "peak", "seconds": 1e6}')
    assert killed_parent(BENCH, *tasks, until="gflops") == ""


@pytest.mark.slow
def test_a_worker_imports_nothing_from_here_and_saves_when_its_parent_is_killed(planted: Path, tmp_path: Path) -> None:
    config = TrainConfig(DataConfig("digits"), ModelConfig(depth=2, width=8), epochs=1_000_000)
    study = start_study(tmp_path / "study", [Group("long", config)])
    options = (
        f'{{"folder": "{study.folder}", "store": {{"storage": null}}, "artifacts": null, "root": null, '
        '"seconds": null, "epochs": null, "only": null, "tensorboard": false}'
    )
    killed_parent(WORKER, options, until='"epoch"')
    assert not planted.exists()
    (record,) = open_study(study.folder).records()
    run = Run.load(study.run_path("long"))
    assert record.status == "waiting"  # released, so that another worker continues it at once
    assert record.epochs == len(run.metrics) >= 1
    assert "interrupted" in (run.path / "events.log").read_text()


def test_what_a_library_prints_is_not_a_message(tmp_path: Path) -> None:
    with (tmp_path / "errors").open("wb") as errors:
        program = "print('warning: 3 cores'); print(3); print('{\"epoch\": 1}')"
        child = ChildProcess("-c", program, environment=ENVIRONMENT, errors=errors)
    received: list[dict[str, object]] = []
    while child.code is None or not received:
        received += child.received()
    child.wait()
    assert received == [{"epoch": 1}]
