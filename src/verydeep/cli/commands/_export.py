"""`verydeep export`: a run's network as ONNX, for programs without PyTorch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from verydeep.cli._options import DataRoot, RunFolder, option, read_options

_SAMPLES = 100


@dataclass(frozen=True)
class ExportOptions:
    """Export a run's network to ONNX, if onnxruntime gives the same logits to 1e-5 on samples of its data."""

    run: RunFolder
    onnx: Annotated[Path, tyro.conf.arg(metavar="FILE")]
    """The file to write, such as out.onnx."""
    data: Annotated[str | None, option("PATH_OR_NAME")] = None
    """Compare the logits on this data; by default, on the run's own test data."""
    root: DataRoot = None


def main(arguments: list[str]) -> None:
    """Run the command."""
    options = read_options(ExportOptions, "export", arguments)
    from verydeep.config import to_dict
    from verydeep.data import Batches
    from verydeep.interop import export_onnx
    from verydeep.training import Run, RunData, load_data

    run = Run.load(options.run)
    model = run.model
    split = load_data(run, options.data, "test", options.root)
    x, _ = next(Batches(split, min(_SAMPLES, len(split)), seed=0, shuffle=False).epoch(0))
    data = RunData.load(run)
    metadata = {
        "verydeep.classes": json.dumps(data.classes, ensure_ascii=False),
        "verydeep.preparation": json.dumps(to_dict(data)["preparation"], ensure_ascii=False),
    }
    check = export_onnx(model, x, options.onnx, metadata)
    shape = ", ".join(map(str, ("batch", *model.input_shape)))
    print(f"{options.onnx}: {check.size / 1e6:.1f} MB, x ({shape}) -> logits (batch, {len(data.classes)})")
    batches = ", ".join(map(str, check.batches))
    print(
        f"checked on {check.samples} samples in batches of {batches}: "
        f"onnxruntime and PyTorch differ by at most {check.difference:.1e} (1e-5 allowed)"
    )
