"""What commands leave in a folder, compared bit for bit except for times; and how a command may end.

A folder becomes a table from names to values: one for each file, array, number or text in JSON. What differs between
two undisturbed executions, such as a measured time, is left out of the comparison.
"""

import gzip
import hashlib
import io
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from _warm import Ended
from safetensors import safe_open

Outcome = dict[str, Any]

# Logs, locks and journals tell the history, which is another one after a fault. So do the checkpoints of a study about
# depth, whose trainings save one after a while: which is the last depends on the time that they took.
_HISTORY = re.compile(
    r"(^|/)(workers/.*|events\.log|.*\.log|.*\.lock|lock|environment\.json|journal\.log.*|\.kept-.*|depth/.*/checkpoint/.*)$"
)
_TIMES = re.compile(
    r"second|date|time|started|finished_at|host|pid|machine|worker|attempt|git|command|minutes", re.IGNORECASE
)
_DATE = re.compile(rb"\d{1,2} [A-Z][a-z]+ 20\d\d, \d\d:\d\d|20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?")
_MOST_LINES = 2


def outcome(folder: Path) -> Outcome:
    """Everything in a folder that must be the same."""
    found: Outcome = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder)).removesuffix(".gz")  # an archive is as good as the file inside it
        if path.is_file() and not _HISTORY.search(name) and not _is_older_checkpoint(path):
            found |= {f"{name}:{key}": value for key, value in _values(path) if not _TIMES.search(key)}
    return found


def _is_older_checkpoint(path: Path) -> bool:
    """Whether there is a newer one; which older ones there are depends on how long training took."""
    return path.parent.name == "checkpoint" and path != max(path.parent.glob("*.safetensors"), default=path)


def _values(path: Path) -> Iterator[tuple[str, Any]]:
    data = path.read_bytes()
    try:
        if path.suffix == ".json":
            yield from _flat(json.loads(data))
        elif path.suffix == ".jsonl":
            yield from _flat([json.loads(line) for line in data.splitlines()])
        elif path.suffix == ".safetensors":
            with safe_open(path, "np") as file:
                yield from ((name, _digest(file.get_tensor(name).tobytes())) for name in file.keys())  # noqa: SIM118
        elif path.suffix == ".npz":
            with zipfile.ZipFile(io.BytesIO(data)) as archive:  # which has dates
                yield from ((name, _digest(archive.read(name))) for name in archive.namelist())
        elif path.name == "depth.html":  # depth.json without measured times: only whether it is whole
            yield "is whole", data.rstrip().endswith(b"</html>")
        elif path.suffix == ".html":
            yield "", _digest(_DATE.sub(b"DATE", data))
        else:
            yield "", _digest(gzip.decompress(data) if path.suffix == ".gz" else data)
    except Exception as error:
        yield "damaged", str(error)


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - JSON
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _flat(each, f"{name}.{key}")
    elif isinstance(value, list) and any(isinstance(each, (Mapping, list)) for each in value):
        yield f"{name}.length", len(value)
        for number, each in enumerate(value):
            yield from _flat(each, f"{name}.{number}")
    else:
        yield name, value


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def constant(first: Outcome, second: Outcome) -> Outcome:
    """What two undisturbed executions have in common."""
    return {key: value for key, value in first.items() if key in second and _same(value, second[key])}


def _same(one: Any, other: Any) -> bool:  # noqa: ANN401 - JSON
    if isinstance(one, float) and isinstance(other, float) and np.isnan(one) and np.isnan(other):
        return True
    return bool(one == other)


def differences(expected: Outcome, calm: Outcome, found: Outcome) -> list[str]:
    """Names of what is missing, different, or should not be there.

    Args:
        expected: What undisturbed executions have in common.
        calm: What one of them has.
        found: What is compared.
    """
    different = [key for key, value in expected.items() if key not in found or not _same(found[key], value)]
    files = {key.partition(":")[0] for key in calm}
    return different + sorted({key.partition(":")[0] for key in found} - files)


def ending(ended: Ended) -> str:  # noqa: PLR0911 - a verdict per line
    """The verdict on how a command ended: success, clear error, interrupted, or what is wrong with it.

    A clear error has at most two lines, not counting notes and the items of a list, such as the places that were tried.
    """
    lines = [line for line in ended.err.strip().split("\n") if line and not line.startswith(("verydeep: note:", "  "))]
    if ended.hung:
        return "hang"
    if "MemoryError" in ended.err and "Traceback" in ended.err:
        return "memory"
    if "Traceback" in ended.err or ("Error: " in ended.err and ended.code == 1):
        return "traceback"
    if ended.code == 0:
        return "success"
    if ended.code < 0:
        return f"ended by signal {-ended.code}"
    if ended.code in (130, 141, 143, 129):
        return "interrupted"
    if ended.code == 2 and 1 <= len(lines) <= _MOST_LINES:
        return "clear error"
    return "unclear error"
