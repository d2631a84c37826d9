import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from verydeep.cli import main
from verydeep.errors import UserError
from verydeep.lock import is_held
from verydeep.training import (
    EpochMetrics,
    ModelConfig,
    OptimConfig,
    Run,
    Seeds,
    TrainConfig,
    resume_seeds,
    train,
    train_seeds,
)
from verydeep.training.seeds._seeds_folder import statistics
from verydeep.training.seeds._seeds_progress import SeedsLines, SeedsTable
from verydeep.training.seeds._train_seeds import SeedProcess, _default_jobs

Configure = Callable[..., TrainConfig]
LONG = ["--data.source", "digits", "--model.depth", "3", "--model.width", "6", "--epochs", "5000", "--seeds", "2"]


@pytest.fixture
def quick(configure: Configure) -> TrainConfig:
    return configure(batch_size=100, epochs=2)


def timeless(run: Run) -> list[EpochMetrics]:
    return [replace(line, seconds=0) for line in run.metrics]


def started(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    """The command in a process of its own, once the first seed has trained another epoch."""
    metrics = folder / "seed-0" / "metrics.jsonl"
    before = len(metrics.read_text()) if metrics.exists() else 0
    command = [sys.executable, "-m", "verydeep", "train", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not metrics.exists() or len(metrics.read_text()) <= before:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    return process


def was_interrupted(run: Run) -> bool:
    return (run.path / "events.log").read_text().endswith(" interrupted\n")


@pytest.mark.slow
def test_every_seed_is_the_run_it_would_be_alone(tmp_path: Path, quick: TrainConfig) -> None:
    seeds = train_seeds(TrainConfig(**vars(quick) | {"seed": 5, "threads": None}), 2, tmp_path / "seeds")
    alone = train(TrainConfig(**vars(quick) | {"seed": 6}), tmp_path / "alone")
    assert seeds.seeds == (5, 6)
    assert seeds.runs[6].config == alone.config  # one thread each
    assert timeless(seeds.runs[6]) == timeless(alone)
    assert timeless(seeds.runs[5]) != timeless(alone)
    weights = [(run.path / "model.safetensors").read_bytes() for run in (seeds.runs[6], alone)]
    assert weights[0] == weights[1]


def test_the_result_is_written_as_the_paper_writes_it() -> None:
    result = statistics([0.9, 0.92, 0.94])
    assert result["text"] == "94.00 (92.00 ± 2.00)"  # over n - 1; over n it would be 1.63
    assert result["std"] == pytest.approx(0.02)
    assert statistics([0.9])["text"] == "90.00 (90.00)"
    assert statistics([0.9])["std"] is None


@pytest.mark.slow
def test_a_seed_that_fails_does_not_lose_the_others_and_can_be_tried_again(
    tmp_path: Path, quick: TrainConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    seeds = Seeds.create(tmp_path / "seeds", quick, (0, 1, 2))
    (seeds.folder(1)).mkdir()
    (seeds.folder(1) / "in the way").touch()
    resume_seeds(seeds.path, progress=SeedsLines())
    printed = capsys.readouterr().out
    assert "seed 1  failed:" in printed
    assert printed.count("epoch") == 4
    summary = seeds.summary
    assert summary is not None
    assert [line["status"] for line in summary["seeds"]] == ["finished", "failed", "finished"]
    assert "already exists" in summary["seeds"][1]["problem"]
    assert summary["runs"] == 2
    assert "over 2 runs; 1 failed (" in seeds.describe()

    (seeds.folder(1) / "in the way").unlink()
    assert main(["train", "--resume", str(seeds.path)]) == 0
    printed = capsys.readouterr().out
    assert printed.count("seed 1  epoch") == 2
    assert "seed 0" not in printed
    assert "sample standard deviation over 3 runs" in printed
    values = [run.metrics[-1].to_dict()["test_accuracy"] for run in seeds.runs.values()]
    assert seeds.summary is not None
    assert seeds.summary["best"] == max(values)
    assert seeds.summary["mean"] == pytest.approx(sum(values) / 3)


def test_a_seed_that_diverges_is_left_out_and_counted(tmp_path: Path, quick: TrainConfig) -> None:
    seeds = Seeds.create(tmp_path / "seeds", quick, (0, 1, 2))
    for seed in seeds.seeds:
        run = train(TrainConfig(**vars(quick) | {"seed": seed}), seeds.folder(seed))
    assert run.summary is not None
    run.finish(replace(run.summary, status="diverged"))
    seeds.finish({})
    assert seeds.summary is not None
    assert seeds.summary["runs"] == 2
    assert seeds.summary["seeds"][2] == {"seed": 2, "status": "diverged", "value": None}
    assert "over 2 runs; 1 diverged; everything is in" in seeds.describe()


def test_when_all_diverge_that_is_the_result(tmp_path: Path, configure: Configure) -> None:
    config = configure(optim=OptimConfig(lr=1e30), batch_size=100)
    seeds = Seeds.create(tmp_path / "seeds", config, (0,))
    train(config, seeds.folder(0))
    seeds.finish({})
    assert seeds.describe().startswith("no seed finished; 1 diverged; logs and runs are in")


@pytest.mark.slow
def test_control_c_saves_every_seed_and_says_how_to_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "seeds"
    for arguments in ([*LONG, "--folder", str(folder)], ["--resume", str(folder)]):
        process = started(folder, *arguments)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
        assert process.returncode == 130
        assert errors == f"verydeep: interrupted and saved; continue with: verydeep train --resume {folder}\n"
        seeds = Seeds.load(folder)
        assert seeds.summary is None
        assert was_interrupted(seeds.runs[0])
        assert not any(is_held(run.path / "lock") for run in seeds.runs.values())
    epochs = [line.epoch for line in seeds.runs[0].metrics]
    assert epochs == list(range(1, len(epochs) + 1))


@pytest.mark.slow
def test_a_seed_that_someone_else_stops_is_named(
    tmp_path: Path, quick: TrainConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(SeedProcess):
        """The second seed's process gets SIGTERM before it has done anything, so it saves and ends as if asked."""

        def __init__(self, folder: Path, seed: int, *others: Any) -> None:
            super().__init__(folder, seed, *others)
            if seed == 1:
                self.stop()

    monkeypatch.setattr("verydeep.training.seeds._train_seeds.SeedProcess", Stopped)
    seeds = train_seeds(quick, 2, tmp_path / "seeds")
    assert seeds.summary is not None
    assert [line["status"] for line in seeds.summary["seeds"]] == ["finished", "failed"]
    assert "1 failed (its process was asked to stop; resume " in seeds.describe()


@pytest.mark.slow
def test_seeds_save_and_end_when_the_process_that_started_them_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "seeds"
    process = started(folder, *LONG, "--folder", str(folder))
    process.kill()
    process.communicate()
    runs = Seeds.load(folder).runs
    while any(is_held(run.path / "lock") for run in runs.values()):
        time.sleep(0.05)
    assert was_interrupted(runs[0])


def test_what_cannot_be_trained_is_refused_before_anything_is_made(
    tmp_path: Path, quick: TrainConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match="the number of seeds must be from 1 to 10,000, got 0"):
        train_seeds(quick, 0, tmp_path / "seeds")
    with pytest.raises(UserError, match="did you mean 'highway-mlp'"):
        train_seeds(TrainConfig(**vars(quick) | {"model": ModelConfig("highway-mpl")}), 2, tmp_path / "seeds")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UserError, match="without torchrun"):
        train_seeds(quick, 2, tmp_path / "seeds")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_taken_is_refused(tmp_path: Path, quick: TrainConfig) -> None:
    (tmp_path / "note").touch()
    with pytest.raises(UserError, match="already exists"):
        train_seeds(quick, 2, tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 7}'])
def test_a_spoilt_list_of_seeds_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "seeds.json").write_text(text)
    with pytest.raises(UserError, match=r"seeds\.json"):
        Seeds.load(tmp_path)


@pytest.mark.slow
def test_an_error_of_all_seeds_is_said_once(tmp_path: Path, quick: TrainConfig) -> None:
    with pytest.raises(UserError, match="every seed failed: patience needs validation data"):
        train_seeds(TrainConfig(**vars(quick) | {"patience": 1}), 1, tmp_path / "seeds")


def test_threads_decide_how_many_train_at_once(quick: TrainConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8))
    monkeypatch.setattr(sys, "platform", "linux")
    counts = [
        _default_jobs(TrainConfig(**vars(quick) | {"threads": threads, "device": "cpu"})) for threads in (1, 3, 16)
    ]
    assert counts == [8, 2, 1]
    assert _default_jobs(TrainConfig(**vars(quick) | {"device": "cuda"})) == 1


def test_the_table_has_a_row_for_every_seed(
    tmp_path: Path, quick: TrainConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    seeds = Seeds.create(tmp_path / "seeds", quick, (0, 1, 2, 3))
    train(quick, seeds.folder(0))
    table = SeedsTable()
    table.start(seeds)
    table.update([1], {2: "[no] way"})
    table.close()
    rows = capsys.readouterr().out
    for cells in ("│ 0    │ finished", "│ 1    │ training", "│ 2    │ failed: [no] way", "│ 3    │ waiting"):
        assert cells in rows
    assert "validation" not in rows  # there is no validation data


@pytest.mark.slow
def test_all_seeds_are_trained_for_longer_and_record_the_command_of_the_parent(
    tmp_path: Path, quick: TrainConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["verydeep", "train", "--seeds", "2"])
    seeds = train_seeds(quick, 2, tmp_path / "seeds")
    longer = resume_seeds(seeds, epochs=quick.epochs + 1)
    once = train(replace(quick, epochs=quick.epochs + 1, seed=1, threads=1), tmp_path / "once")
    assert [run.metrics[-1].epoch for run in longer.runs.values()] == [quick.epochs + 1] * 2
    weights = (longer.folder(1) / "model.safetensors").read_bytes()
    assert weights == (once.path / "model.safetensors").read_bytes()
    assert longer.summary is not None
    assert longer.summary["runs"] == 2
    recorded = json.loads((longer.folder(1) / "environment.json").read_text())
    assert recorded["command"] == "verydeep train --seeds 2"
