"""Of many short epochs, not every one is written: files and results are the same."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from verydeep.data import DataConfig
from verydeep.training import (
    EpochMetrics,
    Interrupted,
    ModelConfig,
    OptimConfig,
    Run,
    TrainConfig,
    TrainingProgress,
    resume,
    train,
)
from verydeep.training.run import _state
from verydeep.training.run._metrics import best_epoch

CONFIG = TrainConfig(
    DataConfig("digits", validation=0.2),
    ModelConfig("highway-mlp", depth=2, width=6),
    OptimConfig("sgd", lr=0.5),
    epochs=6,
    batch_size=200,
    threads=1,
    checkpoint_every=1e9,
)


@pytest.fixture(autouse=True)
def _rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    """No checkpoint is due because of time alone, unless `checkpoint_every` says so."""
    monkeypatch.setattr(_state, "_PAUSE", 1e9)


def timeless(run: Run) -> list[EpochMetrics]:
    return [replace(line, seconds=0) for line in run.metrics]


def weights(run: Run) -> bytes:
    return (run.path / "model.safetensors").read_bytes()


def checkpoints(run: Run) -> list[str]:
    return sorted(file.stem for file in (run.path / "checkpoint").iterdir())


@pytest.mark.parametrize(
    "changes",
    [{}, {"ema_half_life": 0.5}, {"data": DataConfig("digits")}, {"patience": 1, "optim": OptimConfig("sgd", lr=2.0)}],
    ids=["best", "averaged", "last", "stopped early"],
)
def test_the_result_does_not_depend_on_how_often_it_is_written(changes: dict[str, Any], tmp_path: Path) -> None:
    rare = train(replace(CONFIG, **changes), tmp_path / "rare")
    often = train(replace(CONFIG, **changes, checkpoint_every=0.0), tmp_path / "often")
    assert checkpoints(rare)[0] == "000000-00000000"
    assert checkpoints(rare)[-1] == checkpoints(often)[-1]
    assert checkpoints(often)[0] != "000000-00000000"
    assert timeless(rare) == timeless(often)
    assert weights(rare) == weights(often)
    assert rare.summary is not None
    assert rare.summary.epochs == len(rare.metrics)


def test_what_is_in_the_folder_belongs_to_the_epoch_of_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a process would find it that is killed right after a checkpoint was written."""
    steps: list[tuple[int, int, bytes]] = []
    save = Run.save_checkpoint

    def save_and_look(self: Run, model: Any, optimiser: Any, position: Any, extra: Any) -> None:
        save(self, model, optimiser, position, extra)
        if position.epoch:
            best = best_epoch(self.metrics, self.selection)
            assert best is not None
            assert len(self.metrics) == position.epoch
            steps.append((position.epoch, best.epoch, weights(self)))

    monkeypatch.setattr(Run, "save_checkpoint", save_and_look)
    train(replace(CONFIG, checkpoint_every=0.0), tmp_path / "often")
    often = {epoch: (best, saved) for epoch, best, saved in steps}
    assert set(often) == {1, 2, 3, 4, 5, 6}
    for last in (2, 4):
        steps.clear()
        with pytest.raises(StopIteration):
            train(CONFIG, tmp_path / f"until {last}", progress=StopsAfter(last))
        assert steps == [(last, *often[last])]


class StopsAfter(TrainingProgress):
    """Raises an error after an epoch, as a study does that pauses a training."""

    def __init__(self, last: int) -> None:
        self.last = last

    def epoch(self, metrics: EpochMetrics) -> None:
        if metrics.epoch == self.last:
            raise StopIteration


def test_a_training_that_is_paused_after_an_epoch_is_saved_and_continues_to_the_same_bits(tmp_path: Path) -> None:
    whole = train(CONFIG, tmp_path / "whole")
    with pytest.raises(StopIteration):
        train(CONFIG, tmp_path / "paused", progress=StopsAfter(3))
    paused = Run.load(tmp_path / "paused")
    assert checkpoints(paused)[-1] == "000003-00000000"
    assert timeless(paused) == timeless(whole)[:3]
    run = resume(paused)
    assert timeless(run) == timeless(whole)
    assert weights(run) == weights(whole)


def test_a_training_that_is_interrupted_is_saved(tmp_path: Path) -> None:
    import signal

    class Interrupts(TrainingProgress):
        def step(self, position: Any, result: Any, samples: int, lr: float) -> None:
            if (position.epoch, position.batch) == (2, 2):
                signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted):
        train(CONFIG, tmp_path / "run", progress=Interrupts())
    run = Run.load(tmp_path / "run")
    assert len(run.metrics) == 3  # kernels train the batches of such an epoch together
    assert checkpoints(run)[-1] == "000003-00000000"
    assert weights(run)
