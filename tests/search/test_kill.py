"""Workers killed at random instants: every trial is completed, none is lost, none counted twice.

The workers are forked from a fresh interpreter, which has imported torch once and never computed with it.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from verydeep.search import open_study, read_search, records, start_study, work
from verydeep.training import Run

from ._postgres import Server
from .conftest import CONFIG

KILLING = """
import json, os, random, signal, sys, time
from pathlib import Path
import rich.console, torch, torch._dynamo, sklearn.datasets
import verydeep.kernels.dense._stack_loops
from verydeep.search import open_study, read_search, start_study, work

sklearn.datasets.load_digits()
file, folder, storage, kills = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] or None, int(sys.argv[4])
chance = random.Random(1)
if storage:
    import alembic.command, psycopg


def forked(job):
    pid = os.fork()
    if pid:
        return pid
    try:
        job()
    except BaseException:
        import traceback
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


os.waitpid(forked(lambda: start_study(folder, read_search(file), storage, 1)), 0)
workers, done, killed = set(), 0, 0
while done < 2:
    while len(workers) + done < 2:
        workers.add(forked(lambda: work(open_study(folder, storage, 1), folder)))
    time.sleep(chance.uniform(0.05, 0.5))
    if killed < kills:
        os.kill(chance.choice(sorted(workers)), signal.SIGKILL)
        killed += 1
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG) if workers else (0, 0)
        if pid == 0:
            break
        workers.discard(pid)
        code = os.waitstatus_to_exitcode(status)
        assert code in (0, -9), code
        done += code == 0
print(json.dumps(killed))
"""


def search_under_fire(file: Path, folder: Path, storage: str, kills: int) -> None:
    command = [sys.executable, "-c", KILLING, str(file), str(folder), storage, str(kills)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) >= kills // 2  # a fast machine may be done before the last


def outcome(folder: Path, storage: str | None = None) -> list[object]:
    """The result of every trial, and the runs behind them; times left out."""
    study = open_study(folder, storage)
    counted = [trial.user_attrs["setting"] for trial in study.optuna.get_trials() if trial.value is not None]
    assert sorted(counted) == list(range(study.trials))
    found: list[object] = []
    for record in records(study):
        curve = Run.load(folder / "trials" / f"{record.trial:04}").metrics
        assert [line.epoch for line in curve] == [1, 2, 3]
        assert record.curve == curve
        found.append([record.status, record.value, record.settings, [line.valid_loss for line in curve]])
    return found


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("search") / "tiny.toml"
    file.write_text(CONFIG.format(trials=6, epochs=3, more=""))
    return file


@pytest.fixture(scope="module")
def undisturbed(file: Path) -> list[object]:
    folder = file.parent / "calm"
    assert work(start_study(folder, read_search(file)), folder)
    return outcome(folder)


@pytest.mark.slow
def test_killing_workers_of_a_journal_changes_no_result(file: Path, tmp_path: Path, undisturbed: list[object]) -> None:
    search_under_fire(file, tmp_path / "study", "", 8)
    assert outcome(tmp_path / "study") == undisturbed


@pytest.mark.slow
def test_killing_workers_of_a_server_changes_no_result(
    file: Path, tmp_path: Path, server: Server, undisturbed: list[object]
) -> None:
    search_under_fire(file, tmp_path / "study", server.url, 4)
    assert outcome(tmp_path / "study", server.url) == undisturbed
