"""Whole operators in the interpreter: the addresses and sizes that Python code passes to kernels are right, too.

The memory of a kernel call is made of the tensors that were asked for their address, scratch memory of the size that
was asked for, and the documented slack behind buffers. Buffers are full of NaN until somebody writes to them.
"""

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from verydeep.kernels import (
    backward_mlp,
    cross_entropy_gradient,
    dropout,
    highway_gate,
    max_pool,
    open_layers,
    run_stack,
)
from verydeep.kernels.conv import _conv_call
from verydeep.kernels.dense import _stack_call, _stack_op
from verydeep.kernels.dropout import _dropout_op
from verydeep.kernels.gate import _gate_op
from verydeep.kernels.ir._interpreter import interpret
from verydeep.kernels.ir._memory import Memory
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.pool import _max_pool_op
from verydeep.kernels.runtime import _buffers
from verydeep.kernels.runtime._threads import Job
from verydeep.nn import HighwayStack, PlainStack, ResidualStack

from ._conv_cases import MEMBERS, Case, cases, errors, fused, inputs, reference, with_gradients

pytestmark = pytest.mark.slow

ACTIVATIONS = st.sampled_from(["tanh", "relu"])
THREADS = st.sampled_from([1, 3])


MODULES = _stack_call, _conv_call, _gate_op, _max_pool_op, _dropout_op  # that run kernels


