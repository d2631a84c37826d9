"""Bridges to other tools, each behind an optional dependency (an extra).

`export_predictor` writes a run as an ONNX file that takes raw samples and gives answers, `export_onnx` a network alone.
Both write the file only if ONNX Runtime gives the same outputs.
"""

from typing import TYPE_CHECKING

from verydeep.lazy import lazy_imports

if TYPE_CHECKING:
    from verydeep.interop._onnx import OnnxCheck, export_onnx, export_predictor, require_onnx as require_onnx
else:
    __getattr__, __dir__ = lazy_imports(__name__)

__all__ = ["OnnxCheck", "export_onnx", "export_predictor"]
