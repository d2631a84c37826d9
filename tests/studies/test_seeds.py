import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from verydeep.cli import main
from verydeep.data import DataConfig, Dataset, Split
from verydeep.errors import UserError
from verydeep.lock import exclusive_lock, is_held
from verydeep.studies import (
    Seeds,
    StudyProgress,
    TrainingRecord,
    free_cores,
    open_study,
    resume_seeds,
    train_seeds,
)
from verydeep.studies.seeds._seeds import statistics
from verydeep.training import (
    EpochMetrics,
    ModelConfig,
    OptimConfig,
    Run,
    TrainConfig,
    list_runs,
    list_studies,
    remove_run,
    resume,
    train,
)

FIXTURE = Path(__file__).parents[1] / "fixtures" / "runs-0.2.0" / "seeds"
LONG = ["--data.source", "digits", "--model.depth", "3", "--model.width", "6", "--epochs", "5000", "--seeds", "2"]
QUICK = TrainConfig(
    DataConfig("digits"),
    ModelConfig(depth=3, width=6),
    OptimConfig(lr=0.1),
    epochs=2,
    batch_size=100,
    metric="accuracy",
    threads=1,
    checkpoint_every=0.0,
)


@pytest.fixture
def tiny() -> Dataset:
    def split(samples: int) -> Split:
        y = torch.arange(samples) % 3
        return Split(torch.randn(samples, 1, 4, 4) + y[:, None, None, None], y)

    return Dataset("tiny", split(115), split(40), split(50), ("a", "b", "c"))


def quick(**changes: object) -> TrainConfig:
    return TrainConfig(**vars(QUICK) | changes)


def trained(path: Path, config: TrainConfig, tiny: Dataset, *seeds: int) -> Seeds:
    """A folder of seeds as an earlier version would have left it, without the processes."""
    made = Seeds.create(path, config, seeds)
    for seed in seeds:
        train(replace(config, seed=seed), made.folder(seed), dataset=tiny)
    return made


def timeless(run: Run) -> list[EpochMetrics]:
    return [replace(line, seconds=0) for line in run.metrics]


def weights(run: Run) -> bytes:
    return (run.path / "model.safetensors").read_bytes()


