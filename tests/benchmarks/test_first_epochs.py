"""The page about the tables has what benchmarks/first_epochs.py measured."""

import json
from pathlib import Path

from first_epochs import AUTHORS, PREPARATIONS, settings

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_measured_numbers() -> None:
    rows = json.loads((ROOT / "results" / "benchmarks" / "first-epochs.json").read_text())["rows"]
    page = (ROOT / "docs" / "tables.md").read_text()
    assert rows
    for found in rows.values():
        losses = found["untrained_test_losses"]
        before = f"{found['untrained_test_loss']:.3f} ({min(losses):.3f} to {max(losses):.3f})"
        assert f"| {found['test_accuracy']:.2%} | {before} |".replace("%", " %") in page
    for accuracy, loss in AUTHORS.values():
        assert f"| {accuracy:.2%} | {loss:.3f} |".replace("%", " %") in page


def test_only_the_preparation_differs_from_the_recipe() -> None:
    first, *others = (settings("cifar100", preparation) for preparation in PREPARATIONS)
    assert first.epochs == 1
    for other in others:
        assert other.data != first.data
        assert other.optim == first.optim
        assert other.schedule == first.schedule
