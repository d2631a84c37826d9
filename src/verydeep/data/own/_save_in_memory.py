"""Data in memory as a file, for processes that train on it."""

import io
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from verydeep.data.own._in_memory import InMemory
from verydeep.errors import UserError, list_names
from verydeep.files import write_atomic


def save_in_memory(memory: InMemory, folder: Path) -> Path:
    """Write data that the user holds to a file, from which `load_dataset` reads the same samples.

    Args:
        memory: A DataFrame, which becomes a Parquet file if pyarrow is installed and else a CSV file, or a pair of
            arrays, which becomes an NPZ file.
        folder: The folder of the file.
    """
    if memory.kind == "array":
        x, y = (np.asarray(part) for part in memory.data)
        content = io.BytesIO()
        np.savez(content, x=x, y=y)
        write_atomic(folder / "data.npz", content.getvalue())
        return folder / "data.npz"
    frame: Any = memory.data
    names = [str(name) for name in frame.columns]
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise UserError(f"{memory.name}: columns with the same name: {list_names(twice)}; rename or drop some")
    is_polars = hasattr(frame, "write_parquet")
    if is_polars or find_spec("pyarrow") is not None:
        path = folder / "data.parquet"
        write_atomic(path, frame.write_parquet if is_polars else lambda to: frame.to_parquet(to, index=False))
        return path
    write_atomic(folder / "data.csv", lambda to: frame.to_csv(to, index=False))
    return folder / "data.csv"
