"""Bridges to other tools, each behind an optional dependency (an extra).

`export_onnx` takes a network and writes it as an ONNX file, after checking that ONNX Runtime gives the same answers.
"""

from verydeep.interop._onnx import OnnxCheck, export_onnx

__all__ = ["OnnxCheck", "export_onnx"]
