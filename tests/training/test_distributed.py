"""Two processes that train together: the same result as one, and the same end."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch.distributed import TCPStore

import verydeep
from verydeep.training import Run, World
from verydeep.training._seed import seed_step

# A script that two processes run; each test says in CHANGE what is special about it.
WORKER = """
import os, signal, sys
from dataclasses import replace
import torch
from torch import nn
from verydeep.data import DataConfig
from verydeep.errors import UserError
from verydeep.training import Interrupted, ModelConfig, OptimConfig, Report, TrainConfig, make_model, resume, train

RANK = int(os.environ.get("RANK", "0"))
torch.set_num_threads(1)
config = TrainConfig(
    data=DataConfig("digits", validation=100),
    model=ModelConfig("highway-mlp", depth=4, width=10),
    optim=OptimConfig(lr=0.1),
    epochs=2,
    evaluate_train=True,
)
own = None
"""
MAIN = """
try:
    (resume if os.path.exists("run") else lambda path, model: train(config, path, model=model))("run", model=own)
except Interrupted as stopped:
    print(stopped)
except UserError as error:
    print("failed:", error)
    sys.exit(2)
"""
# A module that does something in the fifth forward pass of one process.
FIFTH = """
class Own(nn.Sequential):
    passes = 0
    def forward(self, x):
        self.passes += 1
        if self.passes == 5 and RANK == {rank}:
            {act}
        return super().forward(x.flatten(1))
