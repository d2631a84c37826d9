"""A training from Python gives the bits of the command, and leaves the process as it was."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from verydeep.cpu import flushes_denormals
from verydeep.data import DataConfig, Dataset
from verydeep.errors import UserError
from verydeep.models import create_model
from verydeep.training import (
    EpochMetrics,
    ProcessGroup,
    Run,
    TrainConfig,
    TrainingProgress,
    confusion,
    evaluate,
    make_model,
    resume,
    train,
)

Configure = Callable[..., TrainConfig]

# Updates of this size are denormal numbers, so that weights which start at 0 show whether those count as 0.
OPTIONS = ["--data.source", "digits", "--model.depth", "4", "--model.width", "100", "--optim.lr", "1e-39"]
FROM_PYTHON = """
import random, torch
from verydeep.data import DataConfig
from verydeep.training import ModelConfig, OptimConfig, TrainConfig, train

torch.randn(1000, 1000).sum()  # what was computed and drawn before does not matter
torch.manual_seed(7)
random.seed(7)
for epochs, lr in ((1, 1e-39), (2, 0.1)):
    config = TrainConfig(DataConfig("digits"), ModelConfig(depth=4, width=100), OptimConfig(lr=lr), epochs=epochs)
    train(config, f"python-{epochs}")
"""


def outcome(path: Path) -> tuple[list[EpochMetrics], bytes]:
    lines = [replace(line, seconds=0) for line in Run.load(path).metrics]
    return lines, (path / "model.safetensors").read_bytes()


@pytest.mark.slow
def test_python_and_the_command_give_the_same_bits(tmp_path: Path) -> None:
    """With as many threads as torch chooses, also where denormal numbers decide."""
    for epochs, lr in ((1, "1e-39"), (2, "0.1")):
        options = ["--epochs", str(epochs), "--folder", f"command-{epochs}", "--quiet"]
        command = [sys.executable, "-m", "verydeep", "train", *OPTIONS[:-1], lr, *options]
        subprocess.run(command, check=True, cwd=tmp_path)
    subprocess.run([sys.executable, "-c", FROM_PYTHON], check=True, cwd=tmp_path)
    for epochs in (1, 2):
        assert outcome(tmp_path / f"python-{epochs}") == outcome(tmp_path / f"command-{epochs}")
        threads = [json.loads((tmp_path / f"{name}-{epochs}" / "environment.json").read_text())["threads"]
                   for name in ("python", "command")]  # fmt: skip
        assert threads[0] == threads[1]


def process_state() -> list[object]:
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    return [torch.get_num_threads(), flushes_denormals(), torch.get_rng_state().tolist(), *handlers]


@contextmanager
def unchanged() -> Iterator[None]:
    torch.manual_seed(123)
    before = process_state()
    yield
    assert process_state() == before


class Watch(TrainingProgress):
    """Notes the settings that hold during training, and may stop it."""

    def __init__(self, stop: type[BaseException] | None = None) -> None:
        self.seen: list[object] = []
        self.stop = stop

    def epoch(self, metrics: EpochMetrics) -> None:
        self.seen = process_state()
        if self.stop is not None:
            raise self.stop


def test_train_and_resume_leave_the_process_as_it_was(tmp_path: Path, tiny: Dataset, configure: Configure) -> None:
    config, watch = configure(threads=2), Watch(KeyboardInterrupt)
    with unchanged():
        before = process_state()
        with pytest.raises(KeyboardInterrupt):
            train(config, tmp_path / "run", dataset=tiny, progress=watch)
        assert watch.seen[:2] == [2, True]
        assert all(now != then for now, then in zip(watch.seen, before, strict=True))
    with unchanged():
        resume(tmp_path / "run", dataset=tiny)
    module = nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    with unchanged():
        train(config, tmp_path / "own", model=module, dataset=tiny)


def test_a_failed_start_leaves_the_process_as_it_was(tmp_path: Path, configure: Configure) -> None:
    with unchanged(), pytest.raises(ValueError, match="nothing"):
        train(configure(threads=2, data=DataConfig("nothing.csv")), tmp_path / "run")


def test_making_and_measuring_a_model_leave_the_process_as_it_was(
    tmp_path: Path, tiny: Dataset, configure: Configure
) -> None:
    with unchanged():
        model = make_model(configure(seed=5), tiny)
        confusion(model, tiny.test, tiny.classes)
    with unchanged():
        again = make_model(configure(seed=5), tiny)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))


def test_evaluation_and_the_confusion_matrix_agree_to_the_bit(tiny: Dataset, configure: Configure) -> None:
    model = make_model(configure(), tiny)
    measured = evaluate(model, tiny.test, ProcessGroup(0, 1, torch.device("cpu")))
    counted = confusion(model, tiny.test, tiny.classes)
    assert (measured.loss, measured.accuracy) == (counted.loss, counted.accuracy)


@pytest.mark.parametrize("mode", ["no_grad", "inference_mode", "float64"])
def test_a_mode_of_torch_that_is_in_force_changes_nothing(configure: Any, tmp_path: Path, mode: str) -> None:
    expected = train(configure(epochs=1), tmp_path / "plain")
    if mode == "float64":
        torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad() if mode == "no_grad" else torch.inference_mode(mode == "inference_mode"):
            run = train(configure(epochs=1), tmp_path / "run")
            assert torch.is_grad_enabled() == (mode == "float64")
        assert torch.get_default_dtype() == (torch.float64 if mode == "float64" else torch.float32)
    finally:
        torch.set_default_dtype(torch.float32)
    assert (run.path / "model.safetensors").read_bytes() == (expected.path / "model.safetensors").read_bytes()


def test_a_model_that_cannot_be_trained_is_refused_in_a_line(configure: Any, tiny: Dataset, tmp_path: Path) -> None:
    with torch.inference_mode():
        model = create_model("highway-mlp", depth=2, width=4, classes=3, input_shape=(1, 4, 4))
    with pytest.raises(UserError, match=r"created inside torch\.inference_mode"):
        train(configure(), tmp_path / "run", model=model, dataset=tiny)
    double = create_model("highway-mlp", depth=2, width=4, classes=3, input_shape=(1, 4, 4)).double()
    with pytest.raises(UserError, match="the model has float64 parameters, but the samples are float32"):
        train(configure(), tmp_path / "run", model=double, dataset=tiny)
