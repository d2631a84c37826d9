"""What the guide to training says can be done."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from verydeep.config import find_config, from_dict
from verydeep.training import TrainConfig, read_config

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "training.md").read_text()


@pytest.mark.slow
def test_the_examples_of_the_guide_run(tmp_path: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", GUIDE, flags=re.S)
    assert len(examples) == 3
    for example in examples:
        subprocess.run([sys.executable, "-W", "error", "-c", example], check=True, cwd=tmp_path)


def test_the_guides_configurations_can_be_read(tmp_path: Path) -> None:
    first, extending, companions = re.findall(r"```toml\n(.*?)```", GUIDE, flags=re.S)
    assert from_dict(TrainConfig, tomllib.loads(companions)).companion.weight_of == {"layer10": 0.3, "layer20": 0.3}
    assert from_dict(TrainConfig, tomllib.loads(first)).model.depth == 50
    (tmp_path / "mine.toml").write_text(extending)
    config = read_config(tmp_path / "mine.toml")
    assert (config.model.depth, config.optim.lr, config.epochs) == (50, 0.1, 20)


def test_the_guide_names_configurations_that_exist() -> None:
    named = set(re.findall(r"verydeep train ([a-z0-9][a-z0-9/-]*)(?![\w.-])", GUIDE)) - {"photos"}
    assert {"highway50-mnist", "fast/highway-a", "nin"} <= named
    assert all(find_config(name).exists() for name in named)


def test_the_guide_to_predictions_states_the_memory_that_was_measured() -> None:
    guide = " ".join((ROOT / "docs" / "predictions.md").read_text().split())
    measured = json.loads((ROOT / "results" / "benchmarks" / "predict-memory.json").read_text())["measured"]
    large = [row for row in measured if row["rows"] == 5_000_000]
    assert {row["form"] for row in large if row["command"] == "predict"} == {"csv", "pipe", "parquet"}
    for row in large:
        memory = f"{row['resident_mb']} MB" if row["command"] == "predict" else f"{row['resident_mb'] / 1000:.1f} GB"
        assert memory in guide


@pytest.mark.slow
def test_the_examples_about_predictions_run_one_after_the_other(tmp_path: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "predictions.md").read_text(), flags=re.S)
    assert len(examples) == 2
    printed = [
        subprocess.run(
            [sys.executable, "-W", "error", "-c", example], check=True, cwd=tmp_path, capture_output=True
        ).stdout
        for example in examples
    ]
    prices = [[float(number) for number in re.findall(rb"\d+\.\d+", text)] for text in printed]
    assert len(prices[0]) == 2
    assert prices[0][0] == pytest.approx(prices[1][0], rel=1e-4)  # of the same row, by run.predict and by onnxruntime
