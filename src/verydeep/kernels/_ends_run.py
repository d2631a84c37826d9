"""Running the layers around a stack in the stack's own calls: torch takes as long as several layers to call them."""

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from verydeep.kernels._pool import Call
from verydeep.kernels._stack_plan import Chunk

if TYPE_CHECKING:
    from verydeep.kernels._compile import Function

_NUMBER = 4  # bytes
Parameters = tuple[Tensor, Tensor]  # weight and bias


class _Kernels(NamedTuple):
    enter: "Function"
    leave: "Function"
    classify: "Function"
    d_classify: "Function"


@cache
def _kernels(activation: str) -> _Kernels:
    from verydeep.kernels._compile import compile_kernels
    from verydeep.kernels._ends import make_classify, make_d_classify, make_enter, make_leave

    kernels = [make_enter(activation), make_leave(activation), make_classify(), make_d_classify()]
    return _Kernels(*compile_kernels(f"ends-{activation}", kernels))


class Ends:
    """The plain layer before a stack and the classifier after it, in one call of the operator."""

    def __init__(self, first: Parameters, last: Parameters, activation: str) -> None:
        self.first, self.last = ((w.contiguous(), b.contiguous()) for w, b in (first, last))
        self.width, self.inputs = first[0].shape
        self.classes = last[0].shape[0]
        self.kernels = _kernels(activation)

    def enter(self, x: Tensor, matrix: int, chunk: Chunk, room: int) -> Call:
        """Fill the stack's first matrix from samples."""
        addresses = *_addresses(self.first), _rows(x, chunk), matrix, room
        return self.kernels.enter, (*addresses, self.inputs, self.width, chunk.vectors, chunk.samples)

    def classify(self, matrix: int, y: Tensor, chunk: Chunk, room: int) -> Call:
        """The logits, from the stack's last matrix."""
        addresses = *_addresses(self.last), matrix, _rows(y, chunk), room
        return self.kernels.classify, (*addresses, self.width, self.classes, chunk.vectors, chunk.samples)

    def d_classify(self, matrix: int, dy: Tensor, d: int, room: int, chunk: Chunk, sums: Parameters, add: bool) -> Call:
        """The derivatives by the stack's last matrix (d), and by the classifier's weight and bias."""
        addresses = self.last[0].data_ptr(), *_addresses(sums), matrix, _rows(dy, chunk), d, room
        return self.kernels.d_classify, (*addresses, self.width, self.classes, chunk.vectors, chunk.samples, int(add))

    def leave(self, x: Tensor, matrix: int, d: int, chunk: Chunk, sums: Parameters, add: bool) -> Call:
        """The derivatives by the first layer's weight and bias, from the one by the stack's first matrix."""
        addresses = _rows(x, chunk), matrix, d, *_addresses(sums)
        return self.kernels.leave, (*addresses, self.inputs, self.width, chunk.vectors, chunk.samples, int(add))

    def room(self, lead: int) -> int:
        """How many numbers a forward pass works in."""
        from verydeep.kernels._ends import BLOCK

        return max(BLOCK, self.classes) * lead

    def d_room(self, lead: int, lanes: int) -> int:
        """How many numbers the classifier's backward pass works in."""
        wide = -(-self.width // lanes) * lanes
        return self.classes * lead + lead * wide


def _addresses(parameters: Parameters) -> tuple[int, int]:
    return parameters[0].data_ptr(), parameters[1].data_ptr()


def _rows(samples: Tensor, chunk: Chunk) -> int:
    """Where a chunk's samples begin."""
    return samples.data_ptr() + chunk.first * samples.shape[1] * _NUMBER


def inputs_suit(inputs: int) -> bool:
    """Whether there are kernels for a first layer with so many inputs."""
    from verydeep.kernels._ir import LANES

    return inputs % LANES == 0
