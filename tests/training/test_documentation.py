"""What the guide to training says can be done."""

import json
import re
from pathlib import Path

from verydeep.config import find_config

ROOT = Path(__file__).parents[2]
GUIDE = "".join((ROOT / "docs" / f"{name}.md").read_text() for name in ("training", "runs", "seeds", "transfer"))


def test_the_guide_names_configurations_that_exist() -> None:
    named = set(re.findall(r"verydeep train ([a-z0-9][a-z0-9/-]*)(?![\w.-])", GUIDE)) - {"digits"}
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
