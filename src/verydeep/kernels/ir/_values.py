"""Sizes, addresses and matrices: `Int`, `Ptr`, `IntPtr` and `Matrix`."""

from __future__ import annotations

from verydeep.kernels.ir._emitter import Handle, emitter
from verydeep.kernels.ir._processor import INTEGER, NUMBER


class Condition:
    """The result of comparing two sizes, for `when`."""

    def __init__(self, handle: Handle) -> None:
        self.handle = handle

    def __bool__(self) -> bool:
        raise TypeError("known only when the kernel runs; use `with when(condition):` instead of `if`")


class Int:
    """A size or a number of something, known when the kernel runs; combines with Python's integers.

    `//` rounds towards 0, as processors do.
    """

    def __init__(self, handle: Handle) -> None:
        self.handle = handle

    def __add__(self, other: Int | int) -> Int:
        return Int(emitter().integer_operation("+", self.handle, int_handle(other)))

    def __radd__(self, other: int) -> Int:
        return Int(emitter().integer_operation("+", int_handle(other), self.handle))

    def __sub__(self, other: Int | int) -> Int:
        return Int(emitter().integer_operation("-", self.handle, int_handle(other)))

    def __rsub__(self, other: int) -> Int:
        return Int(emitter().integer_operation("-", int_handle(other), self.handle))

    def __mul__(self, other: Int | int) -> Int:
        return Int(emitter().integer_operation("*", self.handle, int_handle(other)))

    def __rmul__(self, other: int) -> Int:
        return Int(emitter().integer_operation("*", int_handle(other), self.handle))

    def __floordiv__(self, other: Int | int) -> Int:
        return Int(emitter().integer_operation("//", self.handle, int_handle(other)))

    def __lt__(self, other: Int | int) -> Condition:
        return Condition(emitter().integer_comparison("<", self.handle, int_handle(other)))

    def __le__(self, other: Int | int) -> Condition:
        return Condition(emitter().integer_comparison("<=", self.handle, int_handle(other)))

    def __gt__(self, other: Int | int) -> Condition:
        return Condition(emitter().integer_comparison(">", self.handle, int_handle(other)))

    def __ge__(self, other: Int | int) -> Condition:
        return Condition(emitter().integer_comparison(">=", self.handle, int_handle(other)))

    def __eq__(self, other: object) -> Condition:  # type: ignore[override]
        return Condition(emitter().integer_comparison("==", self.handle, int_handle(other)))

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]
        return Condition(emitter().integer_comparison("!=", self.handle, int_handle(other)))

    def __bool__(self) -> bool:
        raise TypeError("known only when the kernel runs; use `with when(n != 0):` instead of `if`")

    __hash__ = None  # type: ignore[assignment]


class Ptr:
    """The address of float32 numbers; `ptr + n` is n numbers further."""

    def __init__(self, handle: Handle) -> None:
        self.handle = handle

    def __add__(self, numbers: Int | int) -> Ptr:
        return Ptr(_advance(self.handle, numbers, NUMBER))


class IntPtr:
    """The address of int64 integers; `ptr + n` is n integers further, and `ptr[n]` is the integer there."""

    def __init__(self, handle: Handle) -> None:
        self.handle = handle

    def __add__(self, integers: Int | int) -> IntPtr:
        return IntPtr(_advance(self.handle, integers, INTEGER))

    def __getitem__(self, n: Int | int) -> Int:
        return Int(emitter().load_integer(_advance(self.handle, n, INTEGER)))

    def fetch_add(self, increment: Int | int) -> Int:
        """The first integer, which is incremented in the same atomic step."""
        return Int(emitter().fetch_add(self.handle, int_handle(increment)))


class Matrix:
    """Rows of float32 numbers at equal distances.

    Args:
        ptr: The address of the first row.
        row_stride: The distance of its rows, in numbers. A kernel's caller passes it in bytes, as NumPy counts.
    """

    def __init__(self, ptr: Ptr, row_stride: Int | int) -> None:
        self.ptr, self.stride = ptr, int_handle(row_stride * NUMBER)  # in bytes

    @classmethod
    def from_handles(cls, ptr: Handle, stride: Handle) -> Matrix:
        """A matrix from an address and a row stride in bytes."""
        matrix = cls.__new__(cls)
        matrix.ptr, matrix.stride = Ptr(ptr), stride
        return matrix

    @property
    def row_stride(self) -> Int:
        """The distance of two rows, in numbers."""
        return Int(self.stride) // NUMBER

    def row(self, i: Int | int) -> Ptr:
        """The address of row i."""
        return Ptr((Int(self.ptr.handle) + i * Int(self.stride)).handle)

    def at(self, ptr: Ptr) -> Matrix:
        """A matrix at another address, with the same row stride."""
        return Matrix.from_handles(ptr.handle, self.stride)

    def submatrix(self, row: Int | int = 0, column: Int | int = 0) -> Matrix:
        """The rest of the matrix from this row and column on."""
        ptr = self.ptr if isinstance(row, int) and row == 0 else self.row(row)
        if not (isinstance(column, int) and column == 0):
            ptr = ptr + column
        return self.at(ptr)


def int_handle(value: object) -> Handle:
    """The handle of an Int or of a Python integer."""
    if isinstance(value, Int):
        return value.handle
    if isinstance(value, int):
        return emitter().integer(value)
    raise TypeError(f"expected an Int or an int, not {type(value).__name__}")


def _advance(address: Handle, count: Int | int, size: int) -> Handle:
    """The address `count` elements of a size further."""
    return (Int(address) + count * size).handle
