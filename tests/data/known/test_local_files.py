import gzip
import os
from dataclasses import replace
from pathlib import Path

import pytest

from verydeep.data.known._catalogue import DebianPackage
from verydeep.data.known._fetch import copy_to_root, find_or_fetch
from verydeep.data.known._formats import parse_dataset
from verydeep.data.known._local_files import find_files, search_roots
from verydeep.errors import UserError
from verydeep.files import user_cache

from ._small_datasets import QUICK, Small, small_cifar, small_idx


def lay_out(files: dict[str, bytes], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def dotted(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name.replace("-idx", ".idx"): data for name, data in files.items()}


@pytest.mark.parametrize("below", ["MNIST/raw", "raw", "mnist", "."])
@pytest.mark.parametrize("packed", [False, True])
def test_idx_files_are_found_in_every_usual_layout(tmp_path: Path, below: str, packed: bool) -> None:
    small = small_idx()
    lay_out(small.archives if packed else small.files, tmp_path / below)
    found = find_files(small.known, tmp_path).verified
    assert {name: file.data for name, file in found.items()} == small.files


def test_idx_files_are_found_under_their_dotted_names(tmp_path: Path) -> None:
    small = small_idx()
    lay_out(dotted(small.files), tmp_path)
    assert not find_files(small.known, tmp_path).missing


@pytest.mark.parametrize("below", ["cifar-10-batches-bin", "cifar10", "."])
def test_cifar_files_are_found_in_every_usual_layout(tmp_path: Path, below: str) -> None:
    small = small_cifar()
    lay_out(small.files, tmp_path / below)
    assert not find_files(small.known, tmp_path).missing


def test_the_search_roots_are_root_then_environment_then_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert search_roots(None) == [user_cache()]
    monkeypatch.setenv("VERYDEEP_DATA", str(tmp_path / "shared"))
    assert search_roots(tmp_path) == [tmp_path, tmp_path / "shared", tmp_path / "cache" / "verydeep"]


@pytest.mark.parametrize("place", ["shared", "cache/verydeep"])
def test_a_dataset_in_a_later_root_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    small = small_idx()
    monkeypatch.setenv("VERYDEEP_DATA", str(tmp_path / "shared"))
    folder = lay_out(small.files, tmp_path / place / "MNIST/raw")
    files = find_or_fetch(small.known, tmp_path / "root", QUICK)
    assert {file.path.parent for file in files.values()} == {folder}
    assert not (tmp_path / "root").exists()


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [
        ("linux", "XDG_CACHE_HOME", "there/verydeep"),
        ("linux", None, "~/.cache/verydeep"),
        ("darwin", None, "~/Library/Caches/verydeep"),
        ("win32", "LOCALAPPDATA", "there/verydeep/Cache"),
        ("win32", None, "~/AppData/Local/verydeep/Cache"),
    ],
)
def test_each_platform_has_its_cache(
    monkeypatch: pytest.MonkeyPatch, platform: str, variable: str | None, expected: str
) -> None:
    monkeypatch.setattr("sys.platform", platform)
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, "there")
    assert user_cache() == Path(expected).expanduser()


def test_debians_folder_is_used_in_place(tmp_path: Path) -> None:
    small = small_idx(debian=DebianPackage("dataset-mnist", str(tmp_path / "usr")))
    other_packer = {f"{name}.gz": gzip.compress(data, 1, mtime=77) for name, data in small.files.items()}
    assert other_packer != small.archives
    lay_out(other_packer, tmp_path / "usr")
    files = find_or_fetch(small.known, tmp_path / "root", QUICK)
    assert len(parse_dataset(small.known, files).train) == 12


def test_files_found_elsewhere_are_copied_to_the_root(tmp_path: Path) -> None:
    small = small_idx(debian=DebianPackage("dataset-mnist", str(tmp_path / "usr")))
    lay_out(small.archives, tmp_path / "usr")
    kept = copy_to_root(small.known, find_or_fetch(small.known, tmp_path / "root", QUICK), tmp_path / "root")
    assert {path.name: path.read_bytes() for path in (tmp_path / "root/MNIST/raw").iterdir()} == small.files
    assert copy_to_root(small.known, kept, tmp_path / "root") == kept


def damaged(small: Small, how: str) -> bytes:
    data = small.files["train-images-idx3-ubyte"]
    return {
        "truncated": data[:-1],
        "tampered": data[:-1] + bytes((data[-1] ^ 1,)),
        "empty": b"",
        "longer": data + b"x",
    }[how]


@pytest.mark.parametrize("how", ["truncated", "tampered", "empty", "longer"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_damaged_file_is_rejected_reported_and_left_alone(tmp_path: Path, how: str, packed: bool) -> None:
    small = small_idx()
    folder = lay_out(small.files, tmp_path / "MNIST/raw")
    (folder / "train-images-idx3-ubyte").unlink()
    bad = damaged(small, how)
    path = folder / ("train-images-idx3-ubyte" + ".gz" * packed)
    path.write_bytes(gzip.compress(bad) if packed else bad)
    before = path.read_bytes()
    found = find_files(small.known, tmp_path)
    assert [file.name for file in found.missing] == ["train-images-idx3-ubyte"]
    assert found.rejected[0].startswith(f"{path}: ")
    with pytest.raises(UserError, match="train-images"):
        find_or_fetch(small.known, tmp_path, QUICK)
    assert path.read_bytes() == before


def test_a_good_file_in_a_later_root_replaces_a_rejected_one(tmp_path: Path) -> None:
    small = small_idx()
    folder = lay_out(small.files, tmp_path / "MNIST/raw")
    (folder / "train-images-idx3-ubyte").write_bytes(b"wrong")
    lay_out(small.files, tmp_path / "cache/verydeep/mnist")
    assert not find_files(small.known, tmp_path).missing


def test_a_folder_or_a_pipe_with_the_name_of_a_file_is_not_read(tmp_path: Path) -> None:
    small = small_idx()
    folder = lay_out(small.files, tmp_path / "MNIST/raw")
    for name, make in (("train-images-idx3-ubyte", os.mkdir), ("t10k-images-idx3-ubyte", os.mkfifo)):
        (folder / name).unlink()
        make(folder / name)
    assert [f.name for f in find_files(small.known, tmp_path).missing] == [
        "train-images-idx3-ubyte",
        "t10k-images-idx3-ubyte",
    ]


def test_a_gzip_bomb_is_refused_before_it_unpacks(tmp_path: Path) -> None:
    small = small_idx()
    folder = lay_out(small.files, tmp_path)
    (folder / "train-labels-idx1-ubyte").unlink()
    (folder / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(bytes(10_000_000)))
    assert "unpacks to more than the expected 20 bytes" in find_files(small.known, tmp_path).rejected[0]


def test_equal_file_names_of_two_datasets_are_distinguished(tmp_path: Path) -> None:
    small = small_idx()
    other = replace(small.known, name="fashion-mnist", folder="FashionMNIST/raw")
    changed = tuple(replace(file, sha256="0" * 64) for file in other.train)
    lay_out(small.files, tmp_path)
    assert not find_files(small.known, tmp_path).missing
    assert find_files(replace(other, train=changed), tmp_path).missing == changed
