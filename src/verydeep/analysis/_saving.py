"""Results on disk: one `.npz` each, arrays under readable names and everything else as JSON. Never a pickle."""

import io
import json
import types
import typing
import zipfile
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from verydeep.analysis import _results as results
from verydeep.errors import UserError
from verydeep.files import write_atomic

FORMAT = 1  # raised when an older verydeep could not read what a newer one writes

_KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        results.ClassRouting,
        results.DepthUsage,
        results.GateStatistics,
        results.GreedyLesion,
        results.LesionStudy,
        results.Observations,
        results.PairLesion,
        results.PruneReport,
        results.SignalFlow,
    )
}
_HEADER = "verydeep"
Arrays = dict[str, NDArray[Any]]
T = TypeVar("T")


def save_result(result: object, path: str | Path) -> None:
    """Write a result of the analysis; `load_result` gives it back equal in every bit.

    Args:
        result: Any of the results of this package.
        path: The file, `something.npz`; complete or not there.
    """
    kind = type(result).__name__
    if _KINDS.get(kind) is not type(result):
        raise UserError(f"{kind} is no result of the analysis; these are: {', '.join(_KINDS)}")
    arrays: Arrays = {}
    header = {"format": FORMAT, "kind": kind, "result": _encode(result, "", arrays)}
    arrays[_HEADER] = np.array(json.dumps(header, ensure_ascii=False))
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    write_atomic(Path(path), buffer.getvalue())


def load_result(path: str | Path, kind: type[T] | None = None) -> T:
    """Read what `save_result` wrote; with `kind`, refuse another kind of result."""
    path = Path(path)
    header, arrays = _read(path)
    if header.get("format") != FORMAT:
        raise UserError(f"{path} is of format {header.get('format')}, not {FORMAT}; was it written by another version?")
    cls = _KINDS.get(str(header.get("kind")))
    if cls is None or (kind is not None and cls is not kind):
        wanted = "a result of the analysis" if kind is None else f"a {kind.__name__}"
        raise UserError(f"{path} holds {header.get('kind')}, which is not {wanted}")
    try:
        return typing.cast(T, _decode(cls, header["result"], "", arrays))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{path} is damaged ({type(error).__name__}: {error}); run the analysis again") from error


def _read(path: Path) -> tuple[dict[str, Any], Arrays]:
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        return dict(json.loads(str(arrays.pop(_HEADER)))), arrays
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file; verydeep analyze writes it") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"{path} is no result of verydeep analyze, or damaged ({error})") from error


def _encode(value: Any, name: str, arrays: Arrays) -> Any:  # noqa: ANN401
    """Plain values; arrays go to `arrays` under the name of their place."""
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return None
    if is_dataclass(value):
        return {f.name: _encode(getattr(value, f.name), _join(name, f.name), arrays) for f in fields(value)}
    if isinstance(value, tuple):
        return [_encode(item, _join(name, number), arrays) for number, item in enumerate(value)]
    return value


def _decode(hint: Any, value: Any, name: str, arrays: Arrays) -> Any:  # noqa: ANN401
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return None if value is None else _decode(inner[0], value, name, arrays)
    if origin is np.ndarray:
        return arrays[name]
    if origin is tuple:
        hints = [inner[0]] * len(value) if inner[-1] is Ellipsis else inner
        parts = zip(hints, value, range(len(value)), strict=True)
        return tuple(_decode(hint, item, _join(name, number), arrays) for hint, item, number in parts)
    if is_dataclass(hint):
        types_ = typing.get_type_hints(hint)
        values = {key: _decode(types_[key], value[key], _join(name, key), arrays) for key in types_}
        return hint(**values)  # type: ignore[operator]
    return hint(value)


def _join(name: str, part: object) -> str:
    return f"{name}.{part}" if name else str(part)
