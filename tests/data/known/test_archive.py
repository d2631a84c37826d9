import contextlib
import gzip
import io
import tarfile
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from verydeep.data.known._archive import read_gzip, read_members
from verydeep.errors import UserError

from ._small_datasets import targz

WANTED = {"set/train.bin": 100, "set/test.bin": 100}
GOOD = {"set/train.bin": b"a" * 100, "set/test.bin": b"b" * 50, "set/readme": b"c"}
MANY = settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def archive(folder: Path, *extra: tarfile.TarInfo, good: dict[str, bytes] = GOOD) -> Path:
    out = io.BytesIO(gzip.decompress(targz(good)))
    with tarfile.open(fileobj=out, mode="a") as tar:
        for info in extra:
            tar.addfile(info, io.BytesIO(bytes(info.size)))
    path = folder / "set.tar.gz"
    path.write_bytes(gzip.compress(out.getvalue()))
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, size
    return info


def test_wanted_members_are_read_and_nothing_is_written(tmp_path: Path) -> None:
    path = archive(tmp_path, member("set", tarfile.DIRTYPE))
    assert read_members(path, WANTED) == {name: GOOD[name] for name in WANTED}
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../up", "set/../../up", "C:/windows", "C:up", "\\\\host\\up", "..\\up"]
)
def test_a_path_outside_the_archive_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="points outside the archive; nothing was read"):
        read_members(archive(tmp_path, member(name)), WANTED)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
@pytest.mark.parametrize("name", ["set/other", "set/train.bin"])
def test_links_and_devices_are_refused(tmp_path: Path, kind: bytes, name: str) -> None:
    good = {key: data for key, data in GOOD.items() if key != name}
    with pytest.raises(UserError, match=f"member '{name}' is a link or a device"):
        read_members(archive(tmp_path, member(name, kind, "/etc/passwd"), good=good), WANTED)


def test_a_member_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"'set/train.bin' has 100 bytes, expected at most 99"):
        read_members(archive(tmp_path), {"set/train.bin": 99})


def test_a_duplicate_member_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"contains 'set/train.bin' twice"):
        read_members(archive(tmp_path, member("set/train.bin")), WANTED)


def test_a_missing_member_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"set.tar.gz: contains no set/absent.bin"):
        read_members(archive(tmp_path), {"set/absent.bin": 1})


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verydeep.data.known._archive._OTHER_MEMBERS", 1 << 16)
    with pytest.raises(UserError, match="unpacks to much more"):
        read_members(archive(tmp_path, member("bomb", size=1 << 24)), WANTED)


def test_a_header_that_claims_gigabytes_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verydeep.data.known._archive._OTHER_MEMBERS", 1 << 16)
    header = member("x", tarfile.XHDTYPE, size=4 << 30).tobuf(tarfile.USTAR_FORMAT)
    path = tmp_path / "set.tar.gz"
    path.write_bytes(gzip.compress(header + bytes(1 << 22)))
    with pytest.raises(UserError, match="unpacks to much more"):
        read_members(path, WANTED)


def test_too_many_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verydeep.data.known._archive._MAX_MEMBERS", 5)
    with pytest.raises(UserError, match="more than 5 members"):
        read_members(archive(tmp_path, *(member(f"set/{i}") for i in range(5))), WANTED)


def only_user_errors(path: Path) -> None:
    try:
        read = read_members(path, WANTED)
    except UserError:
        read = {}
    assert all(len(data) <= WANTED[name] for name, data in read.items())
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.slow
@MANY
@given(cut=st.integers(0, 400))
def test_a_truncated_archive_is_refused(tmp_path: Path, cut: int) -> None:
    path = archive(tmp_path)
    path.write_bytes(path.read_bytes()[:cut])
    only_user_errors(path)


@MANY
@given(data=st.binary(max_size=2000))
def test_random_bytes_are_never_more_than_a_user_error(tmp_path: Path, data: bytes) -> None:
    for packed in (data, gzip.compress(data, 1)):
        (tmp_path / "set.tar.gz").write_bytes(packed)
        only_user_errors(tmp_path / "set.tar.gz")


@MANY
@given(changes=st.lists(st.tuples(st.integers(0, 3000), st.binary(min_size=1, max_size=12)), min_size=1, max_size=8))
def test_a_tar_with_changed_bytes_is_never_more_than_a_user_error(
    tmp_path: Path, changes: list[tuple[int, bytes]]
) -> None:
    tar = bytearray(gzip.decompress(targz(GOOD)))
    for at, new in changes:
        tar[at : at + len(new)] = new
    (tmp_path / "set.tar.gz").write_bytes(gzip.compress(bytes(tar), 1))
    only_user_errors(tmp_path / "set.tar.gz")


FORMATS: tuple[Literal[0, 1, 2], ...] = (0, 1, 2)  # ustar, GNU, pax
HEADER = st.builds(
    member,
    st.text(max_size=120),
    st.sampled_from([*b"01234567LKxgXSD"]).map(lambda c: bytes((c,))),
    st.text(max_size=120),
    st.integers(0, 2000),
)


@pytest.mark.slow
@MANY
@given(infos=st.lists(HEADER, max_size=4), content=st.binary(max_size=2000), fmt=st.sampled_from(FORMATS))
def test_any_members_in_any_order_are_never_more_than_a_user_error(
    tmp_path: Path, infos: list[tarfile.TarInfo], content: bytes, fmt: Literal[0, 1, 2]
) -> None:
    out = b""
    for info in infos:
        try:
            out += info.tobuf(fmt, "utf-8", "surrogateescape")
        except ValueError:  # this format cannot write such a header
            continue
        out += content[: info.size].ljust(-(-info.size // 512) * 512, b"\0")
    (tmp_path / "set.tar.gz").write_bytes(gzip.compress(out + bytes(1024), 1))
    only_user_errors(tmp_path / "set.tar.gz")


@MANY
@given(data=st.binary(max_size=300), cut=st.integers(0, 400), flip=st.integers(0, 400))
def test_a_damaged_gzip_is_never_more_than_a_user_error(tmp_path: Path, data: bytes, cut: int, flip: int) -> None:
    packed = bytearray(gzip.compress(data)[:cut])
    if flip < len(packed):
        packed[flip] ^= 0x55
    (tmp_path / "set.gz").write_bytes(packed)
    with contextlib.suppress(UserError):
        assert len(read_gzip(tmp_path / "set.gz", 300)) <= 300
