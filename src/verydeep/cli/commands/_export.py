"""`verydeep export`: a run's network as ONNX, for programs without PyTorch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from verydeep.cli._options import DataRoot, RunFolder, Threads, option, read_options

if TYPE_CHECKING:
    from verydeep.training import Run

_SAMPLES = 100


@dataclass(frozen=True)
class ExportOptions:
    """Export a run's network to ONNX, and check that onnxruntime gives the same logits to 1e-5."""

    run: RunFolder
    onnx: Annotated[Path, option("FILE")]
    """The file to write, such as out.onnx."""
    data: Annotated[str | None, option("PATH_OR_NAME")] = None
    """Compare the logits on this data; by default, on the run's own test data."""
    root: DataRoot = None
    threads: Threads = None


OPTIONS = {"export": ExportOptions}


def main(arguments: list[str]) -> None:
    """Run the command."""
    options = read_options(ExportOptions, "export", arguments)
    from verydeep.cli._run_options import computing, open_run

    run = open_run(options.run)
    with computing(options.threads):
        _export(options, run)


def _export(options: ExportOptions, run: Run) -> None:
    from verydeep.cli._run_options import read_samples
    from verydeep.cli._status import status
    from verydeep.config import to_dict
    from verydeep.data import Batches
    from verydeep.interop import export_onnx
    from verydeep.training import RunData

    model = run.model
    split = read_samples(run, options.data, "test", options.root)
    x, _ = next(Batches(split, min(_SAMPLES, len(split)), seed=0, shuffle=False).epoch(0))
    data = RunData.load(run)
    metadata = {
        "verydeep.classes": json.dumps(data.classes, ensure_ascii=False),
        "verydeep.preparation": json.dumps(to_dict(data)["preparation"], ensure_ascii=False),
    }
    with status("exporting and comparing the logits"):
        check = export_onnx(model, x, options.onnx, metadata)
    shape = ", ".join(map(str, ("batch", *model.input_shape)))
    print(f"{options.onnx}: {check.size / 1e6:.1f} MB, x ({shape}) -> logits (batch, {len(data.classes)})")
    batches = ", ".join(map(str, check.batches))
    print(
        f"checked on {check.samples} samples in batches of {batches}: "
        f"onnxruntime and PyTorch differ by at most {check.difference:.1e} (1e-5 allowed)"
    )