def command(*arguments: str) -> "subprocess.Popen[str]":
    whole = [sys.executable, "-m", "verydeep", *arguments]
    return subprocess.Popen(whole, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def started(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    """`verydeep train` in a process of its own, once the first seed has trained another epoch."""
    metrics = folder / "seed-0" / "metrics.jsonl"
    before = len(metrics.read_text()) if metrics.exists() else 0
    process = command("train", *arguments, "--quiet")
    while not metrics.exists() or len(metrics.read_text()) <= before:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    return process


def was_interrupted(run: Run) -> bool:
    return (run.path / "events.log").read_text().endswith(" interrupted\n")


def wait_until_nobody_trains(seeds: Seeds) -> None:
    while any(is_held(run.path / "lock") for run in seeds.runs.values()):
        time.sleep(0.05)


def worker_id(record: TrainingRecord) -> int:
    """The process id, which is part of a worker's name."""
    return int(record.worker.split("-")[-2])


class KillOnce(StudyProgress):
    """Kills the worker of the first training that has completed an epoch."""

    killed = ""

    def update(self, records: list[TrainingRecord]) -> None:
        for record in records:
            if record.status == "training" and record.epochs and not self.killed:
                self.killed = record.worker
                os.kill(worker_id(record), signal.SIGKILL)


@pytest.mark.slow
def test_every_seed_is_the_run_it_would_be_alone_and_can_be_trained_for_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["verydeep", "train", "--seeds", "2"])
    seeds = train_seeds(quick(seed=5, threads=None), 2, tmp_path / "seeds")
    alone = train(quick(seed=6), tmp_path / "alone")
    assert seeds.seeds == (5, 6)
    assert seeds.runs[6].config == alone.config  # one thread each
    assert timeless(seeds.runs[6]) == timeless(alone)
    assert timeless(seeds.runs[5]) != timeless(alone)
    assert weights(seeds.runs[6]) == weights(alone)
    assert [record.curve for record in seeds.records] == [run.metrics for run in seeds.runs.values()]
    recorded = json.loads((seeds.folder(6) / "environment.json").read_text())
    assert recorded["command"] == "verydeep train --seeds 2"

    longer = resume_seeds(seeds, epochs=3)
    assert weights(longer.runs[6]) == weights(train(quick(seed=6, epochs=3), tmp_path / "once"))
    assert longer.summary is not None
    assert longer.summary["runs"] == 2
    assert [record.epochs for record in longer.records] == [3, 3]
    with pytest.raises(UserError, match="has already completed 3 epochs"):
        resume_seeds(seeds, epochs=2)
    assert Seeds.load(seeds.path).config.epochs == 3


def test_the_result_is_written_as_the_paper_writes_it() -> None:
    result = statistics([0.9, 0.92, 0.94])
    assert result["text"] == "94.00 (92.00 ± 2.00)"  # over n - 1; over n it would be 1.63
    assert result["std"] == pytest.approx(0.02)
    assert statistics([0.9])["text"] == "90.00 (90.00)"
    assert statistics([0.9])["std"] is None


@pytest.mark.slow
def test_a_seed_that_fails_does_not_lose_the_others_and_can_be_tried_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seeds = Seeds.create(tmp_path / "seeds", QUICK, (0, 1, 2))
    seeds.folder(1).mkdir()
    (seeds.folder(1) / "in the way").touch()
    seeds = resume_seeds(seeds.path, jobs=1, progress=False)
    summary = seeds.summary
    assert summary is not None
    assert [line["status"] for line in summary["seeds"]] == ["finished", "failed", "finished"]
    assert "already exists" in summary["seeds"][1]["problem"]
    assert summary["runs"] == 2
    assert "over 2 runs; 1 failed (" in seeds.describe()
    assert main(["train", "--resume", str(seeds.path), "--jobs", "1", "--quiet"]) == 2
    assert "1 of 3 seeds failed (seed 1: " in capsys.readouterr().err

    (seeds.folder(1) / "in the way").unlink()
    assert main(["train", "--resume", str(seeds.path), "--jobs", "1"]) == 0
    assert "sample standard deviation over 3 runs" in capsys.readouterr().out
    values = [run.metrics[-1].to_dict()["test_accuracy"] for run in seeds.runs.values()]
    assert seeds.summary is not None
    assert seeds.summary["best"] == max(values)
    assert seeds.summary["mean"] == pytest.approx(sum(values) / 3)
    assert [record.attempts for record in seeds.records] == [1, 3, 1]


def test_a_seed_whose_worker_has_ended_has_failed(tmp_path: Path) -> None:
    seeds = Seeds.create(tmp_path / "seeds", QUICK, (0, 1))
    seeds.finish([TrainingRecord(0, "waiting"), TrainingRecord(1, "training")])
    assert list(seeds.problems) == [0, 1]
    assert seeds.problems[1] == "its worker ended before the training did"


def test_a_start_that_met_a_full_disk_is_continued(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["train", "digits", "--depth", "2", "--width", "4", "--epochs", "1", "--seeds", "1", "--jobs", "1"]
    command += ["--folder", str(tmp_path / "seeds"), "--continue"]

    def full(*_: object) -> None:
        raise UserError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("verydeep.studies._open._write_study_json", full)
        assert main(command) == 2
    assert "the disk is full" in capsys.readouterr().err
    assert main(command) == 0


def test_a_training_that_killed_its_workers_is_tried_again(tmp_path: Path, tiny: Dataset) -> None:
    seeds = resume_seeds(trained(tmp_path / "seeds", QUICK, tiny, 0, 1))
    seeds.study.add_result("seed-1", "failed", [])
    assert seeds.study.records()[1].status == "failed"
    (seeds.folder(1) / "summary.json").rename(tmp_path / "summary.json")
    with pytest.raises(Stopped):
        resume_seeds(seeds, jobs=0, progress=Stopped.at_start())
    assert seeds.records[1].status == "waiting"


class Stopped(Exception):  # noqa: N818 - not an error
    """What a display raises to end `resume_seeds` before it waits for workers."""

    @classmethod
    def at_start(cls) -> StudyProgress:
        class Display(StudyProgress):
            def start(self, *arguments: object) -> None:
                raise cls

        return Display()


def test_a_seed_that_diverges_is_left_out_counted_and_not_trained_for_longer(tmp_path: Path, tiny: Dataset) -> None:
    seeds = Seeds.create(tmp_path / "seeds", QUICK, (0, 1, 2))
    for seed in (0, 1):
        train(quick(seed=seed), seeds.folder(seed), dataset=tiny)
    diverged = train(quick(seed=2, optim=OptimConfig(lr=1e30)), seeds.folder(2), dataset=tiny)
    assert diverged.summary is not None
    seeds = resume_seeds(seeds)
    assert seeds.summary is not None
    assert seeds.summary["runs"] == 2
    assert seeds.summary["seeds"][2] == {"seed": 2, "status": "diverged", "value": None}
    assert "over 2 runs; 1 diverged; everything is in" in seeds.describe()

    for seed in (0, 1):
        resume(seeds.folder(seed), epochs=3, dataset=tiny)
    seeds = resume_seeds(seeds, epochs=3)  # nothing is left to train
    assert [record.epochs for record in seeds.records] == [3, 3, diverged.summary.epochs]


def test_a_run_that_was_continued_on_its_own_counts_as_it_is_now(tmp_path: Path, tiny: Dataset) -> None:
    seeds = resume_seeds(trained(tmp_path / "seeds", QUICK, tiny, 0, 1))
    run = resume(seeds.folder(1), epochs=5, dataset=tiny)
    seeds = resume_seeds(seeds)
    assert seeds.summary is not None
    assert run.measured is not None
    assert seeds.summary["seeds"][1]["value"] == run.measured.test_accuracy
    assert [record.epochs for record in seeds.records] == [2, 5]
    with pytest.raises(UserError, match="seed-1 has already completed 5 epochs"):
        resume_seeds(seeds, epochs=4)
    assert json.loads((seeds.path / "seeds.json").read_text())["training"]["epochs"] == 2
    assert seeds.summary is not None


def test_the_best_epoch_on_validation_data_counts(tmp_path: Path, tiny: Dataset) -> None:
    config = quick(optim=OptimConfig(lr=1.0), batch_size=10, epochs=6)
    seeds = resume_seeds(trained(tmp_path / "seeds", config, tiny, 0, 1, 2))
    assert seeds.summary is not None
    measured = [run.measured for run in seeds.runs.values()]
    assert [line["value"] for line in seeds.summary["seeds"]] == [line and line.test_accuracy for line in measured]
    assert any(line is not None and line.epoch < 6 for line in measured)


def test_when_all_diverge_that_is_the_result(tmp_path: Path, tiny: Dataset) -> None:
    seeds = resume_seeds(trained(tmp_path / "seeds", quick(optim=OptimConfig(lr=1e30)), tiny, 0))
    assert seeds.describe().startswith("no seed finished; 1 diverged; logs and runs are in")


def test_seeds_of_other_machines_count_and_are_named(tmp_path: Path, tiny: Dataset) -> None:
    seeds = resume_seeds(trained(tmp_path / "seeds", QUICK, tiny, 0, 1, 2))
    before = seeds.summary
    shutil.move(seeds.folder(1), tmp_path / "another machine")
    seeds = resume_seeds(seeds)
    assert seeds.summary == before
    assert seeds.describe().endswith(f"the run of 1 seed is on other machines, everything else is in {seeds.path}")
    assert list(seeds.runs) == [0, 2]
    assert [line.get_label() for line in seeds.plot().axes[0].lines] == ["seed 0", "seed 1", "seed 2"]
    for seed in (0, 2):
        shutil.rmtree(seeds.folder(seed))
    with pytest.raises(UserError, match=r"epochs = 1, but seed-0 of .* has already completed 2 epochs"):
        resume_seeds(seeds, epochs=1)
    assert seeds.describe().endswith("over 3 runs; the runs are on other machines")


def test_seeds_say_what_they_reached_and_draw_all_curves(tmp_path: Path, tiny: Dataset) -> None:
    empty = Seeds.create(tmp_path / "empty", QUICK, (0, 1))
    assert repr(empty) == f"Seeds('{empty.path}', 2 seeds, 0 finished)"
    assert "<svg" not in empty._repr_html_()
    assert empty._repr_html_().count("<img") == 0
    with pytest.raises(UserError, match="no epoch is complete yet"):
        empty.plot()
    seeds = resume_seeds(trained(tmp_path / "seeds", QUICK, tiny, 0, 1))
    assert seeds.summary is not None
    assert repr(seeds) == f"Seeds('{seeds.path}', 2 seeds, best (mean ± std) test accuracy {seeds.summary['text']} %)"
    page = seeds._repr_html_()
    assert page.count("<img") == 1
    assert page.count("<tr>") == 2
    figure = seeds.plot(tmp_path / "seeds.png", metric="valid_loss", log=True)
    assert [line.get_label() for line in figure.axes[0].lines] == ["seed 0", "seed 1"]
    for file in (seeds.path / "summary.json", seeds.folder(0) / "config.json"):
        file.write_text("[" * 5000)
        assert "damaged" in repr(seeds)
        assert "<b>Seeds" in seeds._repr_html_()
        file.unlink()


@pytest.mark.slow
def test_seeds_of_version_0_2_are_continued(tmp_path: Path) -> None:
    folder = tmp_path / "seeds"
    shutil.copytree(FIXTURE, folder)
    (folder / "figure.png").touch()  # people put things there
    finished, before = weights(Run.load(folder / "seed-0")), timeless(Run.load(folder / "seed-1"))
    assert Seeds.load(folder).describe().endswith("has not finished and can be resumed")
    seeds = resume_seeds(folder, jobs=1)
    assert [(record.status, record.epochs) for record in seeds.records] == [("finished", 40)] * 3
    assert weights(seeds.runs[0]) == finished
    assert timeless(seeds.runs[1])[: len(before)] == before
    alone = [train(replace(seeds.config, seed=seed), tmp_path / f"alone-{seed}") for seed in (1, 2)]
    assert weights(seeds.runs[2]) == weights(alone[1])
    assert seeds.runs[1].metrics[-1].loss == pytest.approx(alone[0].metrics[-1].loss, rel=1e-3)  # another processor?
    assert seeds.summary is not None
    assert seeds.summary["runs"] == 3


@pytest.mark.slow
def test_control_c_saves_every_seed_and_says_how_to_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "seeds"
    process = started(folder, *LONG, "--folder", str(folder))
    process.send_signal(signal.SIGINT)
    assert process.communicate() == (
        "",
        f"verydeep: interrupted and saved; continue with: verydeep train --resume {folder}\n",
    )
    assert process.returncode == 130
    seeds = Seeds.load(folder)
    assert seeds.summary is None
    assert was_interrupted(seeds.runs[0])
    assert not any(is_held(run.path / "lock") for run in seeds.runs.values())
    assert "training" not in [record.status for record in seeds.records]

    process = started(folder, "--resume", str(folder))
    workers = {worker_id(record) for record in seeds.records if record.status == "training"}
    for worker in workers:
        os.kill(worker, signal.SIGSTOP)  # so that it does not save before the second Ctrl-C
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(1)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert "saved" not in errors
    assert workers
    assert not any(is_held(run.path / "lock") for run in seeds.runs.values())
    epochs = [line.epoch for line in seeds.runs[0].metrics]
    assert epochs == list(range(1, len(epochs) + 1))


@pytest.mark.slow
def test_seeds_save_and_end_when_the_process_that_started_them_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "seeds"
    process = started(folder, *LONG, "--folder", str(folder))
    process.kill()
    process.communicate()
    seeds = Seeds.load(folder)
    wait_until_nobody_trains(seeds)
    assert was_interrupted(seeds.runs[0])


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced(tmp_path: Path) -> None:
    config, killer = quick(epochs=30, batch_size=20), KillOnce()
    seeds = train_seeds(config, 1, tmp_path / "seeds", progress=killer)
    [record] = seeds.records
    assert killer.killed
    assert (record.status, record.attempts) == ("finished", 2)
    assert record.worker != killer.killed
    assert weights(seeds.runs[0]) == weights(train(config, tmp_path / "alone"))


@pytest.mark.slow
def test_workers_may_join_from_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / "seeds"
    settings = ["--data.source", "digits", "--model.depth", "3", "--model.width", "6", "--epochs", "2"]
    waiting = command("train", *settings, "--seeds", "2", "--folder", str(folder), "--jobs", "0")
    while not (folder / "study.json").exists():
        assert waiting.poll() is None, waiting.communicate()
        time.sleep(0.05)
    worker = command("worker", str(folder))
    printed, errors = worker.communicate()
    assert (worker.returncode, errors) == (0, "")
    assert "seed-1: finished after 2 epochs" in printed
    printed, errors = waiting.communicate()
    assert (waiting.returncode, errors) == (0, "")
    assert "sample standard deviation over 2 runs; everything is in" in printed
    assert {worker_id(record) for record in Seeds.load(folder).records} == {worker.pid}


def test_what_cannot_be_trained_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match="the number of seeds must be from 1 to 10,000, got 0"):
        train_seeds(QUICK, 0, tmp_path / "seeds")
    with pytest.raises(UserError, match="did you mean 'highway-mlp'"):
        train_seeds(quick(model=ModelConfig("highway-mpl")), 2, tmp_path / "seeds")
    with pytest.raises(UserError, match="jobs must be 0 or more, got -1"):
        train_seeds(QUICK, 2, tmp_path / "seeds", jobs=-1)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UserError, match="without torchrun"):
        train_seeds(QUICK, 2, tmp_path / "seeds")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_whose_storage_cannot_be_used_stays_free(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="storage: expected postgresql://"):
        train_seeds(QUICK, 2, tmp_path / "seeds", storage="sqlite:///file")
    Seeds.create(tmp_path / "seeds", QUICK, (0,))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["digits", "--jobs", "2"], "--jobs needs --seeds N"),
        (["digits", "--storage", "postgresql://host/name"], "--storage needs --seeds N"),
        (["digits", "--artifacts", "there"], "--artifacts needs --seeds N"),
        (["digits", "--heartbeat", "3"], "--heartbeat needs --seeds N"),
        (["digits", "--seeds", "2", "--jobs", "-1"], "--jobs must be 0 or more, got -1"),
        (["digits", "--seeds", "2", "--heartbeat", "0"], "--heartbeat must be at least 1, got 0"),
        (["--resume", "one", "--jobs", "2"], "--jobs needs a folder made with --seeds"),
        (["seeds"], "seeds is a run; continue it with: verydeep train --resume seeds"),
    ],
)
def test_options_of_a_study_need_seeds(
    tmp_path: Path,
    arguments: list[str],
    problem: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one").mkdir()
    Seeds.create(tmp_path / "seeds", QUICK, (0,))
    assert main(["train", *arguments]) == 2
    errors = capsys.readouterr().err
    assert problem in errors
    assert errors.count("\n") == 1


def test_a_folder_that_is_taken_is_refused(tmp_path: Path) -> None:
    (tmp_path / "note").touch()
    with pytest.raises(UserError, match="already exists"):
        train_seeds(QUICK, 2, tmp_path)


def test_a_folder_is_trained_by_one_command_at_a_time(tmp_path: Path) -> None:
    seeds = Seeds.create(tmp_path / "seeds", QUICK, (0,))
    with (
        exclusive_lock(seeds.path / "lock", "", wait=False),
        pytest.raises(UserError, match="is being trained by another process"),
    ):
        resume_seeds(seeds)


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 7}'])
def test_a_spoilt_list_of_seeds_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "seeds.json").write_text(text)
    with pytest.raises(UserError, match=r"seeds\.json"):
        Seeds.load(tmp_path)


@pytest.mark.slow
def test_an_error_of_all_seeds_is_said_once(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="every seed failed: patience needs validation data"):
        train_seeds(quick(patience=1), 1, tmp_path / "seeds")


def test_threads_decide_how_many_train_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8))
    monkeypatch.setattr(sys, "platform", "linux")
    assert [free_cores("cpu", threads) for threads in (1, 3, 16)] == [8, 2, 1]
    assert free_cores("cuda", 1) == 1


def test_the_runs_of_seeds_are_listed_and_removed_together(tmp_path: Path, tiny: Dataset) -> None:
    seeds = resume_seeds(trained(tmp_path / "seeds", QUICK, tiny, 0, 1))
    assert [info.name for info in list_runs(tmp_path)] == ["seeds/seed-0", "seeds/seed-1"]
    assert list_studies(tmp_path) == []
    study = open_study(seeds.path)
    with study.store.working("worker"), pytest.raises(UserError, match="is being trained by another process"):
        remove_run(seeds)
    remove_run(seeds)
    assert list(tmp_path.iterdir()) == []
