"""Every kernel in the interpreter: no access outside of the arrays, no use of uninitialised numbers, right results."""

from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray
from torch import Tensor

from verydeep.kernels.dense import _stack_loops
from verydeep.kernels.dense._bfloat16_products import backward_scratch, forward_scratch
from verydeep.kernels.dense._classifier_loops import classifier, d_classifier
from verydeep.kernels.dense._input_layer_loops import BLOCK, make_d_input_layer, make_input_layer
from verydeep.kernels.dense._stack_loops import make_backward, make_forward
from verydeep.kernels.gate._gate_loops import make_gate_backward, make_gate_forward
from verydeep.kernels.gate._gate_op import gate_reference
from verydeep.kernels.ir import _elementwise, _fill, _product, _transpose
from verydeep.kernels.ir._control import Variable, loop
from verydeep.kernels.ir._elementwise import add, add_rows, copy
from verydeep.kernels.ir._fill import zero_columns
from verydeep.kernels.ir._interpreter import interpret, python_source
from verydeep.kernels.ir._kernel import Kernel, kernel
from verydeep.kernels.ir._memory import Memory, MemoryAccessError
from verydeep.kernels.ir._pairs import pair_columns, pair_rows
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._product import make_product
from verydeep.kernels.ir._sums import add_rows_to
from verydeep.kernels.ir._transpose import transpose
from verydeep.kernels.ir._values import Int, IntPtr, Ptr
from verydeep.kernels.ir._vector import Vec, load, store
from verydeep.kernels.runtime._serve import serve
from verydeep.kernels.runtime._table import make_table

Floats = NDArray[np.float32]
NUMBER = 4  # bytes
ACTIVATIONS = st.sampled_from(["tanh", "relu"])
SMALL = st.integers(1, LANES + 3)


