from collections.abc import Iterator
from pathlib import Path

import pytest

from verydeep.data.known._local_files import search_roots

from ._small_datasets import Web

REAL = search_roots(None)[0]


@pytest.fixture
def real() -> Path:
    """Where this machine keeps real datasets; the other fixtures hide it from the tests."""
    return REAL


@pytest.fixture(autouse=True)
def _isolated_from_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VERYDEEP_DATA", "http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path / "no-programs"))


@pytest.fixture
def web() -> Iterator[Web]:
    server = Web()
    yield server
    server.close()
