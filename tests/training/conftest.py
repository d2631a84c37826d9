from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from verydeep.data import DataConfig, Dataset, Split
from verydeep.training import ModelConfig, OptimConfig, TrainConfig, TrainingProgress
from verydeep.training._defaults import paper_settings

Configure = Callable[..., TrainConfig]


def split(samples: int) -> Split:
    y = torch.arange(samples) % 3
    return Split(torch.randn(samples, 1, 4, 4) + y[:, None, None, None], y)


@pytest.fixture
def tiny() -> Dataset:
    """Three classes that can nearly be told apart: 115 samples, so that the last batch of 10 is not full."""
    torch.manual_seed(0)
    return Dataset("tiny", split(115), split(40), split(50), ("a", "b", "c"))


@pytest.fixture
def unvalidated(tiny: Dataset) -> Dataset:
    return replace(tiny, valid=None)


@pytest.fixture
def configure() -> Configure:
    """A configuration that trains in a moment, with some fields changed; what is not given is as for known data."""

    def make(**changes: Any) -> TrainConfig:
        plain = TrainConfig(
            data=DataConfig("digits"),
            model=ModelConfig(depth=3, width=6),
            optim=OptimConfig(lr=0.1),
            epochs=2,
            batch_size=10,
            metric="accuracy",
            patience=0,
            threads=1,
            checkpoint_every=0.0,
        )
        return paper_settings(replace(plain, **changes))

    return make


class _Stop(TrainingProgress):
    def __init__(self, after: int) -> None:
        self.left = after

    def step(self, *arguments: Any) -> None:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


@pytest.fixture
def stop_after() -> Callable[[int], TrainingProgress]:
    """A report that leaves at once after some steps, as a kill does."""
    return _Stop
