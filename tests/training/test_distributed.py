"""Two processes that train together: the same result as one, and the same end."""

import json
import os
import subprocess
import sys
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from runpy import run_path

import pytest
import torch
from safetensors.torch import load_file
from torch.distributed import TCPStore  # type: ignore[attr-defined]

import verydeep
from verydeep.errors import OtherProcessError
from verydeep.training import ProcessGroup, Run
from verydeep.training.step._random import seed_step

# What every process has at hand; each test adds what it does with it.
PRELUDE = """
import os, signal, sys
from dataclasses import replace
from pathlib import Path
import torch
from torch import nn
from verydeep.data import DataConfig
from verydeep.errors import OtherProcessError, UserError
from verydeep.training import Interrupted, ModelConfig, OptimConfig, TrainConfig, resume, train

RANK = int(os.environ.get("RANK", "0"))
torch.set_num_threads(1)
config = TrainConfig(
    data=DataConfig("digits", validation=101),
    model=ModelConfig("highway-mlp", depth=4, width=10),
    optim=OptimConfig(lr=0.1),
    epochs=2,
    batch_size=66,  # 1337 samples: the last batch is smaller, and its parts are not equal
    evaluate_train=True,
)

class Own(nn.Sequential):
    passes = 0

    def __init__(self, seed=0, rank=None, act=None):
        torch.manual_seed(seed)
        super().__init__(nn.Flatten(), nn.Linear(64, 20), nn.Tanh(), nn.Linear(20, 10))
        self.act = act if RANK == rank else None

    def forward(self, x):
        self.passes += 1
        if self.passes == 5 and self.act is not None:
            self.act()
        return super().forward(x)

def send(name):
    os.kill(os.getpid(), getattr(signal, name))

def attempt(work):
    try:
        work()
    except Interrupted as stopped:
        print(stopped)
    except OtherProcessError:
        sys.exit(2)
    except UserError as error:
        print("failed:", error)
        sys.exit(2)
"""
ONE_OR_TWO = """
train(config, "network")
train(config, "own", model=Own(seed=RANK))
train(replace(config, optim=OptimConfig("muon", lr=0.02)), "muon")
mean = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64, momentum=1.0), nn.Linear(64, 10))
train(replace(config, epochs=1, batch_size=1338), "normalised", model=mean)
"""
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1", "--nproc-per-node", "2"]
SOURCE = str(Path(verydeep.__file__).parents[1])  # the package under test, whatever is installed
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": SOURCE}


def script(folder: Path, code: str) -> Path:
    path = folder / "script.py"
    path.write_text(PRELUDE + code)
    return path


def run_alone(folder: Path, code: str) -> None:
    with chdir(folder):
        run_path(str(script(folder, code)))


