"""Fused max pooling against plain torch."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor, nn

from verydeep import kernels
from verydeep.kernels import Windows, max_pool
from verydeep.kernels.pool._max_pool_op import max_pool_reference
from verydeep.nn import run_max_pool

WINDOWS = [
    *(Windows(2, 2, ceil=True), Windows(3, 2, ceil=True), Windows(4, 2, ceil=True), Windows(2, 2, ceil=False)),
    *(Windows(2, 3, ceil=True), Windows(3, 1, ceil=False), Windows(0, 1, ceil=False)),
]


def images(shape: tuple[int, ...], seed: int = 0, ties: bool = False) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=generator)
    return (x.round() if ties else x).to(memory_format=torch.channels_last)


def with_gradient(function: Any, x: Tensor, windows: Windows) -> tuple[Tensor, Tensor]:
    leaf = x.clone(memory_format=torch.preserve_format).requires_grad_()
    y = function(leaf, windows)
    dy = torch.randn(y.shape, generator=torch.Generator().manual_seed(1))
    return y.detach(), torch.autograd.grad(y, leaf, dy)[0]


@settings(max_examples=150, deadline=None)
@given(
    windows=st.sampled_from(WINDOWS),
    batch=st.integers(1, 4),
    channels=st.integers(1, 40),
    height=st.integers(4, 11),
    width=st.integers(4, 11),
    ties=st.booleans(),
    threads=st.sampled_from([1, 2, 3]),
)
def test_equals_plain_torch_to_the_last_bit(
    windows: Windows, batch: int, channels: int, height: int, width: int, ties: bool, threads: int
) -> None:
    x = images((batch, channels, height, width), ties=ties)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        y, dx = with_gradient(max_pool, x, windows)
    finally:
        torch.set_num_threads(before)
    expected, wanted = with_gradient(max_pool_reference, x, windows)
    assert torch.equal(y, expected)
    torch.testing.assert_close(dx, wanted, rtol=1e-6, atol=1e-6)  # sums of overlapping windows, in another order


def test_many_images_on_several_threads() -> None:
    x = images((9, 33, 32, 31))
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        y, dx = with_gradient(max_pool, x, WINDOWS[0])
    finally:
        torch.set_num_threads(before)
    expected, wanted = with_gradient(max_pool_reference, x, WINDOWS[0])
    assert torch.equal(y, expected)
    assert torch.equal(dx, wanted)


@pytest.mark.parametrize("windows", WINDOWS, ids=str)
def test_nan_and_infinity_never_get_lost(windows: Windows) -> None:
    x = images((2, 17, 8, 8))
    x[0, 3, 4, 4], x[1, 16, 0, 0], x[1, 2, 1, 1] = float("nan"), float("inf"), -float("inf")
    y, dx = with_gradient(max_pool, x, windows)
    expected, wanted = with_gradient(max_pool_reference, x, windows)
    torch.testing.assert_close(y, expected, rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(dx, wanted, rtol=1e-6, atol=1e-6)


def test_second_derivatives_are_those_of_plain_torch() -> None:
    x = images((2, 5, 6, 6)).requires_grad_()
    found = []
    functions: list[Any] = [max_pool, max_pool_reference]
    for function in functions:
        (dx,) = torch.autograd.grad(function(x, WINDOWS[1]).square().sum(), x, create_graph=True)
        found.append(torch.autograd.grad(dx.square().sum(), x)[0])
    torch.testing.assert_close(*found)


@pytest.mark.parametrize(
    ("layer", "fused"),
    [
        (nn.MaxPool2d(3, 2, ceil_mode=True), True),
        (nn.MaxPool2d(2), True),
        (nn.AdaptiveMaxPool2d(1), True),
        (nn.AdaptiveMaxPool2d(2), False),
        (nn.MaxPool2d(3, 2, padding=1), False),
        (nn.MaxPool2d(2, dilation=2), False),
        (nn.MaxPool2d((2, 3)), False),
    ],
    ids=str,
)
def test_layers_of_torch_run_in_kernels_where_these_can(
    layer: Any, fused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def counted(*arguments: Any) -> Tensor:
        calls.append(1)
        return max_pool(*arguments)

    monkeypatch.setattr(kernels, "max_pool", counted)
    x = images((2, 5, 8, 9))
    assert torch.equal(run_max_pool(layer, x), layer(x))
    assert bool(calls) == fused
    assert torch.equal(run_max_pool(layer, x, "reference"), layer(x))
    assert torch.equal(run_max_pool(layer, x.contiguous()), layer(x))
    assert len(calls) == fused