def normal(*shape: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def assert_close(found: Any, expected: Any) -> None:
    """To float32 rounding of the largest number."""
    found, expected = (np.asarray(value, np.float64) for value in (found, expected))
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(found / scale, expected.reshape(found.shape) / scale, rtol=1e-5, atol=5e-6)


def assert_near(found: Any, expected: Any) -> None:
    """To the rounding of bfloat16, which has eight bits, in a few layers."""
    found, expected = (np.asarray(value, np.float64) for value in (found, expected))
    difference = np.linalg.norm(found - expected.reshape(found.shape))
    assert difference <= 0.1 * np.linalg.norm(expected) + 1e-3


def up(samples: int) -> tuple[int, int]:
    """Registers for samples, and samples with their padding."""
    vectors = -(-samples // LANES)
    return vectors, vectors * LANES


# What kernels are made of


@settings(max_examples=60)
@given(
    m=st.integers(1, 30), k=st.integers(0, 5), vectors=st.integers(1, 8), transposed=st.booleans(), adds=st.booleans()
)
def test_products(m: int, k: int, vectors: int, transposed: bool, adds: bool) -> None:
    a, b, c = normal(m, k), normal(k, vectors * LANES, seed=1), normal(m, vectors * LANES, seed=2)
    memory = Memory()
    stored = a.T if transposed else a
    a_at, b_at = memory.array("a", stored), memory.array("b", b)
    c_at = memory.array("c", c) if adds else memory.empty("c", c.size)
    strides = stored.shape[1] * NUMBER, vectors * LANES * NUMBER, vectors * LANES * NUMBER
    sizes = m, k, vectors, int(adds)
    interpret(make_product(transposed), memory, a_at, strides[0], b_at, strides[1], c_at, strides[2], *sizes)
    assert_close(memory.read("c"), a @ b + (c if adds else 0))


def rounded(values: Floats) -> Floats:
    return torch.from_numpy(values).bfloat16().float().numpy()


@settings(max_examples=40)
@given(rows=st.integers(1, 6), columns=st.integers(1, 4 * LANES + 3))
def test_pairs_of_bfloat16(rows: int, columns: int) -> None:
    a = normal(rows, columns)
    a[0, 0], a[-1, -1] = np.inf, np.nan
    memory, stride = Memory(), -(-columns // (2 * LANES)) * LANES
    a_at = memory.array("a", a)
    arguments = a_at, columns * NUMBER, memory.empty("columns", rows * stride), stride * NUMBER
    interpret(pair_columns, memory, *arguments, rows, columns)
    neighbours = np.zeros((rows, 2 * stride), np.float32)
    neighbours[:, :columns] = rounded(a)
    assert np.array_equal(halves(memory.read("columns")), neighbours.flatten(), equal_nan=True)

    pairs = (rows + 1) // 2
    arguments = a_at, columns * NUMBER, memory.empty("rows", pairs * columns), columns * NUMBER
    interpret(pair_rows, memory, *arguments, rows, columns)
    below = np.zeros((2 * pairs, columns), np.float32)
    below[:rows] = rounded(a)
    interleaved = below.reshape(pairs, 2, columns).swapaxes(1, 2)
    assert np.array_equal(halves(memory.read("rows")), interleaved.flatten(), equal_nan=True)


def halves(pairs: Floats) -> Floats:
    """The two numbers of each pair of bfloat16."""
    return (pairs.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


@settings(max_examples=30)
@given(m=st.integers(1, 30), k=st.integers(1, 5), vectors=st.integers(1, 4), transposed=st.booleans())
def test_products_of_pairs(m: int, k: int, vectors: int, transposed: bool) -> None:
    a, b = rounded(normal(2 * k, m)), rounded(normal(2 * k, vectors * LANES, seed=1))
    memory = Memory()
    a_pairs = pack(a) if transposed else pack(a).reshape(k, m).T
    a_at, b_at, c_at = memory.array("a", a_pairs), memory.array("b", pack(b)), memory.empty("c", m * vectors * LANES)
    strides = (m if transposed else k) * NUMBER, vectors * LANES * NUMBER
    addresses = a_at, strides[0], b_at, strides[1], c_at, strides[1]
    interpret(make_product(transposed=transposed, pairs=True), memory, *addresses, m, k, vectors, 0)
    assert_close(memory.read("c"), a.T.astype(np.float64) @ b)


def pack(values: Floats) -> Floats:
    """Pairs of the rows of a matrix of bfloat16."""
    high = values.view(np.uint32) >> 16
    return (high[::2] | high[1::2] << 16).view(np.float32)


@settings(max_examples=40)
@given(rows=st.integers(0, 2 * LANES + 3), columns=st.integers(0, 2 * LANES + 3))
def test_transposes(rows: int, columns: int) -> None:
    a, memory = normal(rows, columns), Memory()
    arguments = memory.array("a", a), columns * NUMBER, memory.empty("b", a.size), rows * NUMBER
    interpret(transpose, memory, *arguments, rows, columns)
    assert np.array_equal(memory.read("b").reshape(columns, rows), a.T)


@settings(max_examples=20)
@given(rows=st.integers(0, 3), vectors=st.integers(0, 5))
def test_sums_and_copies(rows: int, vectors: int) -> None:
    a, b, memory = normal(rows, vectors * LANES), normal(rows, vectors * LANES, seed=1), Memory()
    a_at, b_at = memory.array("a", a), memory.array("b", b)
    interpret(add, memory, rows, vectors, a_at, b_at, a_at)
    interpret(copy, memory, rows, vectors, a_at, memory.empty("c", a.size))
    assert np.array_equal(memory.read("c").reshape(a.shape), a + b)


# Stacks


def layer(x: Tensor, weight: Tensor, bias: Tensor, affine_maps: int, activation: str) -> Tensor:
    """One layer in torch's operations."""
    value = torch.tanh if activation == "tanh" else torch.relu
    h, *gates = (x @ weight.T + bias).chunk(affine_maps, 1)
    if not gates:
        return value(h)
    t, *c = (torch.sigmoid(gate) for gate in gates)
    return value(h) * t + x * (c[0] if c else 1 - t)


@settings(max_examples=30)
@given(
    width=SMALL,
    samples=SMALL,
    depth=st.integers(1, 3),
    affine_maps=st.sampled_from([1, 2, 3]),
    activation=ACTIVATIONS,
    keep=st.booleans(),
    bfloat16=st.booleans(),
)
def test_stacks(
    width: int, samples: int, depth: int, affine_maps: int, activation: str, keep: bool, bfloat16: bool
) -> None:
    weight, bias = normal(depth + 1, affine_maps * width, width) / width, normal(depth + 1, affine_maps * width, seed=1)
    x, dy = normal(samples, width, seed=2), normal(samples, width, seed=3)
    order = list(range(depth, 0, -1))  # layer 0 is closed
    vectors, padded = up(samples)
    row, size = padded * NUMBER, width * padded
    stride = (size if affine_maps == 1 else size * (1 + affine_maps)) if keep else 0

    memory = Memory()
    parameters = memory.array("weight", weight), memory.array("bias", bias), memory.array("layers", np.array(order))
    last = depth * stride
    # The backward pass reads squares of blocks, also past the last block of the last layer.
    numbers = last + size if keep else size * (1 + affine_maps)
    kept = memory.empty("kept", numbers, padding=(LANES - 1) * padded)

    def put(name: str, values: Floats, address: int) -> None:
        """As (block, sample), padded with zeros."""
        interpret(transpose, memory, memory.array(name, values), width * NUMBER, address, row, samples, width)
        interpret(zero_columns, memory, address + samples * NUMBER, row, width, padded - samples)

    put("x", x, kept)
    free = memory.empty("free", forward_scratch(affine_maps, width, padded, LANES) if bfloat16 else 0)
    arguments = *parameters, depth, kept, stride * NUMBER, free, width, vectors
    interpret(make_forward(affine_maps, activation, bfloat16), memory, *arguments)
    y_at = memory.empty("y", samples * width)
    interpret(transpose, memory, kept + last * NUMBER, row, y_at, width * NUMBER, width, samples)

    leaves = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (x, weight, bias)]
    y = leaves[0]
    for n in order:
        y = layer(y, leaves[1][n], leaves[2][n], affine_maps, activation)
    check = assert_near if bfloat16 else assert_close
    check(memory.read("y"), y.detach().flatten())
    if not keep:
        return

    wide = up(width)[1]
    needed = backward_scratch(affine_maps, width, padded, LANES) if bfloat16 else padded * wide
    scratch = memory.empty("scratch", (1 + affine_maps) * size + needed)
    dw, db = memory.empty("d_weight", weight.size, padding=LANES), memory.array("d_bias", np.zeros_like(bias))
    interpret(zero_columns, memory, dw, width * NUMBER, affine_maps * width, width)  # that of the closed layer
    for adds in (0, 1):
        put(f"dy {adds}", dy, scratch)
        addresses = parameters[0], dw, db, parameters[2], depth, kept, stride * NUMBER, scratch
        interpret(make_backward(affine_maps, activation, bfloat16), memory, *addresses, width, vectors, samples, adds)
    interpret(transpose, memory, scratch, row, memory.empty("dx", x.size), width * NUMBER, width, samples)
    dx, d_weight, d_bias = torch.autograd.grad(y, leaves, torch.tensor(dy, dtype=torch.float64))
    check(memory.read("dx"), dx.flatten())
    check(memory.read("d_weight"), 2 * d_weight.flatten())
    check(memory.read("d_bias"), 2 * d_bias.flatten())
    assert np.isnan(memory.padding("d_weight")).all(), "what follows the gradient has changed"


@settings(max_examples=20)
@given(
    inputs=st.sampled_from([LANES, 3 * LANES, BLOCK, BLOCK + LANES]),
    width=st.integers(1, 5),
    samples=SMALL,
    activation=ACTIVATIONS,
)
def test_input_layers(inputs: int, width: int, samples: int, activation: str) -> None:
    weight, bias, x = normal(width, inputs) / 10, normal(width, seed=1), normal(samples, inputs, seed=2)
    vectors, padded = up(samples)
    dy, memory = normal(width, padded, seed=3), Memory()
    x_at, y_at = memory.array("x", x), memory.empty("y", width * padded)
    scratch = memory.empty("scratch", BLOCK * padded)
    parameters = memory.array("weight", weight), memory.array("bias", bias)
    interpret(make_input_layer(activation), memory, *parameters, x_at, y_at, scratch, inputs, width, vectors, samples)
    leaves = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (x, weight, bias)]
    y = layer(*leaves, 1, activation)  # type: ignore[call-arg, arg-type]
    assert_close(memory.read("y").reshape(width, padded)[:, :samples], y.detach().T)
    assert np.isfinite(memory.read("y")).all()

    dy[:, samples:] = 0  # the classifier and the stack keep the padding of gradients 0
    dw, db = memory.empty("d_weight", weight.size), memory.array("d_bias", np.zeros_like(bias))
    for adds in (0, 1):
        addresses = x_at, y_at, memory.array(f"dy {adds}", dy), dw, db
        interpret(make_d_input_layer(activation), memory, *addresses, inputs, width, vectors, samples, adds)
    gradients = torch.autograd.grad(y, leaves[1:], torch.tensor(dy[:, :samples].T, dtype=torch.float64))
    for name, expected in zip(("d_weight", "d_bias"), gradients, strict=True):
        assert_close(memory.read(name), 2 * expected.flatten())


@settings(max_examples=20)
@given(width=SMALL, classes=st.integers(1, LANES + 3), samples=SMALL)
def test_classifiers(width: int, classes: int, samples: int) -> None:
    weight, bias, dy = normal(classes, width), normal(classes, seed=1), normal(samples, classes, seed=3)
    vectors, padded = up(samples)
    x, memory = normal(width, padded, seed=2), Memory()
    wide = up(width)[1]
    x_at = memory.array("x", x, padding=(wide - width) * padded)  # read in squares
    w_at, scratch = memory.array("weight", weight), memory.empty("scratch", classes * padded + padded * wide)
    addresses = w_at, memory.array("bias", bias), x_at, memory.empty("y", dy.size), scratch
    interpret(classifier, memory, *addresses, width, classes, vectors, samples)
    assert_close(memory.read("y").reshape(dy.shape), x[:, :samples].T @ weight.T + bias)

    dw, db = memory.empty("d_weight", weight.size, padding=LANES), memory.array("d_bias", np.zeros_like(bias))
    dy_at, dx_at = memory.array("dy", dy), memory.empty("dx", x.size)
    for adds in (0, 1):
        addresses = w_at, dw, db, x_at, dy_at, dx_at, scratch  # type: ignore[assignment]
        interpret(d_classifier, memory, *addresses, width, classes, vectors, samples, adds)
    assert_close(memory.read("dx").reshape(x.shape)[:, :samples], (dy @ weight).T)
    assert_close(memory.read("d_weight").reshape(weight.shape), 2 * dy.T @ x[:, :samples].T)
    assert_close(memory.read("d_bias"), 2 * dy.sum(0))
    assert np.isnan(memory.padding("d_weight")).all(), "what follows the gradient has changed"


# The highway operation and convolutions


@settings(max_examples=20)
@given(
    rows=st.integers(1, 3),
    blocks=st.integers(1, 3 * LANES),
    affine_maps=st.sampled_from([2, 3]),
    activation=ACTIVATIONS,
)
def test_gates(rows: int, blocks: int, affine_maps: int, activation: str) -> None:
    z, x, dy = normal(rows, affine_maps * blocks), normal(rows, blocks, seed=1), normal(rows, blocks, seed=2)
    memory = Memory()
    z_at, x_at, y_at = memory.array("z", z), memory.array("x", x), memory.empty("y", x.size)
    interpret(make_gate_forward(affine_maps, activation), memory, z_at, x_at, y_at, rows, blocks)
    dz_at, dx_at = memory.empty("dz", z.size), memory.empty("dx", x.size)
    addresses = memory.array("dy", dy), z_at, x_at, dz_at, dx_at
    interpret(make_gate_backward(affine_maps, activation), memory, *addresses, rows, blocks)
    leaves = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (z, x)]
    y = gate_reference(*leaves, affine_maps, -1, activation)  # type: ignore[call-arg, arg-type]
    dz, dx = torch.autograd.grad(y, leaves, torch.tensor(dy, dtype=torch.float64))
    for name, expected in (("y", y.detach()), ("dz", dz), ("dx", dx)):
        assert_close(memory.read(name), expected.flatten())


@settings(max_examples=10)
@given(rows=st.integers(1, 3), numbers=st.integers(1, 2 * LANES + 3), more=st.integers(0, 3))
def test_rows_of_any_length(rows: int, numbers: int, more: int) -> None:
    a, b, stride = normal(rows, numbers), normal(rows, numbers + more, seed=1), (numbers + more) * NUMBER
    memory = Memory()
    addresses = memory.array("a", a), memory.array("b", b), memory.array("c", b)
    interpret(add_rows, memory, rows, numbers, *addresses, numbers * NUMBER, stride, stride)
    b[:, :numbers] += a
    assert_close(memory.read("c").reshape(b.shape), b)


def test_sums_over_rows() -> None:
    matrix, totals = normal(5, 2 * LANES), normal(2 * LANES, seed=1)
    memory = Memory()
    at = memory.array("matrix", matrix), 2 * LANES * NUMBER
    interpret(add_rows_to, memory, *at, 5, 2, memory.array("totals", totals))
    assert_close(memory.read("totals"), totals + matrix.sum(0))


def test_serving_a_table_of_jobs() -> None:
    calls: list[tuple[int, ...]] = []
    first, second = (SimpleNamespace(address=address) for address in (7, 8))
    jobs: Any = [[(first, (1, 2)), (second, (3,))], [], [(first, (4,))]]
    memory = Memory()
    memory.functions = {n: lambda *arguments, n=n: calls.append((n, *arguments[:2])) for n in (7, 8)}
    interpret(serve, memory, memory.array("table", make_table(jobs)))
    assert calls == [(7, 1, 2), (8, 3, 0), (7, 4, 0)]


# What the interpreter refuses


@kernel
def double(x: Ptr, y: Ptr, vectors: Int) -> None:
    with loop(vectors) as n:
        store(y + n * LANES, load(x + n * LANES) * 2.0)


def run_double(vectors: int, x_size: int = 2 * LANES, y_size: int = 2 * LANES) -> Memory:
    memory = Memory()
    addresses = memory.array("x", np.ones(x_size, np.float32)), memory.empty("y", y_size)
    interpret(double, memory, *addresses, vectors)
    return memory


def test_an_interpreted_kernel_computes() -> None:
    assert (run_double(2).read("y") == 2).all()


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((3, 2 * LANES, 9 * LANES), rf"double \(test_interpreter.py:\d+\) reads numbers {2 * LANES} to .* of x, which"),
        ((2, 9 * LANES, 2 * LANES - 1), rf"double \(.*\) writes numbers {LANES} to {2 * LANES - 1} of y, which has"),
    ],
)
def test_an_access_past_the_end_is_an_error(sizes: tuple[int, int, int], message: str) -> None:
    with pytest.raises(MemoryAccessError, match=message):
        run_double(*sizes)


