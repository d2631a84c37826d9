"""Memory for interpreted kernels: named arrays of known sizes, where every access is checked."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from verydeep.kernels.ir._processor import LANES

Array = NDArray[Any]

_GAP = 2**40  # bytes between two arrays: an address that misses its array is in no other one


class MemoryAccessError(Exception):
    """An interpreted kernel has accessed memory that it must not access."""


class _Allocation(NamedTuple):
    name: str
    address: int
    size: int  # numbers without the padding
    values: Array
    written: NDArray[np.bool_]


class Saved(NamedTuple):
    """The contents of some memory, initialised or not."""

    values: Array
    written: NDArray[np.bool_]


class Memory:
    """Arrays of float32 or int64 that interpreted kernels may read and write, and nothing else.

    Addresses are integers, as for compiled kernels. Reading what was never written, and any access outside of an array,
    raises a MemoryAccessError that names the kernel, the line of the kernel, the array and the offset.
    """

    def __init__(self) -> None:
        self._allocations: list[_Allocation] = []  # by address
        self._starts: list[int] = []
        self.functions: dict[int, Callable[..., None]] = {}  # what `call_address` calls

    def array(self, name: str, values: Array, padding: int = 0) -> int:
        """Add an array with these values and return its address.

        Args:
            name: The name in error messages, and for `read`.
            values: float32 or int64; the kernel works on a copy.
            padding: Numbers after the end that the kernel's documentation allows it to read, and to write if it
                restores them. They are NaN, so that a result that depends on them is seen to be wrong.
        """
        values = np.ascontiguousarray(values).reshape(-1)
        padded = np.concatenate([values, np.full(padding, np.nan, values.dtype)]) if padding else values.copy()
        return self._add(name, padded, len(values), np.ones(len(padded), bool))

    def empty(self, name: str, size: int, padding: int = 0) -> int:
        """Add an uninitialised array of float32 and return its address; the padding is as in `array`."""
        written = np.arange(size + padding) >= size
        return self._add(name, np.full(size + padding, np.nan, np.float32), size, written)

    def adopt(self, name: str, values: Array, address: int) -> None:
        """Add an array in its own place: kernels work on the array itself, which counts as initialised."""
        self._add(name, values, len(values), np.ones(len(values), bool), address)

    def read(self, name: str) -> Array:
        """A copy of an array without its padding; it must have been written completely."""
        one = self._named(name)
        self._check_written(one, slice(0, one.size), "the caller")
        return one.values[: one.size].copy()

    def padding(self, name: str) -> Array:
        """A copy of the padding of an array."""
        one = self._named(name)
        return one.values[one.size :].copy()

    def load(self, address: int, count: int, where: str) -> Array:
        """Numbers from memory."""
        one, part = self._find(address, count, np.float32, "reads", where)
        self._check_written(one, part, where)
        return one.values[part].copy()

    def store(self, address: int, values: Array, where: str) -> None:
        """Numbers into memory."""
        one, part = self._find(address, len(values), np.float32, "writes", where)
        one.values[part], one.written[part] = values, True

    def load_integer(self, address: int, where: str) -> int:
        """One int64 from memory."""
        one, part = self._find(address, 1, np.int64, "reads", where)
        self._check_written(one, part, where)
        return int(one.values[part][0])

    def fetch_add(self, address: int, increment: int, where: str) -> int:
        """One int64 from memory, which is incremented."""
        value = self.load_integer(address, where)
        one, part = self._find(address, 1, np.int64, "writes", where)
        one.values[part] = value + increment
        return value

    def save(self, address: int, where: str) -> Saved:
        """The contents of a register's worth of memory."""
        one, part = self._find(address, LANES, np.float32, "saves", where)
        return Saved(one.values[part].copy(), one.written[part].copy())

    def restore(self, saved: Saved, address: int, where: str) -> None:
        """Put back what `save` returned."""
        one, part = self._find(address, LANES, np.float32, "restores", where)
        one.values[part], one.written[part] = saved

    def _add(self, name: str, values: Array, size: int, written: NDArray[np.bool_], address: int | None = None) -> int:
        if values.dtype not in (np.float32, np.int64):
            raise TypeError(f"{name} is {values.dtype} instead of float32 or int64")
        if address is None:
            address = (self._starts[-1] if self._starts else 0) + _GAP
        at = bisect_right(self._starts, address)
        self._starts.insert(at, address)
        self._allocations.insert(at, _Allocation(name, address, size, values, written))
        return address

    def _named(self, name: str) -> _Allocation:
        return next(one for one in self._allocations if one.name == name)

    def _find(self, address: int, count: int, dtype: type, verb: str, where: str) -> tuple[_Allocation, slice]:
        """The allocation that an address belongs to, and the part of it that an access needs."""
        at = bisect_right(self._starts, address)
        one = self._allocations[max(0, at - 1)]
        if at < len(self._starts) and self._starts[at] - address < address - one.address - one.values.nbytes:
            one = self._allocations[at]  # the access is just before this array, not far behind the other one
        offset, rest = divmod(address - one.address, one.values.itemsize)
        if rest or one.values.dtype != dtype:
            raise MemoryAccessError(f"{where} {verb} {dtype.__name__} at byte {address - one.address} of {one.name}")
        if offset < 0 or offset + count > len(one.values):
            numbers = f"number {offset}" if count == 1 else f"numbers {offset} to {offset + count - 1}"
            raise MemoryAccessError(f"{where} {verb} {numbers} of {one.name}, which has {_size(one)}")
        return one, slice(offset, offset + count)

    def _check_written(self, one: _Allocation, part: slice, where: str) -> None:
        if not one.written[part].all():
            first = part.start + int(np.argmin(one.written[part]))
            raise MemoryAccessError(f"{where} reads number {first} of {one.name}, which was never written")


def _size(one: _Allocation) -> str:
    padding = len(one.values) - one.size
    return f"{one.size}" + (f" and {padding} of padding" if padding else "")
