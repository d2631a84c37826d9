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


class _EndsKernels(NamedTuple):
    enter: "Function"
    leave: "Function"
    classify: "Function"
    d_classify: "Function"


@cache
def _kernels(activation: str) -> _EndsKernels:
    from verydeep.kernels.dense._ends_loops import make_classify, make_d_classify, make_enter, make_leave
    from verydeep.kernels.runtime._compile import compile_kernels

    kernels = [make_enter(activation), make_leave(activation), make_classify(), make_d_classify()]
    return _EndsKernels(*compile_kernels(f"ends-{activation}", kernels))


class EndsCall:
    """The input layer before a stack and the classifier after it, in one call of the operator."""

    def __init__(self, first: Parameters, last: Parameters, activation: str) -> None:
        self.first, self.last = ((w.contiguous(), b.contiguous()) for w, b in (first, last))
        self.width, self.inputs = first[0].shape
        self.classes = last[0].shape[0]
        self.kernels = _kernels(activation)

    def enter(self, x: Tensor, matrix: int, chunk: Chunk, room: int) -> Call:
        """Compute the input of the stack from samples."""
        addresses = *_addresses(self.first), _rows(x, chunk), matrix, room
        return self.kernels.enter, (*addresses, self.inputs, self.width, chunk.vectors, chunk.samples)

    def classify(self, matrix: int, y: Tensor, chunk: Chunk, room: int) -> Call:
        """Compute the logits from the output of the stack."""
        addresses = *_addresses(self.last), matrix, _rows(y, chunk), room
        return self.kernels.classify, (*addresses, self.width, self.classes, chunk.vectors, chunk.samples)

    def d_classify(self, matrix: int, dy: Tensor, d: int, room: int, chunk: Chunk, sums: Parameters, add: bool) -> Call:
        """Compute the gradients of the stack's output (d) and of the classifier's weight and bias."""
        addresses = self.last[0].data_ptr(), *_addresses(sums), matrix, _rows(dy, chunk), d, room
        return self.kernels.d_classify, (*addresses, self.width, self.classes, chunk.vectors, chunk.samples, int(add))

    def leave(self, x: Tensor, matrix: int, d: int, chunk: Chunk, sums: Parameters, add: bool) -> Call:
        """Compute the gradients of the input layer's weight and bias from that of the stack's input."""
        addresses = _rows(x, chunk), matrix, d, *_addresses(sums)
        return self.kernels.leave, (*addresses, self.inputs, self.width, chunk.vectors, chunk.samples, int(add))

    def room(self, lead: int) -> int:
        """The scratch size of a forward pass, in numbers."""
        from verydeep.kernels.dense._ends_loops import BLOCK

        return max(BLOCK, self.classes) * lead

    def d_room(self, lead: int, lanes: int) -> int:
        """The scratch size of the classifier's backward pass, in numbers."""
        wide = -(-self.width // lanes) * lanes
        return self.classes * lead + lead * wide


def _addresses(parameters: Parameters) -> tuple[int, int]:
    return parameters[0].data_ptr(), parameters[1].data_ptr()


def _rows(samples: Tensor, chunk: Chunk) -> int:
    """The address of the first sample of a chunk."""
    return samples.data_ptr() + chunk.first * samples.shape[1] * _NUMBER