def test_numbers_that_were_never_written_cannot_be_read() -> None:
    with pytest.raises(MemoryAccessError, match=f"the caller reads number {LANES} of y, which was never written"):
        run_double(1).read("y")
    memory = Memory()
    with pytest.raises(MemoryAccessError, match=r"double .* reads number 0 of x, which was never written"):
        interpret(double, memory, memory.empty("x", LANES), memory.empty("y", LANES), 1)


def test_an_access_just_before_an_array_is_blamed_on_that_array() -> None:
    memory = Memory()
    x, y = memory.array("x", np.ones(LANES, np.float32)), memory.empty("y", LANES)
    with pytest.raises(MemoryAccessError, match=rf"writes numbers -1 to {LANES - 2} of y"):
        interpret(double, memory, x, y - NUMBER, 1)


def test_numbers_are_not_integers_and_have_their_places() -> None:
    @kernel
    def read(ptr: IntPtr, x: Ptr) -> None:
        with loop(ptr[0]):
            store(x, load(x))

    memory = Memory()
    x, integers = memory.array("x", np.ones(LANES, np.float32)), memory.array("integers", np.ones(LANES, np.int64))
    interpret(read, memory, integers, x)
    for arguments in ((x, x), (integers, integers), (integers + 1, x), (integers, x + 1)):
        with pytest.raises(MemoryAccessError, match="at byte"):
            interpret(read, memory, *arguments)


