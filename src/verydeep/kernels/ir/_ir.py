"""The language that kernels are written in: sizes and addresses with ordinary arithmetic, loops, memory, functions.

A kernel is a Python function that runs once, when the kernel is compiled; its arithmetic emits LLVM instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

_features = llvm.get_host_cpu_features()
LANES = 16 if _features.get("avx512f") else 8 if _features.get("avx") else 4  # float32 numbers per register
_X86 = llvm.get_process_triple().startswith("x86_64")
REGISTERS = 16 if _X86 and LANES < 16 else 32
NUMBER = 4  # bytes
REGISTER = NUMBER * LANES  # bytes

INDEX = ir.IntType(64)
VECTOR = ir.VectorType(ir.FloatType(), LANES)
MASK = ir.VectorType(ir.IntType(32), LANES)
_POINTER = ir.FloatType().as_pointer()
ZERO = ir.Constant(VECTOR, [0.0] * LANES)
Emit = Callable[..., None]
Value = Any  # an llvmlite value; llvmlite has no types


class N:
    """A size or an address."""

    def __init__(self, builder: ir.IRBuilder, value: Value) -> None:
        self.builder, self.value = builder, value

    def _make(self, operation: str, other: N | int) -> N:
        right = other.value if isinstance(other, N) else index(other)
        return N(self.builder, getattr(self.builder, operation)(self.value, right))

    def __add__(self, other: N | int) -> N:
        return self._make("add", other)

    def __sub__(self, other: N | int) -> N:
        return self._make("sub", other)

    def __mul__(self, other: N | int) -> N:
        return self._make("mul", other)

    def __floordiv__(self, other: N | int) -> N:
        return self._make("sdiv", other)

    def __lt__(self, other: N | int) -> Value:
        return self.builder.icmp_signed("<", self.value, other.value if isinstance(other, N) else index(other))

    def __eq__(self, other: object) -> Value:
        return self.builder.icmp_signed("==", self.value, other.value if isinstance(other, N) else index(other))

    __hash__ = None  # type: ignore[assignment]


def index(number: Value) -> Value:
    """A constant size."""
    return ir.Constant(INDEX, number)


def load(address: N, align: int = NUMBER) -> Value:
    """A register from memory."""
    builder = address.builder
    value = builder.load(builder.inttoptr(address.value, VECTOR.as_pointer()))
    value.align = align
    return value


def store(value: Value, address: N) -> None:
    """A register into memory."""
    builder = address.builder
    builder.store(value, builder.inttoptr(address.value, VECTOR.as_pointer())).align = NUMBER


def load_number(address: N) -> Value:
    """One float32 from memory."""
    return address.builder.load(address.builder.inttoptr(address.value, _POINTER))


def store_number(value: Value, address: N) -> None:
    """One float32 into memory."""
    address.builder.store(value, address.builder.inttoptr(address.value, _POINTER))


def load_index(address: N) -> N:
    """One int64 from memory."""
    builder = address.builder
    return N(builder, builder.load(builder.inttoptr(address.value, INDEX.as_pointer())))


def broadcast(builder: ir.IRBuilder, number: Value) -> Value:
    """A register with one number in all lanes."""
    empty = ir.Constant(VECTOR, ir.Undefined)
    first = builder.insert_element(empty, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, empty, ir.Constant(MASK, [0] * LANES))


def shuffle(builder: ir.IRBuilder, a: Value, b: Value, lanes: Sequence[int]) -> Value:
    """A register made of lanes of two registers; the lanes of the second are numbered from LANES on."""
    return builder.shuffle_vector(a, b, ir.Constant(MASK, list(lanes)))


def vector_function(builder: ir.IRBuilder, name: str, arguments: int) -> Value:
    """An LLVM intrinsic for vectors, such as `llvm.fmuladd`."""
    module, full = builder.module, f"{name}.v{LANES}f32"
    return module.globals.get(full) or ir.Function(module, ir.FunctionType(VECTOR, [VECTOR] * arguments), full)


def repeat(count: N, start: Sequence[Value], body: Callable[[N, list[Value]], Sequence[Value]]) -> list[Value]:
    """`for i in range(count): values = body(i, values)`, starting from `start`; returns the final values."""
    builder = count.builder
    before = builder.block
    head, inside, after = (builder.append_basic_block() for _ in range(3))
    builder.branch(head)
    builder.position_at_end(head)
    first = [index(0), *start]
    phis = [builder.phi(value.type) for value in first]
    for phi, value in zip(phis, first, strict=True):
        phi.add_incoming(value, before)
    i = N(builder, phis[0])
    builder.cbranch(i < count, inside, after)
    builder.position_at_end(inside)
    last = [body(i, phis[1:]), (i + 1).value]
    for phi, value in zip(phis, [last[1], *last[0]], strict=True):
        phi.add_incoming(value, builder.block)
    builder.branch(head)
    builder.position_at_end(after)
    return phis[1:]


def each(count: N, body: Callable[[N], None]) -> None:
    """`for i in range(count): body(i)`."""

    def iteration(i: N, _: list[Value]) -> Sequence[Value]:
        body(i)
        return ()

    repeat(count, [], iteration)


class Kernel:
    """A function of sizes and addresses, emitted into a module where it is first called.

    Args:
        name: The name of the function.
        arguments: The number of its arguments.
        emit: Emits the instructions; called once with the arguments.
        flush: Whether denormal numbers count as 0 while it runs; they make x86 ten times slower.
    """

    def __init__(self, name: str, arguments: int, emit: Emit, flush: bool = False) -> None:
        self.name, self.arguments, self.emit, self.flush = name, arguments, emit, flush

    def __call__(self, *values: N | int) -> None:
        """Call it from another kernel."""
        builder = next(value.builder for value in values if isinstance(value, N))
        builder.call(self.define(builder.module), [v.value if isinstance(v, N) else index(v) for v in values])

    def define(self, module: ir.Module) -> Value:
        """The function in a module, emitted on the first call."""
        if self.name in module.globals:
            return module.globals[self.name]
        kind = ir.FunctionType(ir.VoidType(), [INDEX] * self.arguments)
        function = ir.Function(module, kind, self.name)
        function.attributes.add("noinline")
        builder = ir.IRBuilder(function.append_basic_block())
        with _flushed(builder) if self.flush and _X86 else nullcontext():
            self.emit(*(N(builder, argument) for argument in function.args))
        builder.ret_void()
        return function


@contextmanager
def _flushed(builder: ir.IRBuilder) -> Iterator[None]:
    """Set the two bits of x86's control register that turn denormal operands and results into 0, then restore it."""
    number = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer()])
    names = [f"llvm.x86.sse.{name}mxcsr" for name in ("st", "ld")]
    read, write = (builder.module.globals.get(name) or ir.Function(builder.module, kind, name) for name in names)
    before, during = builder.alloca(number), builder.alloca(number)
    as_bytes = [builder.bitcast(place, ir.IntType(8).as_pointer()) for place in (before, during)]
    builder.call(read, as_bytes[:1])
    builder.store(builder.or_(builder.load(before), ir.Constant(number, 0x8040)), during)
    builder.call(write, as_bytes[1:])
    yield
    builder.call(write, as_bytes[:1])
