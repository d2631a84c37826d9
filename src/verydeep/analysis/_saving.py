"""Results on disk: one `.npz` file per result, arrays under readable names and the rest as JSON; never a pickle."""

import hashlib
import io
import json
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from verydeep.analysis._display import Described, Displayed, draw, picture_of
from verydeep.analysis.activity._activity_results import ClassRouting, GateStatistics, SignalFlow
from verydeep.analysis.activity._observations import Observations, observations
from verydeep.analysis.lesions._lesion_results import LesionStudy, PairLesion, PruneReport
from verydeep.analysis.lesions._random_results import RandomChanges
from verydeep.analysis.lesions._usage_results import DepthUsage, GreedyLesion
from verydeep.errors import UserError
from verydeep.files import write_atomic
from verydeep.notebook import html_card
from verydeep.npz import read_npz

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FORMAT = 1  # increased whenever older versions can no longer read the files

_KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        ClassRouting,
        DepthUsage,
        GateStatistics,
        GreedyLesion,
        LesionStudy,
        Observations,
        PairLesion,
        PruneReport,
        RandomChanges,
        SignalFlow,
    )
}
_FILES: dict[str, type[Any]] = {
    "gates": GateStatistics,
    "routing": ClassRouting,
    "lesions": LesionStudy,
    "pairs": PairLesion,
    "usage": DepthUsage,
    "prune": PruneReport,
}
_FLOW = "flow-{}.npz"
_HEADER = "verydeep"
Arrays = dict[str, NDArray[Any]]
T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class Findings(Described):
    """All results for one network; None or empty if an analysis has not been run.

    Attributes:
        gates: What the transform gates do.
        routing: How gates differ between classes.
        lesions: Each layer closed in turn.
        pairs: Every pair of layers closed.
        usage: How many layers the network uses.
        flow: The size of activations and gradients, for each network or moment that is compared.
        prune: The network before and after its idle layers were removed.

    Example:
        >>> from verydeep.analysis import Findings, lesion_study
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> Findings(lesions=lesion_study(model, data.test))
        <Findings: lesions>
    """

    gates: GateStatistics | None = None
    routing: ClassRouting | None = None
    lesions: LesionStudy | None = None
    pairs: PairLesion | None = None
    usage: DepthUsage | None = None
    flow: tuple[SignalFlow, ...] = ()
    prune: PruneReport | None = None

    def plot(self, folder: str | Path | None = None, **options: Any) -> dict[str, "Figure"]:  # noqa: ANN401
        """Draw every result that is present; a notebook shows the figures.

        Args:
            folder: The folder for gates.png, gates.svg, lesions.png, ...; by default, no files are written.
            **options: Options of `verydeep.report.plot_findings`, such as `theme="dark"`.
        """
        figures: dict[str, Figure] = draw("plot_findings", self, folder, **options)
        return figures

    def _present(self) -> dict[str, Displayed]:
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        flow = {f"flow {number}": flow for number, flow in enumerate(found.pop("flow"), 1)}
        return {name: result for name, result in (found | flow).items() if result is not None}

    def _summary(self) -> str:
        return ", ".join(self._present()) or "none yet"

    def _rows(self) -> list[tuple[str, str]]:
        return [(name, result._summary()) for name, result in self._present().items()]

    def _repr_html_(self) -> str:
        shown = self.usage or self.lesions or self.gates
        return html_card("Findings", self._rows(), [] if shown is None else [picture_of(shown)])

    @property
    def observations(self) -> Observations:
        """The paper's observations, as far as the results allow."""
        return observations(self.gates, self.lesions, self.usage)


def save_findings(findings: Findings, folder: str | Path) -> list[Path]:
    """Write one file per result, replacing earlier results of the same kind.

    Args:
        findings: The results.
        folder: The folder for gates.npz, lesions.npz, ...; it is created if necessary.

    Returns:
        The paths of the files.

    Example:
        >>> from verydeep.analysis import Findings, lesion_study, save_findings
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> [path.name for path in save_findings(Findings(lesions=lesion_study(model, data.test)), "analysis")]
        ['lesions.npz']
    """
    folder = Path(folder)
    results = {name: getattr(findings, name) for name in _FILES}
    written = {folder / f"{name}.npz": result for name, result in results.items() if result is not None}
    written |= {folder / _FLOW.format(number): flow for number, flow in enumerate(findings.flow, 1)}
    for path, result in written.items():
        save_result(result, path)
    if findings.flow:
        for path in _flow_files(folder)[len(findings.flow) :]:  # from an earlier comparison of more networks
            path.unlink(missing_ok=True)
    return list(written)


