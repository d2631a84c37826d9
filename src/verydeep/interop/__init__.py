"""Bridges to other tools, each behind an optional dependency (an extra).

`export_onnx` takes a network and writes it as an ONNX file, after checking that ONNX Runtime gives the same outputs.
"""

from typing import TYPE_CHECKING

from verydeep.lazy import lazy_imports

if TYPE_CHECKING:
    from verydeep.interop._onnx import OnnxCheck, export_onnx
else:
    __getattr__, __dir__ = lazy_imports(__name__)

__all__ = ["OnnxCheck", "export_onnx"]
