"""The competitor in ONNX Runtime, for inference: our network, exported as `verydeep export` does."""

import tempfile
from importlib.util import find_spec
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from verydeep.bench._competitors import SingleSteps
from verydeep.errors import UserError
from verydeep.interop import export_onnx
from verydeep.models import Network


class OnnxRuntimeCompetitor(SingleSteps):
    """The same network with equal weights, in ONNX Runtime with as many threads as torch uses.

    Raises:
        UserError: ONNX Runtime is not installed.
    """

    def __init__(self, model: Network, x: Tensor) -> None:
        if find_spec("onnxruntime") is None:
            raise UserError("onnxruntime is not installed")
        import onnxruntime  # type: ignore[import-untyped]

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = torch.get_num_threads(), 1
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "network.onnx"
            export_onnx(model, x, path)
            self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.compile_seconds = 0.0

    def infer(self, x: Tensor) -> None:
        self._session.run(None, {"x": x.numpy()})

    def loss(self, x: Tensor, y: Tensor) -> float:
        (logits,) = self._session.run(None, {"x": x.numpy()})
        return float(F.cross_entropy(torch.from_numpy(logits), y))
