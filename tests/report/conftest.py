from pathlib import Path

import pytest
import torch

from verydeep.data import DataConfig
from verydeep.training import ModelConfig, OptimConfig, Run, TrainConfig, train


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A finished run on digits: five layers, four of them highways; nobody has looked inside."""
    torch.manual_seed(0)
    config = TrainConfig(
        data=DataConfig("digits"),
        model=ModelConfig(depth=5, width=8),
        optim=OptimConfig(lr=0.1),
        epochs=3,
        batch_size=50,
        threads=1,
        evaluate_train=True,
    )
    return train(config, tmp_path_factory.mktemp("runs") / "small")


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "report.html"
