"""`verydeep export`: a run as ONNX, for programs without PyTorch."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from verydeep.cli._options import DataRoot, RunFolder, Threads, option, read_options
from verydeep.errors import UserError
from verydeep.terminal import echo

if TYPE_CHECKING:
    from verydeep.data import Rows
    from verydeep.interop import OnnxCheck
    from verydeep.training import Run

_SAMPLES = 100


@dataclass(frozen=True)
class ExportOptions:
    """Export a run to ONNX: raw rows or pixels in, predictions out.

    The file is written only if onnxruntime predicts the same as verydeep predict, to 1e-5.
    """

    run: RunFolder
    onnx: Annotated[Path, option("FILE")]
    """The file to write, such as out.onnx."""
    data: Annotated[str | None, option("PATH_OR_NAME")] = None
    """Compare the predictions on this data; by default, on the run's own test data."""
    logits: bool = False
    """Export the network alone: prepared samples in, logits out."""
    root: DataRoot = None
    threads: Threads = None


OPTIONS = {"export": ExportOptions}


def main(arguments: list[str]) -> None:
    """Run the command."""
    options = read_options(ExportOptions, "export", arguments)
    from verydeep.cli._run_options import computing, open_run

    if options.onnx.suffix.lower() != ".onnx":
        raise UserError(f"--onnx {options.onnx}: the name of the file must end in .onnx")
    run = open_run(options.run)
    with computing(options.threads):
        _export_network(options, run) if options.logits else _export_predictor(options, run)


def _export_predictor(options: ExportOptions, run: Run) -> None:
    from verydeep.cli._status import reading, status
    from verydeep.interop import export_predictor, require_onnx

    require_onnx()
    with reading(options.data or run.config.data.source):
        rows = _rows(options, run)
    with status("exporting and comparing the predictions"):
        check = export_predictor(run, rows, options.onnx)
    _print_check(options.onnx, check, _signature(options.onnx), "verydeep predict")


def _rows(options: ExportOptions, run: Run) -> Rows:
    """Raw samples of the run's own data, or of other data."""
    from verydeep.data import KNOWN_NAMES, raw_samples

    if options.data is not None and options.data not in KNOWN_NAMES:
        return options.data
    if options.data is None and "dataset" in run.user_supplied:
        raise UserError(f"{run.path} was trained on data given in Python; name some with --data")
    config = run.config.data if options.data is None else replace(run.config.data, source=options.data)
    return raw_samples(config, _SAMPLES, options.root)


def _signature(file: Path) -> str:
    """The inputs and outputs of an ONNX file."""
    import onnxruntime  # type: ignore[import-untyped]

    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    inputs = [f"{value.name} {_kind(value.type)}" for value in session.get_inputs()]
    listed = ", ".join(inputs[:10]) + (f" and {len(inputs) - 10} more" if len(inputs) > 10 else "")
    return f"{listed} -> {', '.join(value.name for value in session.get_outputs())}"


def _kind(onnx_type: str) -> str:
    return {"tensor(double)": "float64", "tensor(float)": "float32", "tensor(string)": "text"}.get(onnx_type, "uint8")


def _export_network(options: ExportOptions, run: Run) -> None:
    from verydeep.cli._run_options import read_samples
    from verydeep.cli._status import status
    from verydeep.config import to_dict
    from verydeep.data import Batches
    from verydeep.interop import export_onnx
    from verydeep.training import RunData

    model = run.model
    split = read_samples(run, options.data, "test", options.root)
    x, _ = next(Batches(split, min(_SAMPLES, len(split)), seed=0, shuffle=False).epoch(0))
    names, preparation = run.task.names, RunData.load(run).preparation
    metadata = {
        "verydeep.classes": json.dumps(names, ensure_ascii=False),
        "verydeep.preparation": json.dumps(preparation and to_dict(preparation), ensure_ascii=False),
    }
    with status("exporting and comparing the logits"):
        check = export_onnx(model, x, options.onnx, metadata)
    shape = ", ".join(map(str, ("batch", *model.input_shape)))
    _print_check(options.onnx, check, f"x ({shape}) -> logits (batch, {len(names)})", "PyTorch")


def _print_check(file: Path, check: OnnxCheck, signature: str, other: str) -> None:
    size = f"{check.size / 1e6:.1f} MB" if check.size >= 1e6 else f"{check.size / 1e3:.0f} kB"
    echo(f"{file}: {size}, {signature}")
    batches = ", ".join(map(str, check.batches))
    echo(
        f"checked on {check.samples} samples in batches of {batches}: "
        f"onnxruntime and {other} differ by at most {check.difference:.1e} (1e-5 allowed)"
    )
