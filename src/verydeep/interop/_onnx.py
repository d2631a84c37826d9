"""Export to ONNX, for programs without PyTorch; a file is written only if it gives the same outputs."""

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from verydeep.errors import UserError, install_command
from verydeep.files import write_atomic
from verydeep.models import Network

if TYPE_CHECKING:
    from verydeep.data import Rows
    from verydeep.training import Run

TOLERANCE = 1e-5
_NEEDED = ("onnx", "onnxruntime", "onnxscript")


@dataclass(frozen=True)
class OnnxCheck:
    """How an exported network compares with the original.

    Attributes:
        samples: The number of samples compared.
        batches: The batch sizes they were compared in.
        difference: Largest difference of any logit, divided by the largest logit if that is above 1; of a predictor, of
            any probability, or of any value in standard deviations of its target.
        size: Size of the file in bytes.

    Example:
        >>> from verydeep.interop import OnnxCheck
        >>> OnnxCheck(samples=100, batches=(1, 7, 100), difference=2e-7, size=40_000).difference < 1e-5
        True
    """

    samples: int
    batches: tuple[int, ...]
    difference: float
    size: int


def export_onnx(model: Network, x: Tensor, path: str | Path, metadata: Mapping[str, str] | None = None) -> OnnxCheck:
    """Write a network as an ONNX file, if ONNX Runtime gives the same outputs as PyTorch.

    The file has the input `x` and the output `logits`, for batches of any size. Needs the extra `verydeep[onnx]`.

    Args:
        model: The network; it is moved to the CPU and stays in evaluation mode.
        x: Samples to compare on, preprocessed as the network expects.
        path: The file; an existing file is kept if the export or the comparison fails.
        metadata: Text to store in the file.

    Returns:
        How the exported network compares with the original.

    Raises:
        UserError: A package is missing, or the outputs differ by more than 1e-5.

    Example:
        >>> import torch
        >>> from verydeep.interop import export_onnx
        >>> from verydeep.models import create_model
        >>> model = create_model("highway-mlp", depth=5, width=8)
        >>> check = export_onnx(model, torch.rand(10, 1, 28, 28), "model.onnx")
        >>> check.samples, check.batches
        (10, (1, 7, 10))
    """
    require_onnx()
    model = model.cpu().eval()
    data = onnx_bytes(model, metadata or {})
    sizes = tuple(sorted({1, min(len(x), 7), len(x)}))
    difference = max(_difference(model, data, x, size) for size in sizes)
    if not difference <= TOLERANCE:
        raise UserError(
            f"{path} was not written: onnxruntime differs from PyTorch by {difference:.1e}, more than {TOLERANCE}"
        )
    write_atomic(Path(path), data)
    return OnnxCheck(len(x), sizes, difference, len(data))


def export_predictor(run: "Run", rows: "Rows", path: str | Path) -> OnnxCheck:
    """Write a run as an ONNX file that takes raw samples and answers like `run.predict`.

    A table has one input per column, `(batch,)`: float64 for numbers, with NaN where a value is missing, and text for
    categories, with an empty string where it is missing; a percentage is the number before the %, a date the number of
    days since 1970-01-01. Images are the input `pixels`, uint8; other arrays the input `x`. Classification has the
    outputs `label` (text) and `probabilities`, several labels `labels` (0 or 1) and `probabilities`, and regression
    `values`, float64, in their original units. Needs the extra `verydeep[onnx]`.

    Args:
        run: The run.
        rows: Samples to compare on, as `Run.predict` takes them; the first 100 are used.
        path: The file; an existing file is kept if the export or the comparison fails.

    Returns:
        How the exported predictions compare with those of the run.

    Raises:
        UserError: A package is missing, or the predictions differ by more than 1e-5.

    Example:
        >>> import numpy as np
        >>> from verydeep.data import DataConfig
        >>> from verydeep.interop import export_predictor
        >>> from verydeep.training import ModelConfig, TrainConfig, train
        >>> config = TrainConfig(DataConfig("digits"), ModelConfig(depth=3, width=8), epochs=1)
        >>> run = train(config, "runs/digits-onnx", progress=False)
        >>> export_predictor(run, np.zeros((10, 8, 8), dtype=np.uint8), "digits.onnx").samples
        10
    """
    require_onnx()
    from verydeep.interop._onnx_predictor import write_predictor

    return write_predictor(run, rows, Path(path))


def require_onnx() -> None:
    """Raise if a package is missing."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise UserError(f"ONNX export needs {', '.join(missing)}; install with: {install_command('onnx')}")


def onnx_bytes(model: Network, metadata: Mapping[str, str]) -> bytes:
    """A network as an ONNX file with the input `x` and the output `logits`."""
    example = torch.zeros(2, *model.input_shape)
    batch: Any = ({0: torch.export.Dim("batch")},)
    with _without_warnings(), TemporaryDirectory() as folder:
        program = torch.onnx.export(
            model,
            (example,),
            dynamo=True,
            dynamic_shapes=batch,
            input_names=["x"],
            output_names=["logits"],
            verbose=False,
        )
        assert program is not None
        program.model.metadata_props.update(metadata)
        file = Path(folder) / "model.onnx"
        program.save(file)
        return file.read_bytes()


def _difference(model: Network, data: bytes, x: Tensor, size: int) -> float:
    """The largest relative difference over all samples, in batches of `size`."""
    import onnxruntime  # type: ignore[import-untyped]

    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    with torch.inference_mode():
        expected = torch.cat([model(batch) for batch in x.split(size)])
    answers = [torch.from_numpy(session.run(["logits"], {"x": batch.numpy()})[0]) for batch in x.split(size)]
    return float((torch.cat(answers) - expected).abs().max() / expected.abs().max().clamp(min=1))


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Silence the exporter's remarks about missing torchvision and deprecations, which are of no use here."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
