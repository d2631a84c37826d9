"""Kernels run by NumPy, with every memory access checked.

A kernel becomes a Python function: its loops are `for` loops, its registers small arrays. It is thousands of times
slower than the compiled kernel, and needs no processor of a certain kind.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from verydeep.kernels.ir._emitter import Emitter
from verydeep.kernels.ir._memory import Array, Memory
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._random import random_lanes

if TYPE_CHECKING:
    from verydeep.kernels.ir._kernel import Kernel

Name = str  # of a variable of the Python function
_LANGUAGE = {str(Path(__file__).with_name(f"_{name}.py")) for name in ("interpreter", "values", "vector", "control")}
_LANGUAGE.add(contextlib.__file__)


def interpret(kernel: Kernel, memory: Memory, *arguments: int) -> None:
    """Run a kernel on a memory; the arguments are the integers that the compiled kernel takes."""
    if len(arguments) != kernel.integers:
        raise TypeError(f"{kernel.name} takes {kernel.integers} integers, not {len(arguments)}")
    with np.errstate(all="ignore"):
        _python_function(kernel)(memory, *arguments)


def python_source(kernel: Kernel) -> str:
    """The Python function that the interpreter runs."""
    return NumPyEmitter(kernel).source


@cache
def _python_function(kernel: Kernel) -> Callable[..., None]:
    emitted = NumPyEmitter(kernel)
    names: dict[str, Any] = {
        "np": np,
        "inf": np.inf,
        "nan": np.nan,
        "multiply_add": _multiply_add,
        "bfloat16": _bfloat16,
        "multiply_pairs": _multiply_pairs,
        "power_of_two": _power_of_two,
        "random": random_lanes,
        "divide": _divide,
        "padded": _padded,
    }
    names |= {other.name: _python_function(other) for other in emitted.called.values()}
    exec(compile(emitted.source, f"<{kernel.name}>", "exec"), names)
    return names[kernel.name]  # type: ignore[no-any-return]


class NumPyEmitter(Emitter):
    """Writes the Python function of one kernel: every operation is a line."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.called: dict[str, Kernel] = {}
        parameters = [f"argument{n}" for n in range(kernel.integers)]
        self._lines = [f"def {kernel.name}({', '.join(['memory', *parameters])}):"]
        self._indent = 1
        self._count = 0
        kernel.trace(self, parameters)
        self._line("return")

    @property
    def source(self) -> str:
        """The Python code."""
        return "\n".join(self._lines) + "\n"

    def _line(self, text: str) -> None:
        self._lines.append("    " * self._indent + text)

    def _new(self, expression: str) -> Name:
        self._count += 1
        self._line(f"v{self._count} = {expression}")
        return f"v{self._count}"

    def _where(self) -> str:
        """The kernel and the line of it that is being traced, as a Python literal."""
        frame = sys._getframe(2)
        while frame.f_back is not None and frame.f_code.co_filename in _LANGUAGE:
            frame = frame.f_back
        return repr(f"{self.kernel.name} ({Path(frame.f_code.co_filename).name}:{frame.f_lineno})")

    def integer(self, value: int) -> Name:
        return repr(value)

    def integer_operation(self, operator: str, a: Name, b: Name) -> Name:
        return self._new(f"divide({a}, {b})" if operator == "//" else f"{a} {operator} {b}")

    def integer_comparison(self, operator: str, a: Name, b: Name) -> Name:
        return self._new(f"{a} {operator} {b}")

    def number(self, value: float) -> Name:
        return f"np.float32({value!r})"

    def add_numbers(self, a: Name, b: Name) -> Name:
        return self._new(f"{a} + {b}")

    def vector(self, value: float) -> Name:
        return f"np.full({LANES}, {value!r}, np.float32)"

    def vector_operation(self, operator: str, a: Name, b: Name) -> Name:
        return self._new(f"{a} {operator} {b}")

    def add_exactly(self, a: Name, b: Name) -> Name:
        return self._new(f"{a} + {b}")

    def multiply_add(self, a: Name, b: Name, c: Name) -> Name:
        return self._new(f"multiply_add({a}, {b}, {c})")

    def round_neighbours(self, a: Name, b: Name) -> Name:
        return self._new(f"bfloat16(np.concatenate([{a}, {b}])).view(np.float32)")

    def round_lanes(self, a: Name, b: Name) -> Name:
        return self._new(f"bfloat16(np.stack([{a}, {b}], 1).reshape(-1)).view(np.float32)")

    def multiply_pairs(self, a: Name, b: Name, c: Name) -> Name:
        return self._new(f"multiply_pairs({a}, {b}, {c})")

    def select(self, operator: str, a: Name, b: Name, then: Name, otherwise: Name) -> Name:
        return self._new(f"np.where({a} {operator} {b}, {then}, {otherwise})")

    def power_of_two(self, shifted: Name) -> Name:
        return self._new(f"power_of_two({shifted})")

    def random(self, key: Name, position: Name) -> Name:
        return self._new(f"random({key}, {position})")

    def broadcast(self, number: Name) -> Name:
        return self._new(f"np.full({LANES}, {number}, np.float32)")

    def shuffle(self, a: Name, b: Name, lanes: Sequence[int]) -> Name:
        return self._new(f"np.concatenate([{a}, {b}])[{list(lanes)}]")

    def first_lane(self, vector: Name) -> Name:
        return self._new(f"{vector}[0]")

    def load_vector(self, address: Name) -> Name:
        return self._new(f"memory.load({address}, {LANES}, {self._where()})")

    def store_vector(self, value: Name, address: Name) -> None:
        self._line(f"memory.store({address}, {value}, {self._where()})")

    def load_lanes(self, address: Name, count: Name) -> Name:
        return self._new(f"padded(memory.load({address}, {count}, {self._where()}))")

    def store_lanes(self, value: Name, address: Name, count: Name) -> None:
        self._line(f"memory.store({address}, {value}[:{count}], {self._where()})")

    def load_number(self, address: Name) -> Name:
        return self._new(f"memory.load({address}, 1, {self._where()})[0]")

    def store_number(self, value: Name, address: Name) -> None:
        self._line(f"memory.store({address}, [{value}], {self._where()})")

    def load_integer(self, address: Name) -> Name:
        return self._new(f"memory.load_integer({address}, {self._where()})")

    def fetch_add(self, address: Name, increment: Name) -> Name:
        return self._new(f"memory.fetch_add({address}, {increment}, {self._where()})")

    def save(self, address: Name) -> Name:
        return self._new(f"memory.save({address}, {self._where()})")

    def restore(self, saved: Name, address: Name) -> None:
        self._line(f"memory.restore({saved}, {address}, {self._where()})")

    @contextmanager
    def loop(self, count: Name) -> Iterator[Name]:
        self._count += 1
        i = f"i{self._count}"
        with self._block(f"for {i} in range({count}):"):
            yield i

    @contextmanager
    def when(self, condition: Name) -> Iterator[None]:
        with self._block(f"if {condition}:"):
            yield

    @contextmanager
    def _block(self, header: str) -> Iterator[None]:
        self._line(header)
        self._indent += 1
        yield
        self._line("pass")
        self._indent -= 1

    def variable(self, value: Name) -> Name:
        return self._new(value)

    def get_variable(self, variable: Name) -> Name:
        return self._new(variable)

    def set_variable(self, variable: Name, value: Name) -> None:
        self._line(f"{variable} = {value}")

    def call(self, kernel: Kernel, arguments: Sequence[Name]) -> None:
        if self.called.setdefault(kernel.name, kernel) is not kernel:
            raise ValueError(f"{self.kernel.name} calls two different kernels called {kernel.name}")
        self._line(f"{kernel.name}({', '.join(['memory', *arguments])})")

    def call_address(self, address: Name, arguments: Sequence[Name]) -> None:
        self._line(f"memory.functions[{address}]({', '.join(arguments)})")


