import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

CONFIG = """
epochs = {epochs}
batch_size = 100
checkpoint_every = 0.0
data = {{ source = "digits", validation = 0.2 }}
model = {{ width = 8 }}

[search]
trials = {trials}
{more}

[search.space]
optim.lr = {{ low = 0.01, high = 1.0, log = true }}
model.depth = {{ low = 2, high = 4 }}
model.activation = {{ choices = ["tanh", "relu"] }}
"""

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """A configuration that searches in seconds."""

    def make(trials: int = 3, epochs: int = 1, more: str = "", name: str = "tiny.toml") -> Path:
        file = tmp_path / name
        file.write_text(CONFIG.format(trials=trials, epochs=epochs, more=more))
        return file

    return make


def start(*arguments: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "verydeep", "search", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)


def wait_until(holds: Callable[[], bool]) -> None:
    while not holds():
        time.sleep(0.05)
