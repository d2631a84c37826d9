"""Kernels: Python functions of sizes, addresses and matrices, with `@kernel`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import NamedTuple, get_type_hints, overload

from verydeep.kernels.ir._emitter import Emitter, Handle, emitter, emitting
from verydeep.kernels.ir._values import Int, IntPtr, Matrix, Ptr, int_handle

Argument = Int | int | Ptr | IntPtr | Matrix
_TYPES = (Int, Ptr, IntPtr, Matrix)


class _Parameter(NamedTuple):
    name: str
    type: type


class Kernel:
    """A function that can be compiled, interpreted, or called from other kernels. Made by `@kernel`.

    Outside of the language its arguments are int64: sizes, addresses, and for a Matrix its address and its row stride
    in bytes. The matrices of a variadic parameter are passed as all addresses, then all strides.

    Attributes:
        name: The name of the compiled function.
        function: The Python function.
        flush: Whether denormal numbers count as 0 while it runs.
        integers: The number of its int64 arguments.
    """

    def __init__(self, name: str, function: Callable[..., None], variadic: int, flush: bool) -> None:
        self.name, self.function, self.flush = name, function, flush
        self._single, self._variadic = _parameters(function, variadic)
        self.integers = sum(2 if one.type is Matrix else 1 for one in (*self._single, *self._variadic))
        self.__doc__ = function.__doc__

    def __call__(self, *arguments: Argument) -> None:
        """Call it from another kernel."""
        expected = (*self._single, *self._variadic)
        if len(arguments) != len(expected):
            raise TypeError(f"{self.name} takes {len(expected)} arguments, not {len(arguments)}")
        for argument, (name, kind) in zip(arguments, expected, strict=True):
            if not isinstance(argument, (Int, int) if kind is Int else kind):
                raise TypeError(f"{name} of {self.name} is a {type(argument).__name__} instead of a {kind.__name__}")
        count = len(self._single)
        handles = [handle for argument in arguments[:count] for handle in _handles(argument)]
        emitter().call(self, [*handles, *_columns([_handles(argument) for argument in arguments[count:]])])

    def trace(self, to: Emitter, handles: Sequence[Handle]) -> None:
        """Run the Python function, which sends its operations to an emitter."""
        rest = iter(handles)
        arguments = [_wrap(kind, [next(rest) for _ in range(_count(kind))]) for _, kind in self._single]
        remaining = list(rest)
        for n, (_, kind) in enumerate(self._variadic):
            arguments.append(_wrap(kind, remaining[n :: len(self._variadic)]))
        with emitting(to):
            self.function(*arguments)


@overload
def kernel(function: Callable[..., None], /) -> Kernel: ...
@overload
def kernel(
    *, name: str | None = None, variadic: int = 0, flush: bool = False
) -> Callable[[Callable[..., None]], Kernel]: ...
def kernel(
    function: Callable[..., None] | None = None, /, *, name: str | None = None, variadic: int = 0, flush: bool = False
) -> Kernel | Callable[[Callable[..., None]], Kernel]:
    """Make a kernel from a Python function whose parameters are annotated with Int, Ptr, IntPtr or Matrix.

    Args:
        function: The function, when used as `@kernel` without arguments.
        name: The name of the compiled function, by default that of the Python function. The members of a family, made
            by a function with parameters of its own, need different names where one kernel uses several of them.
        variadic: The number of arguments for a parameter such as `*matrices: Matrix`.
        flush: Count denormal numbers as 0; they make x86 ten times slower. For kernels that are called from Python;
            kernels that they call inherit it.
    """
    if function is not None:
        return Kernel(function.__name__, function, 0, False)
    return lambda function: Kernel(name or function.__name__, function, variadic, flush)


def call_address(address: Int, arguments: Sequence[Int]) -> None:
    """Call the compiled kernel at an address, from inside a kernel."""
    emitter().call_address(address.handle, [argument.handle for argument in arguments])


def _parameters(function: Callable[..., None], variadic: int) -> tuple[list[_Parameter], list[_Parameter]]:
    """Single parameters, and one for each argument of a variadic parameter."""
    types = get_type_hints(function)
    single, several = [], []
    for name, parameter in inspect.signature(function).parameters.items():
        kind = types.get(name)
        if kind not in _TYPES:
            raise TypeError(f"{function.__name__}: {name} must be annotated with Int, Ptr, IntPtr or Matrix")
        if parameter.kind is parameter.VAR_POSITIONAL:
            several = [_Parameter(f"{name}[{n}]", kind) for n in range(variadic)]
        else:
            single.append(_Parameter(name, kind))
    return single, several


def _count(kind: type) -> int:
    return 2 if kind is Matrix else 1


def _handles(argument: Argument) -> list[Handle]:
    """The int64 of an argument."""
    if isinstance(argument, Matrix):
        return [argument.ptr.handle, argument.stride]
    return [argument.handle if isinstance(argument, Ptr | IntPtr) else int_handle(argument)]


def _wrap(kind: type, handles: Sequence[Handle]) -> Argument:
    """The inverse of `_handles`."""
    return Matrix.from_handles(*handles) if kind is Matrix else kind(*handles)


def _columns(rows: Sequence[Sequence[Handle]]) -> list[Handle]:
    """The first handles of all arguments, then the second ones."""
    return [handle for column in zip(*rows, strict=True) for handle in column]
