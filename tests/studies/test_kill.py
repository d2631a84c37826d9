"""Workers killed at random instants: every training is completed, none is lost, none counted twice.

The workers are forked from a fresh interpreter, which has imported torch once and never computed with it.
"""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import _disturbed
import pytest
from _disturbed import Outcome, Place, outcome
from _postgres import Server

from verydeep.data import DataConfig
from verydeep.studies import Choices, Group, Range, Sampling, Space, start_study, work
from verydeep.training import DistillConfig, ModelConfig, TrainConfig

CONFIG = TrainConfig(
    DataConfig("digits", validation=0.2), ModelConfig(width=8, depth=5), epochs=6, batch_size=100, checkpoint_every=0
)
SPACE: Space = {"optim.lr": Range(0.01, 1.0, log=True), "model.activation": Choices(("tanh", "relu"))}
GROUPS = [
    Group("seeds", CONFIG, seeds=(0, 1)),
    Group("trials", CONFIG, sampling=Sampling(SPACE, trials=3)),
    Group("student", replace(CONFIG, distill=DistillConfig(weight=0.5)), seeds=(0, 1), after="seeds/seed-1"),
]

KILLING = """
import json, os, sys, traceback
from pathlib import Path
import rich.console, torch, torch._dynamo, sklearn.datasets
import verydeep.kernels.dense._stack_loops
from verydeep.studies import open_study, work
from _disturbed import Killer, Place

sklearn.datasets.load_digits()
folder, storage, kills = Path(sys.argv[1]), sys.argv[2] or None, int(sys.argv[3])
if storage:
    import alembic.command, psycopg
workers, done = set(), 0


def forked_worker():
    pid = os.fork()
    if pid:
        return pid
    try:
        work(open_study(folder, storage=storage, heartbeat=1))
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def is_running():
    global done
    while workers and (ended := os.waitpid(-1, os.WNOHANG))[0]:
        workers.discard(ended[0])
        code = os.waitstatus_to_exitcode(ended[1])
        assert code in (0, -9), code
        done += code == 0
    while len(workers) + done < 2:
        workers.add(forked_worker())
    return bool(workers)


killer = Killer(kills, (0.02, 0.2))
killer.run(Place((folder,), storage), lambda: sorted(workers), is_running)
print(json.dumps([killer.killed, killer.in_training]))
"""


def train_under_fire(folder: Path, storage: str | None, kills: int) -> Outcome:
    """Train all groups with two workers, of which one is killed now and then."""
    start_study(folder, GROUPS, storage=storage, heartbeat=1)
    command = [sys.executable, "-c", KILLING, str(folder), storage or "", str(kills)]
    path = os.pathsep.join([str(Path(_disturbed.__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    killed, in_training = json.loads(done.stdout)
    assert killed >= in_training >= 2  # a fast machine may be done before the last
    return outcome(Place((folder,), storage))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = tmp_path_factory.mktemp("calm") / "study"
    assert work(start_study(folder, GROUPS))
    return outcome(Place((folder,)))


@pytest.mark.slow
def test_killing_workers_of_a_journal_changes_no_result(tmp_path: Path, undisturbed: Outcome) -> None:
    found = train_under_fire(tmp_path / "study", None, 8)
    assert found.complete == undisturbed.complete
    assert found.results == undisturbed.results


@pytest.mark.slow
def test_killing_workers_of_a_server_changes_no_result(tmp_path: Path, server: Server, undisturbed: Outcome) -> None:
    found = train_under_fire(tmp_path / "study", server.new_database(), 4)
    assert found.complete == undisturbed.complete
    assert found.results == undisturbed.results