def _multiply_add(a: Array, b: Array, c: Array) -> Array:
    """`a * b + c` with one rounding."""
    return (a.astype(np.float64) * b + c).astype(np.float32)


def _bfloat16(values: Array) -> Array:
    """The bits of numbers rounded to bfloat16, ties to even; denormal numbers are 0."""
    bits: Any = np.ascontiguousarray(np.where(np.abs(values) < np.finfo(np.float32).tiny, values * 0, values)).view(
        np.uint32
    )
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    quiet = bits >> 16 | 0x40  # of a NaN, which rounding could turn into infinity
    return np.where(np.isnan(values), quiet, rounded).astype(np.uint16)  # type: ignore[no-any-return]


def _multiply_pairs(a: Array, b: Array, c: Array) -> Array:
    """The sum of c and both products of two pairs."""
    lows, highs = ([(x.view(np.uint32) << shift & 0xFFFF0000).view(np.float32) for x in (a, b)] for shift in (16, 0))
    return c + highs[0] * highs[1] + lows[0] * lows[1]  # type: ignore[no-any-return]


def _power_of_two(shifted: Array) -> Array:
    bits: Any = shifted.view(np.int32)
    return ((bits << 23) + (127 << 23)).astype(np.int32).view(np.float32)  # type: ignore[no-any-return]


def _padded(values: Array) -> Array:
    """A register with these numbers in its first lanes and 0 in the others."""
    return np.concatenate([values, np.zeros(LANES - len(values), np.float32)])


def _divide(a: int, b: int) -> int:
    """Division as processors do it, which rounds towards 0."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient
