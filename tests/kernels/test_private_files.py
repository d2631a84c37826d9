"""Cached code is read only if nobody else could have written it."""

import os
import sys
from pathlib import Path

import pytest

from verydeep.kernels.runtime import _compile
from verydeep.kernels.runtime._private_files import read_private, write_private

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="permissions are different there")


@pytest.fixture
def cached(tmp_path: Path) -> Path:
    file = tmp_path / "cache" / "kernels" / "code.o"
    write_private(file, b"code")
    return file


def test_what_was_written_is_read_by_its_owner_alone(cached: Path) -> None:
    assert read_private(cached) == b"code"
    assert cached.stat().st_mode & 0o777 == 0o600
    assert cached.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(("level", "mode"), [(0, 0o606), (0, 0o660), (1, 0o707), (2, 0o777)])
def test_what_others_could_have_written_is_not_read(
    level: int, mode: int, cached: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verydeep.kernels.runtime._private_files._is_own_group", lambda _: False)
    place = [cached, *cached.parents][level]
    place.chmod(mode)
    assert read_private(cached) is None
    assert _compile._read(cached) is None


def test_a_folder_in_which_one_cannot_replace_the_files_of_others_is_as_good(cached: Path) -> None:
    cached.parents[1].chmod(0o1777)
    assert read_private(cached) == b"code"


def test_files_of_others_links_and_pipes_are_not_read(cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link, pipe = cached.with_name("link.o"), cached.with_name("pipe.o")
    link.symlink_to(cached)
    os.mkfifo(pipe, 0o600)
    assert [read_private(path) for path in (link, pipe, cached.with_name("missing.o"))] == [None] * 3
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert read_private(cached) == (b"code" if user == 0 else None)  # the administrator's is as good
    if user == 0:
        monkeypatch.undo()
        os.chown(cached, 12345, -1)
        assert read_private(cached) is None
