"""Every named network trains: a few batches of random images or of the digits, and the run can be opened again."""

from pathlib import Path
from typing import Any

import pytest
import torch

from verydeep.cli import main
from verydeep.data import DataConfig, Dataset, Split
from verydeep.models import list_models
from verydeep.training import CompanionConfig, ModelConfig, OptimConfig, Run, TrainConfig, train

NAMES = sorted({model.name for model in list_models()})
SMALL: dict[str, dict[str, Any]] = {
    **{name: {"depth": 3, "width": 8} for name in ("highway-mlp", "plain-mlp", "residual-mlp", "lstm-highway")},
    **{name: {"depth": 3, "width": 4} for name in ("highway-conv", "plain-conv")},
    **{name: {"blocks": 1} for name in ("resnet-110", "highway-110")},
    "recurrent-highway": {"depth": 2, "width": 8},
}


def random_images(shape: tuple[int, ...]) -> Dataset:
    split = Split(torch.randn(4, *shape), torch.arange(4) % 3)
    return Dataset("random", split, None, split, ("a", "b", "c"))


@pytest.mark.parametrize("name", NAMES)
def test_every_network_trains_on_a_few_images(name: str, tmp_path: Path) -> None:
    mnist = any(card.dataset == "mnist" for card in list_models() if card.name == name)
    shape = (1, 28, 28) if mnist else (3, 32, 32)
    companion = (
        CompanionConfig(("conv1", "conv4", "conv7"), until=1, head_lr=1e-3)
        if name.startswith("dsn")
        else CompanionConfig()
    )
    config = TrainConfig(
        DataConfig("random"),
        ModelConfig(name, **SMALL.get(name, {})),
        OptimConfig("sgd", 1e-5),
        companion=companion,
        loss="squared-hinge" if name.startswith("dsn") else None,
        epochs=1,
        batch_size=2,
        evaluate_test="epoch",
        threads=1,
    )
    run = train(config, tmp_path / "run", dataset=random_images(shape))
    assert run.metrics[0].test_loss is not None
    assert Run.load(run.path).model(torch.zeros(1, *shape)).shape == (1, 3)


def test_the_relative_of_the_lstm_can_be_analysed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, few = str(tmp_path / "run"), ["--depth", "3", "--width", "6", "--epochs", "1", "--threads", "1"]
    assert main(["train", "digits", "--model.name", "lstm-highway", *few, "--folder", folder]) == 0
    capsys.readouterr()
    assert main(["analyze", folder, "--samples", "100"]) == 0
    assert "2" in capsys.readouterr().out  # highway layers


def test_a_recurrent_network_counts_the_ones_of_a_flat_sample() -> None:
    """Parity of a few bits, read one by one, as in the introduction of the paper."""
    bits = torch.randint(0, 2, (256, 4)).float()
    split = Split(bits, bits.sum(1).long() % 2)
    data = Dataset("parity", split, None, split, ("even", "odd"))
    config = TrainConfig(
        DataConfig("parity"),
        ModelConfig("recurrent-highway", depth=1, width=12, gate_bias=0.0),
        OptimConfig("adam", 0.02),
        epochs=100,
        batch_size=32,
        evaluate_test="epoch",
        threads=1,
    )
    assert train(config, dataset=data).metrics[-1].test_accuracy == 1
