"""What a kernel does, one method per operation: the interface between the language and what becomes of a kernel.

A kernel is a Python function that runs once. Each operation of the language calls one method of the current emitter:
`LLVMEmitter` emits instructions to be compiled, `NumPyEmitter` writes Python code that checks every memory access.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from verydeep.kernels.ir._kernel import Kernel

Handle = Any  # what an emitter uses for a value: an LLVM value, or the name of a Python variable


class Emitter(ABC):
    """Receives the operations of a kernel. Addresses are integers and count bytes; vectors have LANES numbers."""

    @abstractmethod
    def integer(self, value: int) -> Handle:
        """A constant integer."""

    @abstractmethod
    def integer_operation(self, operator: str, a: Handle, b: Handle) -> Handle:
        """One of `+`, `-`, `*` and `//`, which rounds towards 0."""

    @abstractmethod
    def integer_comparison(self, operator: str, a: Handle, b: Handle) -> Handle:
        """One of `<`, `<=`, `>`, `>=`, `==` and `!=`, as a condition for `when`."""

    @abstractmethod
    def number(self, value: float) -> Handle:
        """A constant float32."""

    @abstractmethod
    def add_numbers(self, a: Handle, b: Handle) -> Handle:
        """The sum of two float32, rounded once."""

    @abstractmethod
    def vector(self, value: float) -> Handle:
        """A register with one constant in all lanes."""

    @abstractmethod
    def vector_operation(self, operator: str, a: Handle, b: Handle) -> Handle:
        """One of `+`, `-`, `*` and `/`; a product and a sum may become one instruction, and -0 may be 0."""

    @abstractmethod
    def add_exactly(self, a: Handle, b: Handle) -> Handle:
        """The sum of two registers as a single instruction, never joined with a product."""

    @abstractmethod
    def multiply_add(self, a: Handle, b: Handle, c: Handle) -> Handle:
        """`a * b + c` as one instruction, if the processor has one."""

    @abstractmethod
    def round_neighbours(self, a: Handle, b: Handle) -> Handle:
        """A register of pairs: the numbers of a, then those of b, as bfloat16, two neighbours in each lane."""

    @abstractmethod
    def round_lanes(self, a: Handle, b: Handle) -> Handle:
        """A register of pairs: each lane has the numbers of this lane of a and b as bfloat16."""

    @abstractmethod
    def multiply_pairs(self, a: Handle, b: Handle, c: Handle) -> Handle:
        """In each lane, the two products of the pairs of a and b, and c, added in float32."""

    @abstractmethod
    def select(self, operator: str, a: Handle, b: Handle, then: Handle, otherwise: Handle) -> Handle:
        """`then` in lanes where the comparison of a and b holds, otherwise `otherwise`; with NaN it does not hold."""

    @abstractmethod
    def power_of_two(self, shifted: Handle) -> Handle:
        """2 to the power of the integer in the low bits of each lane."""

    @abstractmethod
    def random(self, key: Handle, position: Handle) -> Handle:
        """A random number from 0 up to 1 in each lane: a function of two integers, the key and the lane's position."""

    @abstractmethod
    def broadcast(self, number: Handle) -> Handle:
        """A register with one number in all lanes."""

    @abstractmethod
    def shuffle(self, a: Handle, b: Handle, lanes: Sequence[int]) -> Handle:
        """A register made of lanes of two registers; the lanes of the second are numbered from LANES on."""

    @abstractmethod
    def first_lane(self, vector: Handle) -> Handle:
        """The number in the first lane."""

    @abstractmethod
    def load_vector(self, address: Handle) -> Handle:
        """A register from memory."""

    @abstractmethod
    def store_vector(self, value: Handle, address: Handle) -> None:
        """A register into memory."""

    @abstractmethod
    def load_lanes(self, address: Handle, count: Handle) -> Handle:
        """The first lanes of a register from memory; the others are 0 and their memory is not accessed."""

    @abstractmethod
    def store_lanes(self, value: Handle, address: Handle, count: Handle) -> None:
        """The first lanes of a register into memory; the memory of the others is not accessed."""

    @abstractmethod
    def load_number(self, address: Handle) -> Handle:
        """One float32 from memory."""

    @abstractmethod
    def store_number(self, value: Handle, address: Handle) -> None:
        """One float32 into memory."""

    @abstractmethod
    def load_integer(self, address: Handle) -> Handle:
        """One int64 from memory."""

    @abstractmethod
    def fetch_add(self, address: Handle, increment: Handle) -> Handle:
        """The int64 at an address, which is incremented in the same atomic step."""

    @abstractmethod
    def save(self, address: Handle) -> Handle:
        """The contents of one register's worth of memory, initialised or not."""

    @abstractmethod
    def restore(self, saved: Handle, address: Handle) -> None:
        """Put back what `save` returned."""

    @abstractmethod
    def loop(self, count: Handle) -> AbstractContextManager[Handle]:
        """Repeat what is emitted inside; gives the number of the iteration."""

    @abstractmethod
    def when(self, condition: Handle) -> AbstractContextManager[None]:
        """Do what is emitted inside only if the condition holds."""

    @abstractmethod
    def variable(self, value: Handle) -> Handle:
        """A value that can be replaced."""

    @abstractmethod
    def get_variable(self, variable: Handle) -> Handle:
        """The present value of a variable."""

    @abstractmethod
    def set_variable(self, variable: Handle, value: Handle) -> None:
        """Replace the value of a variable."""

    @abstractmethod
    def call(self, kernel: "Kernel", arguments: Sequence[Handle]) -> None:
        """Call another kernel."""

    @abstractmethod
    def call_address(self, address: Handle, arguments: Sequence[Handle]) -> None:
        """Call the compiled kernel at an address."""


_current: ContextVar[Emitter] = ContextVar("emitter")


def emitter() -> Emitter:
    """The emitter of the kernel that is being traced."""
    try:
        return _current.get()
    except LookupError:
        raise RuntimeError("operations on Int, Ptr and Vec only make sense inside a kernel") from None


@contextmanager
def emitting(to: Emitter) -> Iterator[None]:
    """Send the operations inside to an emitter."""
    token = _current.set(to)
    try:
        yield
    finally:
        _current.reset(token)
