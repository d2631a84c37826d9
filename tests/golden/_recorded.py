"""Results in a JSON file, with the machine they were recorded on: compared, or recorded again."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from . import _api

TOLERANCE = 1e-3  # relative, of losses on other machines
_LOSSES = ("loss", "train_loss", "valid_loss", "test_loss", "value")


def check(file: Path, case: str, result: Any, *, record: bool, bits_only: bool = False) -> None:
    """Compare a result with the recorded one: bits on the same kind of machine, losses elsewhere.

    Args:
        file: Where results are recorded.
        case: The result's name there.
        result: Plain values.
        record: Whether to record the result first.
        bits_only: Whether nothing can be said about it on another machine.
    """
    found = json.loads(json.dumps(result))
    if record:
        _record(file, case, found)
    recorded = json.loads(file.read_text())
    expected = recorded["cases"][case]
    if recorded["machine"] == _api.machine():
        assert found == expected
    elif bits_only:
        pytest.skip("recorded on another processor or with other versions")
    else:
        assert dict(_losses(found)) == pytest.approx(dict(_losses(expected)), rel=TOLERANCE)


def _record(file: Path, case: str, found: Any) -> None:
    """Put a result into the file; those of another machine are dropped."""
    assert "PYTEST_XDIST_WORKER" not in os.environ, (
        "record without -n: two workers would overwrite each other's results"
    )
    recorded = json.loads(file.read_text()) if file.exists() else {}
    cases = recorded["cases"] if recorded.get("machine") == _api.machine() else {}
    file.write_text(json.dumps({"machine": _api.machine(), "cases": cases | {case: found}}, indent=1) + "\n")


def _losses(values: Any, name: str = "", is_loss: bool = False) -> Iterator[tuple[str, float]]:
    """Every loss in a result, with the path to it."""
    if isinstance(values, dict):
        for key, value in values.items():
            yield from _losses(value, f"{name}/{key}", key in _LOSSES)
    elif isinstance(values, list):
        for place, value in enumerate(values):
            yield from _losses(value, f"{name}/{place}", is_loss)
    elif is_loss and values is not None:
        yield name, values
