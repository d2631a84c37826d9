"""Results that refactoring must not change: loss curves, weights, a search, a lesion study and a pruned network.

`golden.json` holds them with the processor and the versions they were recorded with. On such a machine every bit must
be the same. Elsewhere rounding differs, and losses must agree to a relative 1e-3.

A change that is meant to alter numbers records them again, in a commit of its own that says why:

    python -m pytest tests/golden --record-golden

The settings are in `_settings.py`, all of them explicit. The calls into the library are in `_api.py`, so that a rename
is one edit.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from . import _api, _settings
from ._recorded import check

FILE = Path(__file__).with_name("golden.json")
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


_MARKED = [pytest.param(case, marks=[pytest.mark.slow] if case in ("two seeds", "search") else []) for case in CASES]


@pytest.mark.parametrize("case", _MARKED)
def test_the_result_is_the_recorded_one(
    case: str, trained: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    result, record = CASES[case](tmp_path / "result", trained), request.config.getoption("--record-golden")
    check(FILE, case, result, record=record, bits_only=case in BITS_ONLY)


def test_the_command_line_trains_to_the_same_bits_as_python(trained: Path, tmp_path: Path) -> None:
    assert _api.train_by_command(_settings.FULLY_CONNECTED, tmp_path / "run") == _api.outcome(trained)