def load_findings(folder: str | Path) -> Findings:
    """Read all results in a folder; the findings are empty if the folder does not exist.

    Args:
        folder: The folder, such as the one that `verydeep analyze RUN` writes, RUN/analysis.

    Example:
        >>> from verydeep.analysis import load_findings
        >>> load_findings("runs/first/analysis")  # not analysed yet
        <Findings: none yet>
    """
    folder = Path(folder)
    files = {name: (folder / f"{name}.npz", kind) for name, kind in _FILES.items()}
    results = {name: load_result(path, kind) if path.exists() else None for name, (path, kind) in files.items()}
    return Findings(**results, flow=tuple(load_result(path, SignalFlow) for path in _flow_files(folder)))


def _flow_files(folder: Path) -> list[Path]:
    paths = folder.glob(_FLOW.format("[0-9]*"))
    return sorted(paths, key=lambda path: (len(path.name), path.name))


def save_result(result: object, path: str | Path) -> None:
    """Write a result; `load_result` returns it equal in every bit.

    Args:
        result: Any result of this package.
        path: The file, `something.npz`; it is written completely or not at all.

    Example:
        >>> from verydeep.analysis import lesion_study, save_result
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> save_result(lesion_study(model, data.test), "lesions.npz")
    """
    kind = type(result).__name__
    if _KINDS.get(kind) is not type(result):
        raise UserError(f"{kind} is not a result of an analysis; expected one of {', '.join(_KINDS)}")
    arrays: Arrays = {}
    header: dict[str, Any] = {"format": _FORMAT, "kind": kind, "result": _encode(result, "", arrays)}
    header["sha256"] = _digest(header, arrays)
    arrays[_HEADER] = np.array(json.dumps(header, ensure_ascii=False))
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    write_atomic(Path(path), buffer.getvalue())


def load_result(path: str | Path, kind: type[T] | None = None) -> T:
    """Read a result that `save_result` wrote.

    Args:
        path: The file.
        kind: The class of the result; with it, results of any other kind are refused.

    Example:
        >>> from verydeep.analysis import lesion_study, load_result, save_result
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> lesions = lesion_study(model, data.test)
        >>> save_result(lesions, "lesions.npz")
        >>> bool((load_result("lesions.npz").loss == lesions.loss).all())
        True
    """
    path = Path(path)
    header, arrays = _read(path)
    if header.get("format") != _FORMAT:
        raise UserError(f"{path} has format {header.get('format')}, not {_FORMAT}; was it written by another version?")
    if "sha256" in header and header["sha256"] != _digest(header, arrays):  # earlier versions wrote none
        raise UserError(f"{path} is damaged: its content does not match its digest; run the analysis again")
    cls = _KINDS.get(str(header.get("kind")))
    if cls is None or (kind is not None and cls is not kind):
        wanted = "a result of an analysis" if kind is None else f"a {kind.__name__}"
        raise UserError(f"{path} holds {header.get('kind')}, which is not {wanted}")
    try:
        return typing.cast(T, _decode(cls, header["result"], "", arrays))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{path} is damaged ({type(error).__name__}: {error}); run the analysis again") from error


def _read(path: Path) -> tuple[dict[str, Any], Arrays]:
    if not path.exists():
        raise UserError(f"{path}: no such file; it is written by save_result, or by verydeep analyze")
    try:
        arrays = read_npz(path)
        return dict(json.loads(str(arrays.pop(_HEADER)))), arrays
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"{path} is not a result of an analysis, or is damaged; run the analysis again") from error


def _digest(header: Mapping[str, Any], arrays: Arrays) -> str:
    """SHA-256 of a result, so that a damaged file is not taken for a measurement."""
    rest = {name: value for name, value in header.items() if name != "sha256"}
    digest = hashlib.sha256(json.dumps(rest, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _encode(value: Any, name: str, arrays: Arrays) -> Any:  # noqa: ANN401
    """Plain values; arrays are added to `arrays` under the dotted path of their field."""
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
        if typing.get_origin(inner[0]) is np.ndarray:
            return None if name not in arrays else _decode(inner[0], value, name, arrays)
        return None if value is None else _decode(inner[0], value, name, arrays)
    if origin is np.ndarray:
        return _checked(arrays[name], inner[1], name)
    if origin is tuple:
        hints = [inner[0]] * len(value) if inner[-1] is Ellipsis else inner
        parts = zip(hints, value, range(len(value)), strict=True)
        return tuple(_decode(hint, item, _join(name, number), arrays) for hint, item, number in parts)
    if is_dataclass(hint):
        types_ = typing.get_type_hints(hint)
        values = {
            each.name: _decode(types_[each.name], value[each.name], _join(name, each.name), arrays)
            for each in fields(hint)
            if each.name in value or each.default is MISSING  # earlier versions did not write all of them
        }
        return hint(**values)  # type: ignore[operator]
    return hint(value)


def _checked(array: NDArray[Any], dtype: Any, name: str) -> NDArray[Any]:  # noqa: ANN401
    expected = typing.get_args(dtype)[0]
    if expected is not Any and not np.issubdtype(array.dtype, expected):
        raise ValueError(f"{name} has the type {array.dtype}, expected {expected.__name__}")
    return array


def _join(name: str, part: object) -> str:
    return f"{name}.{part}" if name else str(part)
