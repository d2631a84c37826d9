"""The files for SLURM, run by a SLURM of one node."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from _slurm import INSTALL, Slurm, installed

from .conftest import EPOCHS, SEARCH, Result, commands, in_background, result, run, runs, wait_until, words

# Instead of verydeep: records how it was started and signalled, trains until it is told to stop, and takes a moment to
# save. It has finished when it is started for the second time.
STAND_IN = """#!/bin/sh
echo "verydeep $*" >> {log}
trap 'echo TERM >> {log}; sleep 0.5; echo saved >> {log}; exit 130' TERM
[ "$(grep -c ^verydeep {log})" = 2 ] && exit 0
while :; do sleep 0.1; done
"""


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    if not installed():
        pytest.skip(f"no SLURM here: {INSTALL}")
    with Slurm() as running:
        yield running


@pytest.fixture
def submit(slurm: Slurm, environment: dict[str, str]) -> Callable[..., str]:
    """Submits a command of the guide, with more options if given, and returns the job's number."""

    def submit(command: str, *options: str, **replaced: object) -> str:
        sbatch, *rest = words(command, **replaced)
        return run(slurm.environment | environment, sbatch, "--parsable", *options, *rest)

    return submit


def start_again(slurm: Slurm, job: str) -> None:
    """Wait until a job is back in the queue, and start it soon: by itself, SLURM waits for two minutes.

    A job that starts in the second in which it ended is refused, because its old credential was revoked in that second.
    """
    wait_until(lambda: set(slurm.states(job).values()) == {"PENDING"})
    slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now+2seconds")


def end(slurm: Slurm, job: str) -> set[str]:
    """Wait until a job has ended, and return how."""
    wait_until(lambda: not set(slurm.states(job).values()) & {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING"})
    return set(slurm.states(job).values())


def lines(path: Path) -> list[str]:
    return (path / "metrics.jsonl").read_text().splitlines()


@pytest.mark.slow
def test_workers_of_which_one_is_requeued_complete_a_study_with_the_same_bits(
    slurm: Slurm, submit: Callable[..., str], calm: dict[str, Result], folder: Path
) -> None:
    start, workers, _ = commands("SLURM")
    study = folder / "digits"
    (folder / "search.toml").write_text(SEARCH)
    watching = in_background(words(start, **{"search-digits": "search.toml", "/shared": folder}))
    wait_until((study / "study.json").exists)
    first = submit(workers, "--array=0", **{"/shared": folder})
    wait_until(lambda: len(runs(study)) == 1)
    slurm.run("scontrol", "requeue", first)
    wait_until(lambda: slurm.states(first) == {"0": "PENDING"})
    (path,) = runs(study)
    begun = lines(path)
    assert len(begun) < EPOCHS
    second = submit(workers, "--array=1", **{"/shared": folder})
    start_again(slurm, first)
    logs = {job: folder / f"verydeep-{job}_{task}.log" for task, job in enumerate((first, second))}
    for job, log in logs.items():
        assert end(slurm, job) == {"COMPLETED"}, log.read_text()
    assert logs[first].read_text().count("stopped; everything is saved") == 1
    assert lines(path)[: len(begun)] == begun  # with the same seconds: continued, not trained again
    assert watching() == 0
    assert {path.name: result(path) for path in runs(study)} == calm


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2], ids=["workers", "train"])
def test_a_job_saves_and_requeues_itself_before_its_time_limit(
    number: int, slurm: Slurm, submit: Callable[..., str], folder: Path
) -> None:
    log = folder / "log"
    (folder / "bin" / "verydeep").write_text(STAND_IN.format(log=log))
    job = submit(commands("SLURM")[number], *(["--array=3"] if number == 1 else ["--cpus-per-task=1"]))
    job = f"{job}_3" if number == 1 else job
    wait_until(log.exists)
    slurm.run("scancel", "--batch", "--signal=USR1", job)
    start_again(slurm, job)
    assert end(slurm, job) == {"COMPLETED"}
    started = log.read_text().splitlines()
    assert started == [started[0], "TERM", "saved", started[0]]
    expected = {1: "worker /shared/digits", 2: "train highway100-mnist --folder /shared/runs/highway100 --continue"}
    assert started[0] == f"verydeep {expected[number]}"


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2], ids=["workers", "train"])
def test_a_job_that_is_cancelled_may_save(number: int, slurm: Slurm, submit: Callable[..., str], folder: Path) -> None:
    log = folder / "log"
    (folder / "bin" / "verydeep").write_text(STAND_IN.format(log=log))
    job = submit(commands("SLURM")[number], *(["--array=3"] if number == 1 else ["--cpus-per-task=1"]))
    wait_until(log.exists)
    slurm.run("scancel", job)
    assert end(slurm, job) == {"CANCELLED"}
    assert log.read_text().splitlines()[1:] == ["TERM", "saved"]
