import os
import re
import shlex
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import load_file

import verydeep
from verydeep.cli import main
from verydeep.processes import python_command
from verydeep.search import read_search, start_search
from verydeep.studies import work
from verydeep.training import Run

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "clusters.md").read_text()
EPOCHS = 60  # enough for a job to be stopped meanwhile
TRAINING = f"""
epochs = {EPOCHS}
checkpoint_every = 0.0
batch_size = 12
data = {{ source = "digits", validation = 0.2 }}
model = {{ depth = 5, width = 10 }}
optim = {{ lr = 0.01 }}
"""
SEARCH = f"""{TRAINING}
[search]
trials = 3

[search.space]
optim.lr = {{ low = 0.01, high = 1.0, log = true }}
"""
Result = tuple[list[dict[str, object]], dict[str, list[object]]]


@pytest.fixture(scope="session")
def calm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    """The results of the search when nothing disturbs it, by the names of the runs."""
    folder = tmp_path_factory.mktemp("calm")
    (folder / "search.toml").write_text(SEARCH)
    assert work(start_search(folder / "calm", read_search(folder / "search.toml")))
    return {path.name: result(path) for path in runs(folder / "calm")}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with the files for clusters."""
    (tmp_path / "cluster").symlink_to(ROOT / "cluster")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def environment(folder: Path) -> dict[str, str]:
    """An environment in which `verydeep` and `torchrun` are commands and run the code under test, on one thread."""
    programs = folder / "bin"
    programs.mkdir()
    for name, module in (("verydeep", "verydeep"), ("torchrun", "torch.distributed.run")):
        (programs / name).write_text(f'#!/bin/sh\nexec {shlex.join(python_command("-m", module))} "$@"\n')
        (programs / name).chmod(0o755)
    return os.environ | {
        "PATH": f"{programs}:{os.environ['PATH']}:/usr/sbin:/sbin",
        "PYTHONPATH": str(Path(verydeep.__file__).parents[1]),
        "OMP_NUM_THREADS": "1",
    }


def commands(heading: str) -> list[str]:
    """The commands in a section of the guide that need no cluster, with continued lines joined."""
    (section,) = re.findall(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", GUIDE, flags=re.S | re.M)
    blocks = re.findall(r"^```bash\n# cluster: (.*?)\n(.*?)^```", section, flags=re.S | re.M)
    return "".join(block for needs, block in blocks if needs != "Kubernetes").replace("\\\n", " ").splitlines()


def words(command: str, **replaced: object) -> list[str]:
    """The words of a command of the guide, with its placeholders replaced, all of which must be in it."""
    for name, value in replaced.items():
        assert name in command
        command = command.replace(name, str(value))
    return shlex.split(command)


def in_background(command: list[str]) -> Callable[[], int]:
    """Start a command of ours in a thread of this process, and return a function that waits for its exit code."""
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(main([*command[1:], "--quiet"])), daemon=True)
    thread.start()

    def wait() -> int:
        thread.join()
        return codes[0]

    return wait


def wait_until(holds: Callable[[], bool]) -> None:
    while not holds():
        time.sleep(0.05)


def run(environment: dict[str, str], *command: str | Path) -> str:
    """Run a command to its successful end and return what it prints."""
    given = [str(word) for word in command]
    done = subprocess.run(given, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(given)}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


def runs(study: Path) -> list[Path]:
    """The runs of a study that have at least one epoch."""
    return sorted(file.parent for file in study.rglob("metrics.jsonl"))


def result(path: Path) -> Result:
    """Metrics and weights of a finished run, to the bit; only the seconds are left out."""
    loaded = Run.load(path)
    assert loaded.summary is not None
    metrics = [{name: value for name, value in line.to_dict().items() if name != "seconds"} for line in loaded.metrics]
    assert len(metrics) == EPOCHS
    return metrics, {name: tensor.tolist() for name, tensor in load_file(path / "model.safetensors").items()}
