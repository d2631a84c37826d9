"""Loops, conditions and variables.

The body of `with loop(n) as i:` is Python code that runs once and emits the instructions of every iteration. A Python
variable that is assigned in the body therefore does not change from iteration to iteration; a `Variable` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from verydeep.kernels.ir._emitter import emitter
from verydeep.kernels.ir._values import Condition, Int, int_handle
from verydeep.kernels.ir._vector import Vec


@contextmanager
def loop(count: Int | int) -> Iterator[Int]:
    """Repeat the body of a `with` statement, as `for i in range(count)` does."""
    with emitter().loop(int_handle(count)) as i:
        yield Int(i)


@contextmanager
def when(condition: Condition) -> Iterator[None]:
    """Skip the body of a `with` statement unless a condition holds, as `if` does."""
    with emitter().when(condition.handle):
        yield


class Variable:
    """A register that loops and conditions can replace: read and assign its `value`."""

    def __init__(self, value: Vec) -> None:
        (register,) = value.registers
        self._handle = emitter().variable(register)

    @property
    def value(self) -> Vec:
        """The present value."""
        return Vec(emitter().get_variable(self._handle))

    @value.setter
    def value(self, value: Vec) -> None:
        (register,) = value.registers
        emitter().set_variable(self._handle, register)
