"""Results that refactoring must not change: loss curves, weights, a search, a lesion study and a pruned network.

`golden.json` holds them with the processor and the versions they were recorded with. On such a machine every bit must
be the same. Elsewhere rounding differs, and losses must agree to a relative 1e-3.

A change that is meant to alter numbers records them again, in a commit of its own that says why:

    python -m pytest tests/golden --record-golden

The settings are in `_settings.py`, all of them explicit. The calls into the library are in `_api.py`, so that a rename
is one edit.
"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from . import _api, _settings

FILE = Path(__file__).with_name("golden.json")
TOLERANCE = 1e-3  # relative, of losses on other machines
LOSSES = ("loss", "train_loss", "valid_loss", "test_loss", "value")
BITS_ONLY = ("dropout",)  # torch draws other dropout masks on processors of other makers


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fully connected run, which some cases look into."""
    folder = tmp_path_factory.mktemp("golden") / "run"
    _api.train(_settings.FULLY_CONNECTED, folder)
    return folder


CASES: dict[str, Callable[[Path, Path], Any]] = {
    "fully connected": lambda folder, trained: _api.outcome(trained),
    "convolutional": lambda folder, trained: _api.train_by_command(_settings.CONVOLUTIONAL, folder),
    "dropout": lambda folder, trained: _api.train_by_command(_settings.DROPOUT, folder),
    "two seeds": lambda folder, trained: _api.train_seeds(_settings.TWO_SEEDS, 2, folder),
    "search": lambda folder, trained: _api.search(_settings.SEARCH, folder),
    "lesions": lambda folder, trained: _api.lesions(trained),
    "pruned": lambda folder, trained: _api.prune(trained, "2%", folder),
}


@pytest.mark.parametrize("case", CASES)
def test_the_result_is_the_recorded_one(
    case: str, trained: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    found = json.loads(json.dumps(CASES[case](tmp_path / "result", trained)))
    if request.config.getoption("--record-golden"):
        record(case, found)
    golden = json.loads(FILE.read_text())
    if golden["machine"] == _api.machine():
        assert found == golden["cases"][case]
    elif case in BITS_ONLY:
        pytest.skip("recorded on another processor or with other versions")
    else:
        assert dict(losses(found)) == pytest.approx(dict(losses(golden["cases"][case])), rel=TOLERANCE)


def test_the_command_line_trains_to_the_same_bits_as_python(trained: Path, tmp_path: Path) -> None:
    assert _api.train_by_command(_settings.FULLY_CONNECTED, tmp_path / "run") == _api.outcome(trained)


def record(case: str, found: Any) -> None:
    """Put a result into the file; those of another machine are dropped."""
    assert "PYTEST_XDIST_WORKER" not in os.environ, (
        "record without -n: two workers would overwrite each other's results"
    )
    golden = json.loads(FILE.read_text()) if FILE.exists() else {}
    cases = golden["cases"] if golden.get("machine") == _api.machine() else {}
    cases = {name: (cases | {case: found})[name] for name in CASES if name in {*cases, case}}
    FILE.write_text(json.dumps({"machine": _api.machine(), "cases": cases}, indent=1) + "\n")


def losses(values: Any, name: str = "", loss: bool = False) -> Iterator[tuple[str, float]]:
    """Every loss in a result, with the path to it."""
    if isinstance(values, dict):
        for key, value in values.items():
            yield from losses(value, f"{name}/{key}", key in LOSSES)
    elif isinstance(values, list):
        for place, value in enumerate(values):
            yield from losses(value, f"{name}/{place}", loss)
    elif loss and values is not None:
        yield name, values
