"""A run chooses its number of threads once, says so, and keeps it."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from verydeep.cli import main
from verydeep.data import Dataset
from verydeep.training import Run, TrainConfig, TrainingProgress, _threads, resume, train
from verydeep.training._threads import choose_threads

Configure = Callable[..., TrainConfig]


class Listener(TrainingProgress):
    """Keeps what is said at the start, and the number of threads of every step."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.threads: set[int] = set()

    def summary(self, lines: list[str]) -> None:
        self.lines = lines

    def step(self, *_: Any) -> None:
        self.threads.add(torch.get_num_threads())


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int, float, int], None]]:
    """A machine with a number of cores of which some are free, for a torch with a number of threads."""

    def make(cores: int, free: float, threads: int) -> None:
        monkeypatch.setattr(_threads, "usable_cores", lambda: cores)
        monkeypatch.setattr(_threads, "idle_cores", lambda: free)
        torch.set_num_threads(threads)

    yield make
    torch.set_num_threads(1)


@pytest.mark.parametrize(
    ("cores", "free", "most", "chosen", "reason"),
    [
        (4, 3.8, 4, 4, "as many as torch uses"),
        (4, 2.2, 4, 2, "2 of 4 cores are free"),
        (4, 1.4, 4, 1, "1 of 4 cores is free"),
        (4, 0.0, 4, 1, "1 of 4 cores is free"),
        (8, 8.0, 2, 2, "as many as torch uses"),
        (2, 2.0, 4, 2, "2 of 2 cores are free"),
        (1, 0.0, 1, 1, "as many as torch uses"),
    ],
)
def test_threads_are_chosen_from_the_cores_that_are_free(
    cores: int, free: float, most: int, chosen: int, reason: str, machine: Callable[[int, float, int], None]
) -> None:
    machine(cores, free, most)
    assert choose_threads() == (chosen, reason)


def test_a_run_says_and_keeps_its_threads(
    configure: Configure, tiny: Dataset, tmp_path: Path, machine: Any, stop_after: Any
) -> None:
    machine(4, 2.0, 3)
    said, config = Listener(), configure(threads=None, batch_size=len(tiny.train), model=_wide(configure))
    run = train(config, tmp_path / "run", dataset=tiny, progress=said)
    assert said.lines[-1].strip() == "2 threads: 2 of 4 cores are free; another number: --threads N"
    assert said.threads == {2}
    assert Run.load(run.path).config.threads == 2
    assert torch.get_num_threads() == 3
    machine(4, 4.0, 4)  # it is less busy later
    for epochs in (3, 4):
        later = Listener()
        resume(run, epochs=epochs, dataset=tiny, progress=later)
        assert later.threads == {2}
    later = Listener()
    resume(run, epochs=5, dataset=tiny, progress=later, threads=3)
    assert later.threads == {3}
    assert torch.get_num_threads() == 4


def test_the_same_call_continues_with_the_stored_threads(
    configure: Configure, tiny: Dataset, tmp_path: Path, machine: Any, stop_after: Any
) -> None:
    machine(4, 2.0, 3)
    config = configure(threads=None, batch_size=len(tiny.train) // 2, model=_wide(configure))
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "run", dataset=tiny, progress=stop_after(2))
    machine(4, 4.0, 4)
    later = Listener()
    train(config, tmp_path / "run", dataset=tiny, progress=later, resume=True)
    assert later.threads == {2}


def test_given_threads_are_not_explained(configure: Configure, tiny: Dataset, tmp_path: Path) -> None:
    said = Listener()
    train(configure(threads=2, epochs=1), tmp_path / "run", dataset=tiny, progress=said)
    assert said.threads == {2}
    assert not any("thread" in line for line in said.lines)


def test_a_run_of_an_earlier_version_keeps_the_threads_it_was_started_with(
    configure: Configure, tiny: Dataset, tmp_path: Path, machine: Any
) -> None:
    run = train(configure(threads=2, epochs=1), tmp_path / "run", dataset=tiny)
    config = json.loads((run.path / "config.json").read_text())
    (holder,) = (part for part in config.values() if isinstance(part, dict) and "threads" in part)
    holder["threads"] = None  # as torch's own number was stored before 0.6
    (run.path / "config.json").write_text(json.dumps(config))
    assert Run.load(run.path).config.threads is None
    machine(4, 4.0, 4)
    later = Listener()
    resume(run.path, epochs=2, dataset=tiny, progress=later)
    assert later.threads == {2}


def test_the_command_takes_other_threads_with_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--model.depth", "2", "--model.width", "4", "--epochs", "1", "--batch_size", "500", "--threads", "1"]
    assert main(["train", "digits", *options, "--folder", str(tmp_path / "run"), "--quiet"]) == 0
    assert main(["train", "--resume", str(tmp_path / "run"), "--epochs", "2", "--threads", "2"]) == 0
    assert "threads was 1 and is 2" in capsys.readouterr().err
    assert main(["train", "--resume", str(tmp_path / "run"), "--epochs", "3", "--threads", "0"]) == 2
    assert "--threads must be from 1 to 1024, got 0" in capsys.readouterr().err


def _wide(configure: Configure) -> Any:
    """A network that is worth several threads."""
    return replace(configure().model, depth=2, width=300)
