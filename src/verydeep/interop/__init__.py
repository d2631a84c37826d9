"""Bridges to other tools, each behind an extra of its own."""

from verydeep.interop._onnx import OnnxCheck, export_onnx

__all__ = ["OnnxCheck", "export_onnx"]