def run_together(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Under torchrun, which also ends the others when one fails."""
    command = [sys.executable, *TORCHRUN, *arguments]
    return subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False)


def run_unsupervised(folder: Path, code: str) -> list[tuple[int, str]]:
    """Exit code and output of each of two processes that nobody ends."""
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    shared = ENVIRONMENT | {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port)}
    shared["TORCHELASTIC_USE_AGENT_STORE"] = "True"  # the store is the one above, so that the port is surely free
    command = [sys.executable, str(script(folder, code))]
    processes = [
        subprocess.Popen(command, cwd=folder, env=shared | {"RANK": rank}, stdout=subprocess.PIPE, text=True)
        for rank in ("0", "1")
    ]
    return [(process.returncode, out) for process in processes for out in [process.communicate()[0]]]


def assert_same_result(one: Path, other: Path) -> None:
    runs = Run.load(one), Run.load(other)
    metrics = [[replace(line, seconds=0).to_dict() for line in run.metrics] for run in runs]
    assert len(metrics[0]) == len(metrics[1]) == 2
    for line, expected in zip(metrics[1], metrics[0], strict=True):
        assert line == pytest.approx(expected, abs=1e-5)
    weights = [load_file(run.path / "model.safetensors") for run in runs]
    for name in weights[0]:
        torch.testing.assert_close(weights[1][name], weights[0][name], rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("one")
    run_alone(folder, ONE_OR_TWO)
    return folder


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Also continues with two processes what one began, and shows that the two can meet more than once."""
    folder = tmp_path_factory.mktemp("two")
    run_alone(folder, "attempt(lambda: train(config, 'begun', model=Own(rank=0, act=lambda: send('SIGINT'))))")
    assert Run.load(folder / "begun").metrics == []
    done = run_together(folder, script(folder, ONE_OR_TWO + "resume('begun', model=Own())\n"))
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_two_processes_give_the_result_of_one(one: Path, two: Path) -> None:
    assert_same_result(one / "network", two / "network")
    made_by = [json.loads((folder / "network" / "environment.json").read_text()) for folder in (one, two)]
    assert [environment["processes"] for environment in made_by] == [1, 2]


@pytest.mark.slow
def test_two_processes_give_the_result_of_one_with_muon(one: Path, two: Path) -> None:
    assert_same_result(one / "muon", two / "muon")


@pytest.mark.slow
def test_every_process_starts_from_the_first_ones_weights(one: Path, two: Path) -> None:
    assert_same_result(one / "own", two / "own")


@pytest.mark.slow
def test_two_processes_continue_what_one_began(one: Path, two: Path) -> None:
    assert_same_result(one / "own", two / "begun")


@pytest.mark.slow
def test_running_statistics_are_those_of_all_processes(one: Path, two: Path) -> None:
    # One batch an epoch, and with momentum 1 they are that batch's: each process has seen half of it.
    expected, found = (load_file(folder / "normalised" / "model.safetensors") for folder in (one, two))
    assert expected["1.running_mean"].std() > 0.1
    torch.testing.assert_close(found["1.running_mean"], expected["1.running_mean"], rtol=0, atol=1e-3)
    assert found["1.num_batches_tracked"] == expected["1.num_batches_tracked"] == 1


@pytest.mark.slow
def test_the_command_prints_once_and_chooses_one_folder(tmp_path: Path) -> None:
    options = ["train", "--data.source", "digits", "--model.depth", "3", "--epochs", "2", "--threads", "1"]
    done = run_together(tmp_path, "-m", "verydeep", *options)
    lines = [line.split()[0] for line in done.stdout.splitlines() if line[0] != " "]
    assert lines == ["training", "epoch", "epoch", "finished"]
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["highway-mlp-digits-1"]


@pytest.mark.slow
def test_a_signal_to_one_process_stops_both_and_saves_once(tmp_path: Path, one: Path) -> None:
    signalled = "attempt(lambda: train(config, 'run', model=Own(rank=1, act=lambda: send('SIGTERM'))))"
    done = run_together(tmp_path, script(tmp_path, signalled))
    assert done.stdout.count("training was interrupted") == 2  # each process raises Interrupted
    assert (tmp_path / "run" / "checkpoint" / "000000-00000005.safetensors").exists()
    assert (tmp_path / "run" / "events.log").read_text().count("interrupted") == 1
    assert run_together(tmp_path, script(tmp_path, "resume('run', model=Own())")).returncode == 0
    assert_same_result(one / "own", tmp_path / "run")


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
def test_when_one_process_is_killed_the_other_says_so_and_ends(tmp_path: Path, one: Path, killed: int) -> None:
    code = f"attempt(lambda: train(config, 'run', model=Own(rank={killed}, act=lambda: send('SIGKILL'))))"
    ends = run_unsupervised(tmp_path, code)
    assert ends[killed] == (-9, "")
    status, out = ends[1 - killed]
    assert status == 2
    assert out.startswith(f"failed: process {1 - killed} lost its connection")
    assert out.count("\n") == 1
    run_alone(tmp_path, "resume('run', model=Own())")
    assert_same_result(one / "own", tmp_path / "run")


@pytest.mark.slow
def test_torchrun_ends_when_one_process_fails(tmp_path: Path) -> None:
    fails = "def fail():\n    raise MemoryError\ntrain(config, 'run', model=Own(rank=1, act=fail))\n"
    assert run_together(tmp_path, script(tmp_path, fails)).returncode == 1


@pytest.mark.slow
def test_what_fails_in_one_process_before_training_is_said_once(tmp_path: Path) -> None:
    elsewhere = "if RANK == 1: config = replace(config, data=DataConfig('nothing.csv'))\n"
    ends = run_unsupervised(tmp_path, elsewhere + "attempt(lambda: train(config, 'run'))")
    assert [code for code, _ in ends] == [2, 2]
    assert "nothing.csv" in ends[1][1]
    assert ends[0][1] == ""


@pytest.mark.slow
def test_the_command_reports_once_what_fails_in_every_process(tmp_path: Path) -> None:
    command = ["train", "--data.source", "digits", "--batch-size", "65", "--folder", "run"]
    code = f"from verydeep.cli import main\nsys.stderr = sys.stdout\nsys.exit(main({command}))"
    ends = run_unsupervised(tmp_path, code)
    assert [code for code, _ in ends] == [2, 2]
    assert ends[0][1].startswith("verydeep: ")
    assert "65 cannot be shared by 2 processes" in ends[0][1]
    assert ends[1][1] == ""


# Each time torchrun starts it, this command is killed: one process at once, then the first, then the other.
KILLED = """
import verydeep.training._trainer as trainer
from verydeep.cli import main

attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
rank, step = {0: (1, 0), 1: (0, 5), 2: (1, 25)}.get(attempt, (None, None))
steps, seed_step = 0, trainer.seed_step

def die(now):
    if (RANK, now) == (rank, step):
        send("SIGKILL")

def count(*arguments):
    global steps
    steps += 1
    die(steps)
    seed_step(*arguments)

die(0)
trainer.seed_step = count
sys.exit(main(["train", "digits", "--validation", "101", "--depth", "4", "--width", "10", "--lr", "0.1", "--epochs",
               "2", "--batch-size", "66", "--evaluate-train", "--folder", "network", "--continue",
               "--checkpoint-every", "0"]))
"""


@pytest.mark.slow
def test_torchrun_restarts_killed_processes_which_continue_to_the_same_bits(tmp_path: Path, two: Path) -> None:
    done = run_together(tmp_path, "--max-restarts", "3", script(tmp_path, KILLED))
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    first = [" ".join(line.split()[:2]) for line in done.stdout.splitlines() if line[0] != " "]
    assert first == [
        "training highway-mlp",
        "training highway-mlp",  # again from the beginning, because no epoch was complete
        "epoch 1/2",
        "continuing network",
        "epoch 2/2",
        "finished after",
    ]
    expected, found = (Run.load(folder / "network") for folder in (two, tmp_path))
    metrics = [[replace(line, seconds=0) for line in run.metrics] for run in (expected, found)]
    assert metrics[0] == metrics[1]
    weights = [(run.path / "model.safetensors").read_bytes() for run in (expected, found)]
    assert weights[0] == weights[1]


# The second process reads data for longer than the limit, and is waited for; later, it hangs until the first has ended.
HANGING = """
import time
from datetime import timedelta
import verydeep.training.step._process_group as process_group
from verydeep.training import ProcessGroup

def wait_for(name):
    while not Path(name).exists():
        time.sleep(0.02)

def hang():
    wait_for("ended")

Path(str(RANK)).touch()
wait_for(str(1 - RANK))  # so that the limit does not count the imports
process_group._LIMIT = timedelta(seconds=6)
ProcessGroup.join("cpu")
if RANK == 1:
    time.sleep(7)
try:
    attempt(lambda: train(config, "run", model=Own(rank=1, act=hang)))
finally:
    Path("ended").touch()
"""


@pytest.mark.slow
def test_a_process_waits_for_data_but_not_for_ever_for_one_that_hangs(tmp_path: Path) -> None:
    (zero, said), (one, _) = run_unsupervised(tmp_path, HANGING)
    assert (zero, one) == (2, 2)
    assert said == (
        "failed: process 0 waited 0.1 minutes for another process, which hangs or whose machine is out of reach; "
        "the last checkpoint is intact, and run can be resumed\n"
    )


def test_a_failure_of_another_process_is_an_ordinary_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    group = ProcessGroup(0, 2, torch.device("cpu"))
    monkeypatch.setattr(ProcessGroup, "reduce_int", lambda *_: 1)  # the other process failed
    with pytest.raises(OtherProcessError, match="process 1 failed"), group.raise_together():
        pass


@pytest.mark.slow
def test_what_fails_in_every_process_is_said_once(tmp_path: Path) -> None:
    ends = run_unsupervised(tmp_path, "attempt(lambda: train(replace(config, batch_size=65), 'run'))")
    assert [code for code, _ in ends] == [2, 2]
    assert "65 cannot be shared by 2 processes" in ends[0][1]
    assert ends[1][1] == ""


@pytest.mark.slow
def test_processes_that_read_different_checkpoints_are_refused(tmp_path: Path) -> None:
    run_alone(tmp_path, "attempt(lambda: train(config, 'run', model=Own(rank=0, act=lambda: send('SIGINT'))))")
    elsewhere = (
        "import shutil\n"
        "if RANK == 1:\n"
        "    os.chdir(shutil.copytree('.', 'elsewhere'))\n"
        "    shutil.rmtree('run/checkpoint')\n"
        "attempt(lambda: resume('run', model=Own()))"
    )
    ends = run_unsupervised(tmp_path, elsewhere)
    assert [code for code, _ in ends] == [2, 2]
    assert "must be on a disk they share" in ends[0][1]


@pytest.mark.slow
def test_processes_have_parted_before_python_ends(tmp_path: Path) -> None:
    """Threads that outlive it abort the process now and then."""
    part = (
        "import atexit, weakref\n"
        "from verydeep.training import ProcessGroup\n"
        "atexit.register(lambda: print('parted' if met() is None else 'still together'))\n"
        "ProcessGroup.join('cpu')\n"
        "met = weakref.ref(torch.distributed.group.WORLD)\n"
        "attempt(lambda: train(replace(config, epochs=1), 'run'))"
    )
    assert run_unsupervised(tmp_path, part) == [(0, "parted\n"), (0, "parted\n")]


def test_every_process_has_its_own_dropout() -> None:
    def draw(rank: int, batch: int) -> list[float]:
        seed_step(7, 1, batch, ProcessGroup(rank, 2, torch.device("cpu")))
        return list(torch.rand(3).tolist())

    assert draw(0, 5) == draw(0, 5)
    assert draw(0, 5) != draw(1, 5)
    assert draw(0, 5) != draw(0, 6)
