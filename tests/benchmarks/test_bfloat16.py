"""The page about speed has what benchmarks/bfloat16.py measured."""

import json
import re
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_measured_numbers() -> None:
    found = json.loads((ROOT / "results" / "benchmarks" / "bfloat16.json").read_text())
    page = (ROOT / "docs" / "speed.md").read_text()
    assert len(found["speed"]) == 6
    for name, each in found["speed"].items():
        sizes = re.findall(r"\d+", name)
        low, _, high = each["over_rounds"]
        times = f"{each['float32_ms']:.2f} | {each['bfloat16_ms']:.2f}"
        row = f"| {' | '.join(sizes)} | {times} | {each['times_as_fast']:.2f} ({low:.2f} to {high:.2f}) |"
        assert row in page
    assert found["accuracy"]
    for name, each in found["accuracy"].items():
        losses, accuracies = (
            [mean(run[value] for run in each[precision]) for precision in ("float32", "bfloat16")]
            for value in ("loss", "accuracy")
        )
        numbers = [f"{loss:.4f}" for loss in losses] + [f"{100 * accuracy:.2f} %" for accuracy in accuracies]
        assert f"| {name.split()[0]} | {' | '.join(numbers)} |" in page