class _Interpreted:
    """Runs jobs in the interpreter, on the tensors whose addresses were asked for since the last jobs."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.known: set[int] = set()
        self.sizes: dict[int, int] = {}  # numbers in buffers, by address
        self.calls = 0

    def data_ptr(self, tensor: Tensor) -> int:
        storage = tensor.untyped_storage()
        address = storage.data_ptr()
        if address not in self.known:
            self.known.add(address)
            size = self.sizes.get(address, storage.nbytes() // tensor.element_size())
            kind = ctypes.c_float if tensor.dtype == torch.float32 else ctypes.c_int64
            self.memory.adopt(f"{tuple(tensor.shape)}", _numbers(address, size, kind), address)
        return _data_ptr(tensor)

    def acquire_buffer(self, numbers: int) -> Tensor:
        return self._fill(_buffers.acquire_buffer(numbers), numbers)

    def thread_scratch(self, numbers: int) -> Tensor:
        return self._fill(_buffers.thread_scratch(numbers), numbers)

    def _fill(self, buffer: Tensor, numbers: int) -> Tensor:
        address = buffer.untyped_storage().data_ptr()
        if numbers:
            self.sizes[address] = numbers + _buffers._SLACK
            _numbers(address, self.sizes[address])[:] = np.nan
        return buffer

    def run(self, jobs: Sequence[Job]) -> None:
        for function, arguments in (call for job in jobs for call in job):
            interpret(function.kernel, self.memory, *arguments)
            self.calls += 1
        for address in self.known & self.sizes.keys():
            assert np.isnan(_numbers(address, self.sizes[address])[-_buffers._SLACK :]).all(), "written past a buffer"
        self.memory, self.known = Memory(), set()


_data_ptr = Tensor.data_ptr


def _numbers(address: int, size: int, kind: Any = ctypes.c_float) -> Any:
    """The numbers at an address."""
    return np.ctypeslib.as_array((kind * size).from_address(address))


@contextmanager
def interpreted(threads: int) -> Iterator[None]:
    """Kernels run in the interpreter, as if on this number of threads."""
    interpreter = _Interpreted()
    fakes: list[tuple[Any, str, Any]] = [
        *((module, "run_together", interpreter.run) for module in MODULES),
        *((module, "thread_scratch", interpreter.thread_scratch) for module in (_stack_call, _conv_call)),
        (_stack_call, "acquire_buffer", interpreter.acquire_buffer),
        (Tensor, "data_ptr", lambda tensor: interpreter.data_ptr(tensor)),  # noqa: PLW0108 - becomes a method
        (torch, "get_num_threads", lambda: threads),
    ]
    patches = [patch.object(*fake) for fake in fakes]
    for one in patches:
        one.start()
    try:
        yield
    finally:
        for one in patches:
            one.stop()
    assert interpreter.calls


def assert_close(found: Sequence[Tensor | None], expected: Sequence[Tensor | None], bfloat16: bool = False) -> None:
    """To rounding of the largest number in each tensor, in bfloat16 of all numbers together."""
    for a, b in zip(found, expected, strict=True):
        assert a is not None
        assert b is not None
        if bfloat16:  # relu may let single numbers through that were 0
            assert (a - b).norm() <= 0.1 * b.norm() + 1e-3
            continue
        scale = max(1.0, float(b.detach().abs().max()))
        torch.testing.assert_close(a / scale, b / scale, rtol=1e-4, atol=1e-5, check_dtype=False)


@settings(max_examples=20)
@given(
    kind=st.sampled_from(["plain", "residual", "coupled", "independent"]),
    width=st.integers(1, LANES + 2),
    depth=st.integers(1, 4),
    batch=st.integers(1, 3 * LANES),
    activation=ACTIVATIONS,
    recompute=st.booleans(),
    threads=THREADS,
    bfloat16=st.booleans(),
)
def test_stacks_stay_inside_their_memory(
    kind: str, width: int, depth: int, batch: int, activation: str, recompute: bool, threads: int, bfloat16: bool
) -> None:
    torch.manual_seed(0)
    layers: Any = (ResidualStack if kind == "residual" else PlainStack)(width, depth, activation, backend="reference")
    if kind in ("coupled", "independent"):
        layers = HighwayStack(width, depth, activation, -1.0, kind, backend="reference")  # type: ignore[arg-type]
    torch.nn.init.normal_(layers.bias)
    x, dy = torch.randn(batch, width, requires_grad=True), torch.randn(batch, width)
    expected = layers(x)
    wanted = torch.autograd.grad(expected, [x, layers.weight, layers.bias], dy)
    arguments = x, layers.weight, layers.bias, open_layers(depth), layers.formula, recompute
    with interpreted(threads), patch.object(_stack_op, "multiplies_bfloat16", lambda: bfloat16):
        y = run_stack(*arguments)
        found = torch.autograd.grad(y, [x, layers.weight, layers.bias], dy)
        with torch.no_grad():
            inference = run_stack(*arguments)
    assert_close([y, inference, *found], [expected, expected, *wanted], bfloat16)


@settings(max_examples=10)
@given(
    inputs=st.sampled_from([LANES, 128 + LANES]),
    width=st.integers(1, LANES + 2),
    affine_maps=st.sampled_from([1, 2]),
    classes=st.integers(1, LANES + 2),
    batch=st.integers(1, 2 * LANES),
    activation=ACTIVATIONS,
    threads=THREADS,
    bfloat16=st.booleans(),
)
def test_networks_stay_inside_their_memory(
    inputs: int,
    width: int,
    affine_maps: int,
    classes: int,
    batch: int,
    activation: str,
    threads: int,
    bfloat16: bool,
) -> None:
    torch.manual_seed(0)
    shapes = (2, affine_maps * width, width), (2, affine_maps * width), (width, inputs), (width,), (classes, width)
    parameters = [torch.randn(shape) / shape[-1] ** 0.5 for shape in (*shapes, (classes,))]
    leaves = [parameter.double().requires_grad_() for parameter in parameters]
    x, y = torch.randn(batch, inputs), torch.randint(0, classes, (batch,))
    with interpreted(threads), patch.object(_stack_op, "multiplies_bfloat16", lambda: bfloat16):
        loss, logits, gradients = backward_mlp(
            x, partial(cross_entropy_gradient, y=y, scale=0.5), open_layers(2), activation, *parameters
        )

    value = torch.tanh if activation == "tanh" else torch.relu
    state = value(x.double() @ leaves[2].T + leaves[3])
    for weight, bias in zip(leaves[0], leaves[1], strict=True):
        h, *t = (state @ weight.T + bias).chunk(affine_maps, 1)
        state = torch.lerp(state, value(h), torch.sigmoid(t[0])) if t else value(h)
    expected = state @ leaves[4].T + leaves[5]
    total = torch.nn.functional.cross_entropy(expected, y, reduction="sum")
    wanted = torch.autograd.grad(0.5 * total, leaves)
    assert_close([loss, logits, *gradients], [total, expected, *wanted], bfloat16)


@settings(max_examples=10)
@given(
    shape=st.tuples(st.integers(1, 3), st.integers(1, LANES + 3), st.integers(1, 3), st.integers(1, 3)),
    affine_maps=st.sampled_from([2, 3]),
    activation=ACTIVATIONS,
    last=st.booleans(),
)
def test_highway_operations_stay_inside_their_memory(
    shape: tuple[int, int, int, int], affine_maps: int, activation: str, last: bool
) -> None:
    torch.manual_seed(0)
    batch, channels, *size = shape
    z, x, dy = torch.randn(batch, affine_maps * channels, *size), torch.randn(shape), torch.randn(shape)
    z = (z.to(memory_format=torch.channels_last) if last else z).requires_grad_()
    x.requires_grad_()
    options = affine_maps, -3, activation
    with interpreted(1):
        y = highway_gate(z, x, *options)
        found = torch.autograd.grad(y, [z, x], dy)
    expected = _gate_op.gate_reference(z, x, *options)
    assert_close([y, *found], [expected, *torch.autograd.grad(expected, [z, x], dy)])


@settings(max_examples=25, deadline=None)
@given(case=cases([member for member in MEMBERS if member.taps < 8], channels=LANES + 2, side=5), threads=THREADS)
def test_convolutions_stay_inside_their_memory(case: Case, threads: int) -> None:
    values = inputs(case._replace(batch=min(case.batch, 2)))
    expected = with_gradients(reference, case.member, [value.double() for value in values], None)
    with interpreted(threads):
        found = with_gradients(fused, case.member, values, None)
        with torch.no_grad():
            inference = fused(case.member, *values)
    y, *gradients = errors(found, expected)
    assert y < 1e-5
    assert torch.equal(inference, found[0])
    assert max(gradients) < (1e-5 if case.member.kind in ("linear", "highway_tanh") else 5e-2)


@settings(max_examples=15, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 3), st.integers(1, LANES + 3), st.integers(3, 6), st.integers(3, 6)),
    windows=st.sampled_from([(2, 2, True), (3, 2, True), (3, 1, False), (0, 1, False)]),
    threads=THREADS,
)
def test_max_pooling_stays_inside_its_memory(
    shape: tuple[int, int, int, int], windows: tuple[int, int, bool], threads: int
) -> None:
    torch.manual_seed(0)
    x = torch.randn(shape).round().to(memory_format=torch.channels_last).requires_grad_()
    expected = _max_pool_op.max_pool_reference(x, _max_pool_op.Windows(*windows))
    dy = torch.randn(expected.shape)
    with interpreted(threads), patch.object(_max_pool_op, "_SHARE", 1):
        y = max_pool(x, _max_pool_op.Windows(*windows))
        found = torch.autograd.grad(y, x, dy)
    assert_close([y, *found], [expected, *torch.autograd.grad(expected, x, dy)])


@settings(max_examples=10, deadline=None)
@given(numbers=st.integers(1, 5 * LANES), p=st.sampled_from([0.1, 0.5]), threads=THREADS)
def test_dropout_stays_inside_its_memory(numbers: int, p: float, threads: int) -> None:
    results = []
    for context in (interpreted(threads), nullcontext()):
        torch.manual_seed(0)
        x = torch.randn(numbers, requires_grad=True)
        with context, patch.object(_dropout_op, "_SHARE", 1):
            y = dropout(x, p)
            (dx,) = torch.autograd.grad(y.sum(), x)
        results.append([y.detach(), dx])
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))