torch.manual_seed(0)
own = Own(nn.Linear(64, 20), nn.Tanh(), nn.Linear(20, 10))
"""
# Samples that do not divide into whole batches or equal parts.
BATCHES = "config = replace(config, batch_size=66)\n"
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1", "--nproc-per-node", "2"]
SOURCE = str(Path(verydeep.__file__).parents[1])  # the package under test, whatever is installed
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": SOURCE}


def run_alone(folder: Path, change: str = "") -> str:
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-c", WORKER + change + MAIN]
    return subprocess.run(command, cwd=folder, env=ENVIRONMENT, check=True, capture_output=True, text=True).stdout


def run_together(folder: Path, change: str = "", code: int = 0) -> str:
    """Under torchrun, which also ends the others when one fails."""
    folder.mkdir(exist_ok=True)
    script = folder / "worker.py"
    script.write_text(WORKER + change + MAIN)
    command = [sys.executable, *TORCHRUN, str(script)]
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout


def run_unsupervised(folder: Path, change: str) -> list[tuple[int, str]]:
    """Exit code and output of each of two processes that nobody ends."""
    folder.mkdir(exist_ok=True)
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    shared = ENVIRONMENT | {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port)}
    shared["TORCHELASTIC_USE_AGENT_STORE"] = "True"  # the store is the one above, so that the port is surely free
    command = [sys.executable, "-c", WORKER + change + MAIN]
    processes = [
        subprocess.Popen(command, cwd=folder, env=shared | {"RANK": rank}, stdout=subprocess.PIPE, text=True)
        for rank in ("0", "1")
    ]
    return [(process.returncode, out) for process in processes for out in [process.communicate()[0]]]


def assert_same_result(one: Path, other: Path) -> None:
    runs = Run(one / "run", Run.load(one / "run").config), Run.load(other / "run")
    metrics = [[{k: v for k, v in line.items() if k != "seconds"} for line in run.metrics] for run in runs]
    assert len(metrics[0]) == len(metrics[1]) == 2
    for line, expected in zip(metrics[1], metrics[0], strict=True):
        assert line == pytest.approx(expected, abs=1e-5)
    weights = [load_file(run.path / "model.safetensors") for run in runs]
    for name in weights[0]:
        torch.testing.assert_close(weights[1][name], weights[0][name], rtol=1e-4, atol=1e-5)


def test_two_processes_give_the_result_of_one(tmp_path: Path) -> None:
    run_alone(tmp_path / "one", BATCHES)
    run_together(tmp_path / "two", BATCHES)
    assert_same_result(tmp_path / "one", tmp_path / "two")
    made_by = [json.loads((tmp_path / name / "run" / "environment.json").read_text()) for name in ("one", "two")]
    assert [environment["processes"] for environment in made_by] == [1, 2]


def test_the_command_prints_once_and_chooses_one_folder(tmp_path: Path) -> None:
    options = ["train", "--data.source", "digits", "--model.depth", "3", "--epochs", "2", "--threads", "1"]
    command = [sys.executable, *TORCHRUN, "-m", "verydeep", *options]
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, check=True, capture_output=True, text=True)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["epoch", "epoch", "finished"]
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["highway-mlp-digits-1"]


def test_every_process_starts_from_the_first_ones_weights(tmp_path: Path) -> None:
    own = FIFTH.format(rank=-1, act="pass")
    run_alone(tmp_path / "one", own)
    run_together(tmp_path / "two", own.replace("manual_seed(0)", "manual_seed(RANK)"))
    assert_same_result(tmp_path / "one", tmp_path / "two")


@pytest.mark.parametrize(("rank", "name"), [(0, "SIGINT"), (1, "SIGTERM")])
def test_a_signal_to_one_process_stops_both_and_saves(tmp_path: Path, rank: int, name: str) -> None:
    signalled = FIFTH.format(rank=rank, act=f"os.kill(os.getpid(), signal.{name})")
    undisturbed = FIFTH.format(rank=-1, act="pass")
    out = run_together(tmp_path / "two", signalled)
    assert out.count("interrupted and saved") == 2
    assert [p.name for p in sorted((tmp_path / "two" / "run" / "checkpoint").iterdir())][-1].startswith("000000-000000")
    events = (tmp_path / "two" / "run" / "events.log").read_text()
    assert events.count("interrupted") == 1
    run_alone(tmp_path / "one", undisturbed)
    if rank == 0:
        run_together(tmp_path / "two", undisturbed)  # goes on with as many processes, or with another number
    else:
        run_alone(tmp_path / "two", undisturbed)
    assert_same_result(tmp_path / "one", tmp_path / "two")


def test_one_process_continues_what_it_began_with_two(tmp_path: Path) -> None:
    run_alone(tmp_path / "one", FIFTH.format(rank=0, act="os.kill(os.getpid(), signal.SIGINT)"))
    undisturbed = FIFTH.format(rank=-1, act="pass")
    run_together(tmp_path / "one", undisturbed)
    run_alone(tmp_path / "whole", undisturbed)
    assert_same_result(tmp_path / "whole", tmp_path / "one")


@pytest.mark.parametrize("killed", [0, 1])
def test_when_one_process_is_killed_the_other_says_so_and_ends(tmp_path: Path, killed: int) -> None:
    ends = run_unsupervised(tmp_path / "two", FIFTH.format(rank=killed, act="os.kill(os.getpid(), signal.SIGKILL)"))
    code, out = ends[1 - killed]
    assert ends[killed] == (-9, "")
    assert code == 2
    assert out.startswith(f"failed: process {1 - killed} lost the others")
    assert out.count("\n") == 1
    undisturbed = FIFTH.format(rank=-1, act="pass")
    run_alone(tmp_path / "two", undisturbed)
    run_alone(tmp_path / "one", undisturbed)
    assert_same_result(tmp_path / "one", tmp_path / "two")


def test_torchrun_ends_when_one_process_fails(tmp_path: Path) -> None:
    run_together(tmp_path, FIFTH.format(rank=1, act="raise MemoryError"), code=1)


@pytest.mark.parametrize("rank", [0, 1])
def test_what_fails_in_one_process_before_training_is_said_once(tmp_path: Path, rank: int) -> None:
    ends = run_unsupervised(tmp_path, f"if RANK == {rank}: config = replace(config, data=DataConfig('nothing.csv'))\n")
    assert [code for code, _ in ends] == [2, 2]
    assert "nothing.csv" in ends[rank][1]
    assert ends[1 - rank][1] == ""


def test_what_fails_in_every_process_is_said_once(tmp_path: Path) -> None:
    ends = run_unsupervised(tmp_path, "config = replace(config, batch_size=65)\n")
    assert [code for code, _ in ends] == [2, 2]
    assert "65 cannot be shared by 2 processes" in ends[0][1]
    assert ends[1][1] == ""


def test_processes_that_read_different_checkpoints_are_refused(tmp_path: Path) -> None:
    run_alone(tmp_path, FIFTH.format(rank=0, act="os.kill(os.getpid(), signal.SIGINT)"))
    elsewhere = "import shutil\nif RANK == 1:\n    os.chdir(shutil.copytree('.', '../elsewhere'))\n"
    elsewhere += "    [path.unlink() for path in __import__('pathlib').Path('run/checkpoint').iterdir()]\n"
    ends = run_unsupervised(tmp_path, elsewhere + FIFTH.format(rank=-1, act="pass"))
    assert [code for code, _ in ends] == [2, 2]
    assert "must be on a disk that all machines share" in ends[0][1]


def test_running_statistics_are_those_of_all_processes(tmp_path: Path) -> None:
    # With momentum 1 they are the last batch's: 100 samples, half of them in each process.
    own = "config = replace(config, epochs=1, data=replace(config.data, validation=None, test=97))\n"
    own += "own = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64, momentum=1.0), nn.Linear(64, 10))\n"
    run_alone(tmp_path / "one", own)
    run_together(tmp_path / "two", own)
    one, two = (load_file(tmp_path / name / "run" / "model.safetensors") for name in ("one", "two"))
    torch.testing.assert_close(two["1.running_mean"], one["1.running_mean"])
    assert one["1.running_mean"].abs().max() > 0.1
    assert two["1.num_batches_tracked"] == one["1.num_batches_tracked"] == 17


def test_one_process_can_train_with_others_twice(tmp_path: Path) -> None:
    run_together(tmp_path, "train(replace(config, epochs=1), 'before')\n")
    assert [len(Run.load(tmp_path / name).metrics) for name in ("before", "run")] == [1, 2]


def test_every_process_has_its_own_dropout() -> None:
    def draw(rank: int, batch: int) -> Any:
        seed_step(7, 1, batch, World(rank, 2, torch.device("cpu")))
        return torch.rand(3).tolist()

    assert draw(0, 5) == draw(0, 5)
    assert draw(0, 5) != draw(1, 5)
    assert draw(0, 5) != draw(0, 6)