def test_the_python_code_of_a_kernel_can_be_read() -> None:
    assert "for i1 in range(argument2):" in python_source(double)


# Planted errors


def mutant(module: ModuleType, correct: str, wrong: str) -> dict[str, Any]:
    """The names in a copy of a module with one mistake."""
    source = Path(str(module.__file__)).read_text()
    assert source.count(correct) == 1
    names: dict[str, Any] = {"__name__": "mutant"}
    exec(compile(source.replace(correct, wrong), str(module.__file__), "exec"), names)
    return names


def run_transpose(kernel: Kernel) -> None:
    memory, shape = Memory(), (LANES + 2, LANES + 1)
    addresses = memory.array("a", normal(*shape)), shape[1] * NUMBER, memory.empty("b", shape[0] * shape[1])
    interpret(kernel, memory, *addresses, shape[0] * NUMBER, *shape)
    memory.read("b")


def run_zero_columns(kernel: Kernel) -> None:
    memory = Memory()
    interpret(kernel, memory, memory.empty("matrix", 3 * 5), 5 * NUMBER, 3, 5)


def run_product(kernel: Kernel) -> None:
    memory, (m, k, vectors) = Memory(), (7, 3, 2)
    a, b = memory.array("a", normal(m, k)), memory.array("b", normal(k, vectors * LANES))
    row, c = vectors * LANES * NUMBER, memory.empty("c", m * vectors * LANES)
    interpret(kernel, memory, a, k * NUMBER, b, row, c, row, m, k, vectors, 0)


