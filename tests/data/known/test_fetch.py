import os
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from verydeep.data.known._catalogue import KnownDataset
from verydeep.data.known._fetch import find_or_fetch, load_raw
from verydeep.data.known._formats import parse_dataset
from verydeep.data.known._local_files import install
from verydeep.errors import UserError

from ._small_datasets import QUICK, Small, Web, small_cifar, small_idx

BOTH = pytest.mark.parametrize("make", [small_idx, small_cifar])


def serve(web: Web, small: Small) -> None:
    web.pages |= small.archives


def stored(known: KnownDataset, root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (root / known.folder).iterdir()}


@BOTH
def test_a_dataset_is_downloaded_unpacked_and_loaded(web: Web, tmp_path: Path, make: type) -> None:
    small: Small = make(web.address)
    serve(web, small)
    dataset = parse_dataset(small.known, find_or_fetch(small.known, tmp_path, QUICK))
    assert dataset.train.x.shape[1:] == small.known.image
    assert dataset.train.x.dtype == torch.uint8
    assert dataset.train.y.dtype == torch.int64
    assert dataset.valid is None
    assert stored(small.known, tmp_path) == small.files


@BOTH
def test_a_dataset_on_disk_needs_no_network(web: Web, tmp_path: Path, make: type) -> None:
    small: Small = make(web.address)
    serve(web, small)
    find_or_fetch(small.known, tmp_path, QUICK)
    asked = len(web.asked)
    find_or_fetch(small.known, tmp_path, QUICK)
    assert len(web.asked) == asked


def test_only_missing_files_are_downloaded(web: Web, tmp_path: Path) -> None:
    small = small_idx(web.address)
    serve(web, small)
    find_or_fetch(small.known, tmp_path, QUICK)
    (tmp_path / "MNIST/raw/t10k-labels-idx1-ubyte").unlink()
    web.asked.clear()
    find_or_fetch(small.known, tmp_path, QUICK)
    assert web.asked == [("/t10k-labels-idx1-ubyte.gz", None)]


def test_a_temporary_file_of_a_killed_process_is_removed_even_if_nothing_is_missing(web: Web, tmp_path: Path) -> None:
    small = small_idx(web.address)
    serve(web, small)
    find_or_fetch(small.known, tmp_path, QUICK)
    left = tmp_path / "MNIST" / "raw" / ".t10k-labels-idx1-ubyte.0123.partial"
    left.write_bytes(b"cut")
    find_or_fetch(small.known, tmp_path, QUICK)
    assert not left.exists()


def test_a_local_archive_is_unpacked_instead_of_downloaded(web: Web, tmp_path: Path) -> None:
    small = small_cifar(web.address)
    archive = tmp_path / "cifar-10-binary.tar.gz"
    archive.write_bytes(small.archives[archive.name])
    find_or_fetch(small.known, tmp_path, QUICK)
    assert web.asked == []
    assert stored(small.known, tmp_path) == small.files
    assert archive.exists()


def test_a_damaged_archive_is_reported_kept_and_downloaded_again(web: Web, tmp_path: Path) -> None:
    small = small_cifar(web.address)
    serve(web, small)
    archive = tmp_path / "cifar-10-binary.tar.gz"
    archive.write_bytes(small.archives[archive.name][:500])
    find_or_fetch(small.known, tmp_path, QUICK)
    assert archive.stat().st_size == 500
    web.pages.clear()
    (tmp_path / "cifar-10-batches-bin/test_batch.bin").unlink()
    with pytest.raises(UserError, match=rf"archive: {archive}: not a complete"):
        find_or_fetch(small.known, tmp_path, QUICK)


def test_a_file_with_other_content_is_reported_and_never_replaced(web: Web, tmp_path: Path) -> None:
    small = small_idx(web.address)
    serve(web, small)
    path = tmp_path / "MNIST/raw/train-images-idx3-ubyte"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"somebody's work")
    with pytest.raises(UserError, match=rf"{path}: 15 bytes(.|\n)*{path}: already exists and is not replaced; rename"):
        find_or_fetch(small.known, tmp_path, QUICK)
    assert path.read_bytes() == b"somebody's work"
    assert web.asked == []


def test_when_every_source_fails_all_places_and_reasons_are_listed(web: Web, tmp_path: Path) -> None:
    small = small_idx(f"{web.address}/a", f"{web.address}/b")
    with pytest.raises(UserError) as caught:
        find_or_fetch(small.known, tmp_path, QUICK)
    message = str(caught.value)
    for part in (
        f"{tmp_path}: no complete mnist there",
        f"{tmp_path / 'cache/verydeep'}: no such folder",
        f"download: {web.address}/a/train-images-idx3-ubyte.gz: HTTP 404",
        f"    {web.address}/b/train-images-idx3-ubyte.gz: HTTP 404",
        "npm: no npm package with mnist is known",
        f"What to do: download train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz, "
        f"t10k-labels-idx1-ubyte.gz from {web.address}/a on any machine, copy to {tmp_path / 'MNIST/raw'}",
    ):
        assert part in message


