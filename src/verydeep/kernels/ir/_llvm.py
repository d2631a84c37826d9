"""Kernels as LLVM instructions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from verydeep.kernels.ir._emitter import Emitter
from verydeep.kernels.ir._processor import LANES, NUMBER, X86
from verydeep.kernels.ir._random import FRACTION_SHIFT, ONE, hash_lanes

if TYPE_CHECKING:
    from verydeep.kernels.ir._kernel import Kernel


class _BFloat16(ir.types.Type):  # type: ignore[misc]
    """LLVM's bfloat, which llvmlite does not know."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BFloat16)

    def __hash__(self) -> int:
        return hash(_BFloat16)


IRValue = Any  # an llvmlite value; llvmlite has no types

_INTEGER = ir.IntType(64)
_LANE = ir.IntType(32)
_NUMBER = ir.FloatType()
_VECTOR = ir.VectorType(_NUMBER, LANES)
_PAIRS = ir.VectorType(_BFloat16(), 2 * LANES)
_MASK = ir.VectorType(_LANE, LANES)
_BYTES = ir.IntType(8).as_pointer()
_INTEGER_OPERATIONS = {"+": "add", "-": "sub", "*": "mul", "//": "sdiv"}
_BITS_OPERATIONS = {"*": "mul", "^": "xor", ">>": "lshr", "|": "or_"}
_VECTOR_OPERATIONS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
# A product and a sum may become one instruction, and -0 may be 0; NaN and infinity keep their meaning.
_FLAGS = ("contract", "nsz")


def emit_module(kernels: Sequence[Kernel]) -> ir.Module:
    """A module with kernels, which can be called from outside, and all kernels that they call, which cannot."""
    module = LLVMModule()
    for kernel in kernels:
        module.function(kernel)
    for name, function in module.functions.items():
        if not any(name == kernel.name for kernel in kernels):
            function.linkage = "internal"
    return module.module


class LLVMModule:
    """A module to which functions are added when they are first called."""

    def __init__(self) -> None:
        self.module = ir.Module()
        self.functions: dict[str, IRValue] = {}
        self._kernels: dict[str, Kernel] = {}

    def function(self, kernel: Kernel) -> IRValue:
        """The function of a kernel."""
        if self._kernels.setdefault(kernel.name, kernel) is not kernel:
            raise ValueError(f"two different kernels of one module are called {kernel.name}")
        if kernel.name not in self.functions:
            signature = ir.FunctionType(ir.VoidType(), [_INTEGER] * kernel.integers)
            function = self.functions[kernel.name] = ir.Function(self.module, signature, kernel.name)
            function.attributes.add("noinline")
            builder = ir.IRBuilder(function.append_basic_block())
            with _denormals_flushed(builder) if kernel.flush and X86 else nullcontext():
                kernel.trace(LLVMEmitter(self, builder), function.args)
            builder.ret_void()
        return self.functions[kernel.name]