def run_add(kernel: Kernel) -> None:
    memory, a = Memory(), normal(2, 3 * LANES)
    interpret(kernel, memory, 2, 3, memory.array("a", a), memory.array("b", a), memory.empty("c", a.size))


def run_weight_gradient(kernel: Kernel) -> None:
    memory, (m, width, samples) = Memory(), (3, LANES + 1, 2)
    dz, x = memory.array("dz", normal(m, LANES)), memory.array("x", normal(samples, 2 * LANES))
    d_weight = memory.empty("d_weight", m * width, padding=LANES)
    interpret(kernel, memory, dz, LANES * NUMBER, x, d_weight, width, m, samples, 0)
    memory.read("d_weight")
    assert np.isnan(memory.padding("d_weight")).all()


MISTAKES: list[tuple[ModuleType, str, Any, str, str, str]] = [
    (_transpose, "transpose", run_transpose, "loop(columns) as j", "loop(columns + 1) as j", "of [ab], which has"),
    (
        _transpose,
        "transpose",
        run_transpose,
        "down * LANES, columns",
        "down * LANES + 1, columns",
        "of b, which was never",
    ),
    (
        _fill,
        "zero_columns",
        run_zero_columns,
        "loop(columns) as j",
        "loop(columns + 1) as j",
        "15 of matrix, which has 15",
    ),
    (_product, "product", run_product, "with loop(k) as n", "with loop(k + 1) as n", "of [ab], which has"),
    (_product, "product", run_product, "count = (m - done)", "count = (m + 1 - done)", "of [abc], which has"),
    (_product, "product", run_product, "(i + 1) * wide", "i * wide", "of [bc], which has"),
    (
        _stack_loops,
        "weight_gradient",
        run_weight_gradient,
        "_weight + m * width)",
        "_weight + m * width + 1)",
        "which has",
    ),
    (
        _stack_loops,
        "weight_gradient",
        run_weight_gradient,
        "_weight + m * width)",
        "_weight + (m * width - 1))",
        "never written",
    ),
    (_elementwise, "add", run_add, "with loop(vectors - done)", "with loop(vectors + 1 - done)", "of [abc], which has"),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=[f"{one[1]}: {one[4]}" for one in MISTAKES])
def test_an_off_by_one_planted_in_a_kernel_is_found(mistake: tuple[ModuleType, str, Any, str, str, str]) -> None:
    module, name, run, correct, wrong, message = mistake

    def named(names: dict[str, Any]) -> Kernel:
        found = names["make_product"]() if name == "product" else names[name]
        assert isinstance(found, Kernel)
        return found

    run(named(vars(module)))
    with pytest.raises(MemoryAccessError, match=message):
        run(named(mutant(module, correct, wrong)))


def test_a_variable_changes_from_iteration_to_iteration() -> None:
    @kernel
    def sum_vectors(x: Ptr, y: Ptr, vectors: Int) -> None:
        total = Variable(Vec.zeros())
        with loop(vectors) as n:
            total.value = total.value + load(x + n * LANES)
        store(y, total.value)

    memory, x = Memory(), normal(3, LANES)
    interpret(sum_vectors, memory, memory.array("x", x), memory.empty("y", LANES), 3)
    assert_close(memory.read("y"), x.sum(0))