def test_following_the_advice_of_the_error_works(web: Web, tmp_path: Path) -> None:
    for small in (small_idx(web.address), small_cifar(web.address)):
        folder = tmp_path / small.known.folder
        folder.mkdir(parents=True)
        for name, data in small.archives.items():
            (folder / name).write_bytes(data)
        find_or_fetch(small.known, tmp_path, QUICK)
    assert web.asked == []


@pytest.fixture
def powerless() -> Iterator[Path]:
    """A folder this process may not write to: as root, which may write anywhere, it becomes nobody for a while."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o555)
    was_root = os.geteuid() == 0
    if was_root:
        os.seteuid(65534)
    yield folder
    if was_root:
        os.seteuid(0)
    folder.rmdir()


def test_a_read_only_cache_is_reported(web: Web, tmp_path: Path, powerless: Path) -> None:
    small = small_idx(web.address)
    serve(web, small)
    with pytest.raises(UserError, match=rf"{powerless}/.mnist.lock: cannot be written \(Permission denied\)"):
        find_or_fetch(small.known, powerless, QUICK)
    assert web.asked == []


def test_a_file_in_place_of_the_cache_folder_is_reported(web: Web, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UserError, match="file: cannot be written"):
        find_or_fetch(small_idx(web.address).known, tmp_path / "file", QUICK)


@pytest.mark.parametrize("root", ["\0", "a" * 5000, "~nobody-of-that-name/x", "\udcff"])
def test_an_impossible_root_is_a_user_error(
    web: Web, tmp_path: Path, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError):
        find_or_fetch(small_idx(web.address).known, Path(root), QUICK)


FILL = """
import resource, sys
from pathlib import Path
from verydeep.data.known._local_files import install
from verydeep.errors import UserError
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    install(Path(sys.argv[1]), bytes(100_000))
except UserError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_full_disk_while_unpacking_leaves_nothing_behind(tmp_path: Path) -> None:
    """A limit on file size stands for the full disk: the write fails in the same place, for any user."""
    command = [sys.executable, "-c", FILL, str(tmp_path / "train.bin")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"{tmp_path / 'train.bin'}: the disk is full (File too large); free some space")
    assert list(tmp_path.iterdir()) == []


def test_installing_never_replaces_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    with pytest.raises(UserError, match="already exists"):
        install(tmp_path / "file", b"data")
    assert (tmp_path / "file").read_bytes() == b"mine"


def test_installed_files_can_be_read_by_others(tmp_path: Path) -> None:
    install(tmp_path / "file", b"data")
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o644


FETCH = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from known._small_datasets import QUICK, small_cifar
from verydeep.data.known._fetch import find_or_fetch
print("ready", flush=True)
sys.stdin.readline()
files = find_or_fetch(small_cifar(sys.argv[2]).known, Path(sys.argv[3]), QUICK)
print(sum(len(file.data) for file in files.values()))
"""


@pytest.mark.slow
def test_two_processes_that_fetch_at_once_download_once(web: Web, tmp_path: Path) -> None:
    small = small_cifar(web.address)
    serve(web, small)
    web.plan = ["trickle"]
    command = [sys.executable, "-c", FETCH, str(Path(__file__).parents[1]), web.address, str(tmp_path)]
    pipe = subprocess.PIPE
    children = [subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) for _ in range(2)]
    for child in children:
        assert child.stdout
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin
        child.stdin.write("go\n")
        child.stdin.flush()
    said = [child.communicate() for child in children]
    assert [out for out, _ in said] == [f"{sum(map(len, small.files.values()))}\n"] * 2, said
    assert sorted(err for _, err in said) == ["", "waiting for another process that is fetching cifar10\n"]
    assert len(web.asked) == 1
    assert stored(small.known, tmp_path) == small.files


def test_a_lock_is_released_when_its_process_is_killed(web: Web, tmp_path: Path) -> None:
    small = small_cifar(web.address)
    serve(web, small)
    web.plan = ["hang"]
    command = [sys.executable, "-c", FETCH, str(Path(__file__).parents[1]), web.address, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as child:
        assert child.stdin
        child.stdin.write("go\n")
        child.stdin.flush()
        while not web.asked:
            time.sleep(0.01)
        child.kill()
    find_or_fetch(small.known, tmp_path, QUICK)
    assert stored(small.known, tmp_path) == small.files


def test_the_error_for_an_unknown_name_suggests_the_closest() -> None:
    with pytest.raises(UserError, match="did you mean 'mnist'"):
        load_raw("minst")