class LLVMEmitter(Emitter):
    """Emits the instructions of one function."""

    def __init__(self, module: LLVMModule, builder: ir.IRBuilder) -> None:
        self.module, self.builder = module, builder

    def integer(self, value: int) -> IRValue:
        return ir.Constant(_INTEGER, value)

    def integer_operation(self, operator: str, a: IRValue, b: IRValue) -> IRValue:
        return getattr(self.builder, _INTEGER_OPERATIONS[operator])(a, b)

    def integer_comparison(self, operator: str, a: IRValue, b: IRValue) -> IRValue:
        return self.builder.icmp_signed(operator, a, b)

    def number(self, value: float) -> IRValue:
        return ir.Constant(_NUMBER, value)

    def add_numbers(self, a: IRValue, b: IRValue) -> IRValue:
        return self.builder.fadd(a, b)

    def vector(self, value: float) -> IRValue:
        return ir.Constant(_VECTOR, [value] * LANES)

    def vector_operation(self, operator: str, a: IRValue, b: IRValue) -> IRValue:
        return getattr(self.builder, _VECTOR_OPERATIONS[operator])(a, b, flags=_FLAGS)

    def add_exactly(self, a: IRValue, b: IRValue) -> IRValue:
        return self.builder.fadd(a, b)

    def multiply_add(self, a: IRValue, b: IRValue, c: IRValue) -> IRValue:
        return self._intrinsic(f"llvm.fmuladd.v{LANES}f32", _VECTOR, a, b, c)

    def round_neighbours(self, a: IRValue, b: IRValue) -> IRValue:
        return self.builder.bitcast(self._round(a, b), _VECTOR)

    def round_lanes(self, a: IRValue, b: IRValue) -> IRValue:
        rounded = self._round(a, b)
        order = [lane + half * LANES for lane in range(LANES) for half in range(2)]
        mask = ir.Constant(ir.VectorType(_LANE, 2 * LANES), order)
        return self.builder.bitcast(self.builder.shuffle_vector(rounded, rounded, mask), _VECTOR)

    def multiply_pairs(self, a: IRValue, b: IRValue, c: IRValue) -> IRValue:
        pairs = (self.builder.bitcast(value, _PAIRS) for value in (a, b))
        return self._intrinsic("llvm.x86.avx512bf16.dpbf16ps.512", _VECTOR, c, *pairs)

    def _round(self, a: IRValue, b: IRValue) -> IRValue:
        """The numbers of a, then those of b, as bfloat16; the instruction takes the higher half first."""
        return self._intrinsic("llvm.x86.avx512bf16.cvtne2ps2bf16.512", _PAIRS, b, a)

    def _intrinsic(self, name: str, result: IRValue, *arguments: IRValue) -> IRValue:
        """Call one of LLVM's own functions."""
        module = self.module.module
        kind = ir.FunctionType(result, [argument.type for argument in arguments])
        return self.builder.call(module.globals.get(name) or ir.Function(module, kind, name), arguments)

    def select(self, operator: str, a: IRValue, b: IRValue, then: IRValue, otherwise: IRValue) -> IRValue:
        return self.builder.select(self.builder.fcmp_ordered(operator, a, b), then, otherwise)

    def power_of_two(self, shifted: IRValue) -> IRValue:
        bits = self.builder.bitcast(shifted, _MASK)
        exponent = self.builder.shl(bits, ir.Constant(_MASK, [23] * LANES))
        return self.builder.bitcast(self.builder.add(exponent, ir.Constant(_MASK, [127 << 23] * LANES)), _VECTOR)

    def random(self, key: IRValue, position: IRValue) -> IRValue:
        low, high, first = (
            self._in_all_lanes(self.builder.trunc(value, _LANE))
            for value in (key, self.builder.lshr(key, ir.Constant(_INTEGER, 32)), position)
        )
        lanes = self.builder.add(first, ir.Constant(_MASK, list(range(LANES))))
        bits = hash_lanes(self._bits_operation, low, high, lanes)
        fraction = self._bits_operation("|", self._bits_operation(">>", bits, FRACTION_SHIFT), ONE)
        return self.builder.fsub(self.builder.bitcast(fraction, _VECTOR), self.vector(1.0))

    def _bits_operation(self, operator: str, a: IRValue, b: IRValue | int) -> IRValue:
        operand = ir.Constant(_MASK, [b] * LANES) if isinstance(b, int) else b
        return getattr(self.builder, _BITS_OPERATIONS[operator])(a, operand)

    def _in_all_lanes(self, bits: IRValue) -> IRValue:
        empty = ir.Constant(_MASK, ir.Undefined)
        first = self.builder.insert_element(empty, bits, ir.Constant(_LANE, 0))
        return self.builder.shuffle_vector(first, empty, ir.Constant(_MASK, [0] * LANES))

    def broadcast(self, number: IRValue) -> IRValue:
        empty = ir.Constant(_VECTOR, ir.Undefined)
        first = self.builder.insert_element(empty, number, ir.Constant(_LANE, 0))
        return self.builder.shuffle_vector(first, empty, ir.Constant(_MASK, [0] * LANES))

    def shuffle(self, a: IRValue, b: IRValue, lanes: Sequence[int]) -> IRValue:
        return self.builder.shuffle_vector(a, b, ir.Constant(_MASK, list(lanes)))

    def first_lane(self, vector: IRValue) -> IRValue:
        return self.builder.extract_element(vector, ir.Constant(_LANE, 0))

    def load_vector(self, address: IRValue) -> IRValue:
        value = self.builder.load(self.builder.inttoptr(address, _VECTOR.as_pointer()))
        value.align = NUMBER
        return value

    def store_vector(self, value: IRValue, address: IRValue) -> None:
        self.builder.store(value, self.builder.inttoptr(address, _VECTOR.as_pointer())).align = NUMBER

    def load_lanes(self, address: IRValue, count: IRValue) -> IRValue:
        place = self.builder.inttoptr(address, _VECTOR.as_pointer())
        arguments = [place, ir.Constant(_LANE, NUMBER), self._first_lanes(count), ir.Constant(_VECTOR, None)]
        return self._masked("load", _VECTOR, arguments)

    def store_lanes(self, value: IRValue, address: IRValue, count: IRValue) -> None:
        place = self.builder.inttoptr(address, _VECTOR.as_pointer())
        self._masked("store", ir.VoidType(), [value, place, ir.Constant(_LANE, NUMBER), self._first_lanes(count)])

    def _masked(self, name: str, result: IRValue, arguments: Sequence[IRValue]) -> IRValue:
        return self._intrinsic(f"llvm.masked.{name}.v{LANES}f32.p0", result, *arguments)

    def _first_lanes(self, count: IRValue) -> IRValue:
        """A mask of the first lanes."""
        counts = self._in_all_lanes(self.builder.trunc(count, _LANE))
        return self.builder.icmp_signed("<", ir.Constant(_MASK, list(range(LANES))), counts)

    def load_number(self, address: IRValue) -> IRValue:
        return self.builder.load(self.builder.inttoptr(address, _NUMBER.as_pointer()))

    def store_number(self, value: IRValue, address: IRValue) -> None:
        self.builder.store(value, self.builder.inttoptr(address, _NUMBER.as_pointer()))

    def load_integer(self, address: IRValue) -> IRValue:
        return self.builder.load(self.builder.inttoptr(address, _INTEGER.as_pointer()))

    def fetch_add(self, address: IRValue, increment: IRValue) -> IRValue:
        place = self.builder.inttoptr(address, _INTEGER.as_pointer())
        return self.builder.atomic_rmw("add", place, increment, "seq_cst")

    def save(self, address: IRValue) -> IRValue:
        return self.load_vector(address)

    def restore(self, saved: IRValue, address: IRValue) -> None:
        self.store_vector(saved, address)

    @contextmanager
    def loop(self, count: IRValue) -> Iterator[IRValue]:
        builder = self.builder
        before = builder.block
        head, inside, after = (builder.append_basic_block() for _ in range(3))
        builder.branch(head)
        builder.position_at_end(head)
        i = builder.phi(_INTEGER)
        i.add_incoming(self.integer(0), before)
        builder.cbranch(builder.icmp_signed("<", i, count), inside, after)
        builder.position_at_end(inside)
        yield i
        i.add_incoming(builder.add(i, self.integer(1)), builder.block)
        builder.branch(head)
        builder.position_at_end(after)

    @contextmanager
    def when(self, condition: IRValue) -> Iterator[None]:
        with self.builder.if_then(condition):
            yield

    def variable(self, value: IRValue) -> IRValue:
        with self.builder.goto_entry_block():
            place = self.builder.alloca(value.type)  # LLVM turns these into registers
        self.builder.store(value, place)
        return place

    def get_variable(self, variable: IRValue) -> IRValue:
        return self.builder.load(variable)

    def set_variable(self, variable: IRValue, value: IRValue) -> None:
        self.builder.store(value, variable)

    def call(self, kernel: Kernel, arguments: Sequence[IRValue]) -> None:
        self.builder.call(self.module.function(kernel), arguments)

    def call_address(self, address: IRValue, arguments: Sequence[IRValue]) -> None:
        kind = ir.FunctionType(ir.VoidType(), [_INTEGER] * len(arguments))
        self.builder.call(self.builder.inttoptr(address, kind.as_pointer()), arguments)


@contextmanager
def _denormals_flushed(builder: ir.IRBuilder) -> Iterator[None]:
    """Set the two bits of x86's control register that turn denormal operands and results into 0, then restore it."""
    kind = ir.FunctionType(ir.VoidType(), [_BYTES])
    names = [f"llvm.x86.sse.{name}mxcsr" for name in ("st", "ld")]
    read, write = (builder.module.globals.get(name) or ir.Function(builder.module, kind, name) for name in names)
    before, during = builder.alloca(_LANE), builder.alloca(_LANE)
    as_bytes = [builder.bitcast(place, _BYTES) for place in (before, during)]
    builder.call(read, as_bytes[:1])
    builder.store(builder.or_(builder.load(before), ir.Constant(_LANE, 0x8040)), during)
    builder.call(write, as_bytes[1:])
    yield
    builder.call(write, as_bytes[:1])
