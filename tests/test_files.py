import errno
from pathlib import Path

import pytest

from verydeep.errors import UserError
from verydeep.files import read_json, read_toml, write_atomic


def test_a_file_is_replaced_atomically(tmp_path: Path) -> None:
    write_atomic(tmp_path / "new" / "file", "first")
    write_atomic(tmp_path / "new" / "file", b"second")
    assert (tmp_path / "new" / "file").read_text() == "second"
    assert len(list((tmp_path / "new").iterdir())) == 1


def test_a_failed_write_leaves_only_the_old_file(tmp_path: Path) -> None:
    write_atomic(tmp_path / "file", "old")

    def full(partial: Path) -> None:
        partial.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(UserError, match="the disk is full"):
        write_atomic(tmp_path / "file", full)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_a_device_or_a_folder_is_never_replaced(tmp_path: Path) -> None:
    for path in (Path("/dev/null"), tmp_path):
        with pytest.raises(UserError, match="not a regular file"):
            write_atomic(path, "data")
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize(
    ("content", "words"),
    [("{", "is not JSON"), ("[1]", "got list"), ("\udcff", "is not JSON"), ("[" * 100_000, "is not JSON")],
)
def test_a_file_that_is_not_a_json_object_is_reported(content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(UserError, match=words):
        read_json(tmp_path / "file")


def test_a_missing_file_is_reported_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file or directory; expected a run"):
        read_json(tmp_path / "file", "expected a run")
    with pytest.raises(UserError, match="cannot read"):
        read_toml(tmp_path)
