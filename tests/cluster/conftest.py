import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from time import sleep

import pytest
from safetensors.torch import load_file

import verydeep
from verydeep.processes import python_command
from verydeep.training import Run

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "clusters.md").read_text()


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment in which `verydeep` and `torchrun` are commands and run the code under test, on one thread."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, module in (("verydeep", "verydeep"), ("torchrun", "torch.distributed.run")):
        (programs / name).write_text(f'#!/bin/sh\nexec {shlex.join(python_command("-m", module))} "$@"\n')
        (programs / name).chmod(0o755)
    return os.environ | {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(verydeep.__file__).parents[1]),
        "PYTHONSAFEPATH": "1",  # also in the processes that torchrun starts
        "OMP_NUM_THREADS": "1",
    }


def commands(heading: str) -> list[str]:
    """The commands in a section of the guide, with continued lines joined and comments removed."""
    (section,) = re.findall(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", GUIDE, flags=re.S | re.M)
    blocks = re.findall(r"^```\n(.*?)^```", section, flags=re.S | re.M)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.join(words) for line in lines if (words := shlex.split(line, comments=True))]


def wait_until(holds: Callable[[], bool]) -> None:
    while not holds():
        sleep(0.05)


def epochs(run: Path) -> int:
    """How many epochs a run has so far."""
    file = run / "metrics.jsonl"
    return file.read_text().count("\n") if file.exists() else 0


def result(run: Path) -> tuple[list[dict[str, object]], dict[str, list[object]]]:
    """Metrics and weights of a run, to the bit; only the seconds are left out."""
    loaded = Run.load(run)
    assert loaded.summary is not None
    metrics = [{name: value for name, value in line.to_dict().items() if name != "seconds"} for line in loaded.metrics]
    return metrics, {name: tensor.tolist() for name, tensor in load_file(run / "model.safetensors").items()}
