"""The files for SLURM, run by a SLURM of one node: jobs that are requeued end with the bits of undisturbed ones."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ._slurm import INSTALL, Slurm, installed
from .conftest import EPOCHS, ROOT, SEARCH, TRAINING, commands, result, run, runs, wait_until, words


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    if not installed():
        pytest.skip(f"no SLURM here: {INSTALL}")
    with Slurm() as running:
        yield running


@pytest.fixture
def login(slurm: Slurm, environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment of a user on the login node, in a folder with the files."""
    (tmp_path / "cluster").symlink_to(ROOT / "cluster")
    (tmp_path / "training.toml").write_text(TRAINING)
    (tmp_path / "search.toml").write_text(SEARCH)
    monkeypatch.chdir(tmp_path)
    return environment | {"SLURM_CONF": slurm.environment["SLURM_CONF"]}


def start_again(slurm: Slurm, job: str) -> None:
    """Wait until a job is back in the queue, and start it at once: SLURM would wait for two minutes."""
    wait_until(lambda: set(slurm.states(job).values()) == {"PENDING"})
    slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now")


def wait_for_end(slurm: Slurm, job: str) -> None:
    wait_until(lambda: not set(slurm.states(job).values()) & {"PENDING", "RUNNING", "COMPLETING", "CONFIGURING"})


def lines(path: Path) -> list[str]:
    return (path / "metrics.jsonl").read_text().splitlines()


@pytest.mark.slow
def test_a_study_is_completed_by_requeued_workers_with_the_same_bits(
    slurm: Slurm, login: dict[str, str], tmp_path: Path
) -> None:
    start, submit, _ = commands("SLURM")
    study, calm = tmp_path / "digits", tmp_path / "calm"
    begin = words(start, **{"search-digits": "search.toml", "/shared": tmp_path})
    with subprocess.Popen(begin, env=login, stdout=subprocess.DEVNULL) as watching:
        wait_until((study / "study.json").exists)
        _, *file = words(submit, **{"/shared": tmp_path})
        job = run(login, "sbatch", "--parsable", "--array=0-1", *file)
        wait_until(lambda: len(runs(study)) == 2 and all(len(lines(path)) > 2 for path in runs(study)))
        slurm.run("scontrol", "requeue", f"{job}_0")  # as when it is preempted
        slurm.run("scancel", "--batch", "--signal=USR1", f"{job}_1")  # as before its time limit
        for task in "01":
            wait_until(lambda task=task: slurm.states(f"{job}_{task}") == {task: "PENDING"})
        before = {path: lines(path) for path in runs(study)}
        assert all(len(begun) < EPOCHS for begun in before.values())
        for task in "01":
            start_again(slurm, f"{job}_{task}")
        wait_for_end(slurm, job)
        logs = [file.read_text() for file in sorted(tmp_path.glob(f"verydeep-{job}_*.log"))]
        assert slurm.states(job) == {"0": "COMPLETED", "1": "COMPLETED"}, logs
    assert watching.returncode == 0
    for path, begun in before.items():
        assert lines(path)[: len(begun)] == begun  # with the same seconds: continued, not trained again
    run(login, "verydeep", "search", "search.toml", "--study", calm, "--jobs", "1", "--quiet")
    assert len(runs(calm)) == 4
    for path in runs(calm):
        assert result(study / path.relative_to(calm)) == result(path)


@pytest.mark.slow
def test_a_training_that_requeues_itself_ends_with_the_same_bits(
    slurm: Slurm, login: dict[str, str], tmp_path: Path
) -> None:
    *_, submit = commands("SLURM")
    folder = tmp_path / "runs" / "highway100"
    _, *file = words(submit, **{"highway100-mnist": "training.toml", "/shared": tmp_path})
    job = run(login, "sbatch", "--parsable", "--cpus-per-task=1", *file)
    wait_until(lambda: (folder / "metrics.jsonl").exists() and len(lines(folder)) > 2)
    slurm.run("scancel", "--batch", "--signal=USR1", job)
    start_again(slurm, job)
    begun = lines(folder)
    assert len(begun) < EPOCHS
    wait_for_end(slurm, job)
    assert slurm.states(job) == {"": "COMPLETED"}, (tmp_path / f"verydeep-train-{job}.log").read_text()
    assert lines(folder)[: len(begun)] == begun
    run(login, "verydeep", "train", "training.toml", "--folder", "calm", "--quiet")
    assert result(folder) == result(tmp_path / "calm")
