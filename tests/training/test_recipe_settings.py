"""Label smoothing and dropout: what they change, and that without them nothing is changed."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from verydeep.cli import main
from verydeep.data import Dataset
from verydeep.errors import UserError
from verydeep.models import Dropout, create_model
from verydeep.training import OptimConfig, Run, read_config, train


def test_only_the_loss_that_is_trained_is_smoothed(tmp_path: Path, tiny: Dataset, configure: Any) -> None:
    lines = []
    for smoothing in (0.0, 0.4):
        config = configure(epochs=1, evaluate_train=True, optim=OptimConfig(lr=1e-30), label_smoothing=smoothing)
        lines.append(train(config, tmp_path / f"{smoothing}", dataset=tiny).metrics[0].to_dict())
    assert lines[0]["loss"] != lines[1]["loss"]
    for name in ("train_loss", "valid_loss", "test_loss", "accuracy"):
        assert lines[0][name] == lines[1][name]


@pytest.mark.parametrize("factor", [0.0, 0.5, 1.0])
def test_dropout_is_a_factor_on_the_networks_own_rates(factor: float) -> None:
    rates = [layer.p for layer in create_model("highway-mnist-16", dropout=factor).config.layers
             if isinstance(layer, Dropout)]  # fmt: skip
    assert rates == pytest.approx([0.2 * factor, 0.3 * factor, 0.4 * factor, 0.5 * factor])


@pytest.mark.parametrize("factor", [2.0, -0.1, math.inf])
def test_rates_that_cannot_be_are_refused(factor: float) -> None:
    with pytest.raises(UserError, match="multiplies the network's dropout rates"):
        create_model("highway-mnist-16", dropout=factor)


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--label-smoothing", "1"], "label_smoothing must be at least 0 and less than 1"),
     (["--ema-half-life", "0"], "ema_half_life must be more than 0 epochs"),
     (["--model.dropout", "0.5"], " setting 'dropout'")],
)  # fmt: skip
def test_settings_that_cannot_be_get_one_line(
    options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "--data.source", "digits", "--folder", str(tmp_path / "run"), *options]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


def test_a_run_from_before_these_settings_is_opened(tmp_path: Path, tiny: Dataset, configure: Any) -> None:
    run = train(configure(epochs=1), tmp_path / "run", dataset=tiny)
    file = run.path / "config.json"
    saved = json.loads(file.read_text())
    for name in ("label_smoothing", "ema_half_life"):
        del saved["training"][name]
    del saved["training"]["model"]["dropout"]
    file.write_text(json.dumps(saved))
    assert Run.load(run.path).config == run.config


def test_settings_of_an_earlier_version_are_read_with_a_hint(tmp_path: Path) -> None:
    file = tmp_path / "old.toml"
    file.write_text("average = 2.0\nexplosion = 50.0\n")
    with pytest.warns(FutureWarning, match="now called") as hints:
        config = read_config(file)
    assert (config.ema_half_life, config.divergence_factor) == (2.0, 50.0)
    assert [str(hint.message) for hint in hints] == [
        f"{file}: 'average' is now called 'ema_half_life'",
        f"{file}: 'explosion' is now called 'divergence_factor'",
    ]
