"""The page about speed has what benchmarks/training_steps.py measured."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_measured_numbers() -> None:
    found = json.loads((ROOT / "results" / "benchmarks" / "training-steps.json").read_text())["measured"]
    page = (ROOT / "docs" / "speed.md").read_text()
    assert len(found) == 12
    for each in found:
        low, _, high = each["over_rounds"]
        sizes = " | ".join(str(each[name]) for name in ("layers", "width", "inputs", "batch", "threads"))
        times = f"{each['kernels_ms']:.3f} | {each['single_ms']:.3f} | {each['times_as_fast']:.2f}"
        assert f"| {sizes} | {times} ({low:.2f}–{high:.2f}) | {each['of_matrix_product']:.0%} |" in page
