"""Reading `.npz` archives: a small file may declare arrays of many gigabytes, so its sizes are checked first."""

import math
import zipfile
from pathlib import Path
from typing import IO

import numpy as np

from verydeep.errors import UserError, shorten
from verydeep.files import require_regular
from verydeep.memory import available_memory

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """Read all arrays of an archive.

    Raises:
        UserError: It is not an archive, is damaged, holds Python objects, or needs more memory than there is.
    """
    try:
        if not zipfile.is_zipfile(require_regular(path)):  # numpy would report it as a pickle
            raise ValueError("it is not an archive")
        with path.open("rb") as file:
            _check_sizes(path, file)
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                return {name: np.asarray(archive[name]) for name in archive.files}
    except UserError:
        raise
    except Exception as error:  # a broken file makes zipfile, zlib and numpy raise many kinds of exceptions
        if "allow_pickle" in str(error):
            raise UserError(f"{path}: holds Python objects, which are not loaded; save numbers and text only") from None
        raise UserError(f"{path}: cannot be read as .npz: {shorten(error)}") from None


def _check_sizes(path: Path, file: IO[bytes]) -> None:
    """Compare what the arrays declare with their files in the archive, and those with the memory."""
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        total, available = sum(member.file_size for member in members), available_memory()
        if total > available:
            raise UserError(
                f"{path}: holds {total / 1e9:.1f} GB, and {available / 1e9:.1f} GB of memory are available; save the "
                "arrays as .npy files in a folder, which stay on disk"
            )
        for member in members:
            with archive.open(member) as content:
                read_header = _HEADERS.get(np.lib.format.read_magic(content))
                shape, _, dtype = ((), False, np.dtype("u1")) if read_header is None else read_header(content)
            if math.prod(shape) * dtype.itemsize > member.file_size and not dtype.hasobject:
                raise UserError(
                    f"{path}: {member.filename} declares the shape {shape}, for which its content is too short"
                )
