"""The files for SLURM, run by a SLURM of one node: jobs that are requeued end with the bits of undisturbed ones."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ._slurm import INSTALL, Slurm, installed
from .conftest import ROOT, epochs, result, wait_until

CONFIG = """
epochs = 60
batch_size = 20
data = { source = "digits", validation = 0.2 }
model = { depth = 5, width = 10 }
"""


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    if not installed():
        pytest.skip(f"no SLURM here: {INSTALL}")
    with Slurm() as running:
        yield running


def submit(slurm: Slurm, environment: dict[str, str], *words: str | Path) -> str:
    """Submit a job as a user in this environment does, and return its number."""
    command = ["sbatch", "--parsable", *map(str, words)]
    submitted = slurm.environment | environment | {"PATH": f"{environment['PATH']}:{slurm.environment['PATH']}"}
    done = subprocess.run(command, env=submitted, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def skip_wait(slurm: Slurm, job: str) -> None:
    """Start a requeued job now: SLURM waits two minutes by default."""
    wait_until(lambda: slurm.states(job) == {job.partition("_")[2]: "PENDING"})
    slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now")


@pytest.mark.slow
def test_requeued_workers_complete_a_study_with_the_same_bits(
    slurm: Slurm, environment: dict[str, str], tmp_path: Path
) -> None:
    config = tmp_path / "digits.toml"
    config.write_text(CONFIG)
    
