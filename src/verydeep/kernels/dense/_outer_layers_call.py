"""The kernel calls of the layers around a stack: the input layer and the classifier.

They are part of the stack's own calls, because torch needs as long to call two layers as kernels need for several.
"""

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from verydeep.kernels.dense._stack_plan import Chunk
from verydeep.kernels.runtime._threads import Call

if TYPE_CHECKING:
    from verydeep.kernels.runtime._compile import Function

_NUMBER = 4  # bytes
Parameters = tuple[Tensor, Tensor]  # weight and bias


class _OuterLayersKernels(NamedTuple):
    input_layer: "Function"
    d_input_layer: "Function"
    classifier: "Function"
    d_classifier: "Function"


@cache
def _kernels(activation: str) -> _OuterLayersKernels:
    from verydeep.kernels.dense._classifier_loops import classifier, d_classifier
    from verydeep.kernels.dense._input_layer_loops import make_d_input_layer, make_input_layer
    from verydeep.kernels.runtime._compile import compile_kernels

    kernels = [make_input_layer(activation), make_d_input_layer(activation), classifier, d_classifier]
    return _OuterLayersKernels(*compile_kernels(f"outer-layers-{activation}", kernels))


class OuterLayersCall:
    """The input layer before a stack and the classifier after it, in one call of the operator."""

    def __init__(self, input_layer: Parameters, classifier: Parameters, activation: str) -> None:
        self.input_layer, self.classifier = ((w.contiguous(), b.contiguous()) for w, b in (input_layer, classifier))
        self.width, self.inputs = input_layer[0].shape
        self.classes = classifier[0].shape[0]
        self.kernels = _kernels(activation)

    def embed(self, x: Tensor, matrix: int, chunk: Chunk, scratch: int) -> Call:
        """Compute the input of the stack from samples."""
        addresses = *_addresses(self.input_layer), _rows(x, chunk), matrix, scratch
        return self.kernels.input_layer, (*addresses, self.inputs, self.width, chunk.vectors, chunk.samples)

    def classify(self, matrix: int, y: Tensor, chunk: Chunk, scratch: int) -> Call:
        """Compute the logits from the output of the stack."""
        addresses = *_addresses(self.classifier), matrix, _rows(y, chunk), scratch
        return self.kernels.classifier, (*addresses, self.width, self.classes, chunk.vectors, chunk.samples)

    def d_classify(
        self, matrix: int, dy: Tensor, d: int, scratch: int, chunk: Chunk, sums: Parameters, add: bool
    ) -> Call:
        """Compute the gradients of the stack's output (d) and of the classifier's weight and bias."""
        addresses = self.classifier[0].data_ptr(), *_addresses(sums), matrix, _rows(dy, chunk), d, scratch
        return self.kernels.d_classifier, (*addresses, self.width, self.classes, chunk.vectors, chunk.samples, int(add))

    def d_embed(self, x: Tensor, matrix: int, d: int, chunk: Chunk, sums: Parameters, add: bool) -> Call:
        """Compute the gradients of the input layer's weight and bias from that of the stack's input."""
        addresses = _rows(x, chunk), matrix, d, *_addresses(sums)
        return self.kernels.d_input_layer, (*addresses, self.inputs, self.width, chunk.vectors, chunk.samples, int(add))

    def scratch_size(self, padded_samples: int) -> int:
        """The scratch size of a forward pass, in numbers."""
        from verydeep.kernels.dense._input_layer_loops import BLOCK

        return max(BLOCK, self.classes) * padded_samples

    def d_scratch_size(self, padded_samples: int, lanes: int) -> int:
        """The scratch size of the classifier's backward pass, in numbers."""
        wide = -(-self.width // lanes) * lanes
        return self.classes * padded_samples + padded_samples * wide


def _addresses(parameters: Parameters) -> tuple[int, int]:
    return parameters[0].data_ptr(), parameters[1].data_ptr()


def _rows(samples: Tensor, chunk: Chunk) -> int:
    """The address of the first sample of a chunk."""
    return samples.data_ptr() + chunk.first * samples.shape[1] * _NUMBER
