"""The fused convolutional highway layer against plain torch."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from verydeep.kernels.conv._conv_op import conv_reference, highway_conv
from verydeep.kernels.ir._processor import LANES


def layer(shape: tuple[int, ...], maps: int = 2, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """x, weight and bias."""
    generator = torch.Generator().manual_seed(seed)
    channels = shape[1]
    weight = torch.randn(maps * channels, channels, 3, 3, generator=generator) * (2 / (9 * channels)) ** 0.5
    return torch.randn(shape, generator=generator), weight, torch.randn(maps * channels, generator=generator)


def fused(x: Tensor, weight: Tensor, bias: Tensor, activation: str) -> Tensor:
    return highway_conv(x, weight, bias, activation, True)[0]  # type: ignore[no-any-return]


def with_gradients(function: Any, values: tuple[Tensor, ...], dy: Tensor, activation: str) -> tuple[Tensor, ...]:
    leaves = [value.detach().requires_grad_() for value in values]
    y = function(*leaves, activation)
    return y, *torch.autograd.grad(y, leaves, dy)


@pytest.mark.slow
@settings(max_examples=150)
@given(
    size=st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(1, 13), st.integers(1, 13)),
    maps=st.sampled_from([2, 3]),
    activation=st.sampled_from(["relu", "tanh"]),
    seed=st.integers(0, 999),
    threads=st.sampled_from([1, 2, 3]),
    last=st.booleans(),
)
def test_equals_plain_torch_within_some_roundings(
    size: tuple[int, int, int, int], maps: int, activation: str, seed: int, threads: int, last: bool
) -> None:
    batch, registers, height, width = size
    x, weight, bias = layer((batch, registers * LANES, height, width), maps, seed)
    dy = torch.randn(x.shape, generator=torch.Generator().manual_seed(seed + 1))
    if last:
        x, dy = (value.to(memory_format=torch.channels_last) for value in (x, dy))
    wanted = with_gradients(conv_reference, tuple(v.double() for v in (x, weight, bias)), dy.double(), activation)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        found = with_gradients(fused, (x, weight, bias), dy, activation)
    finally:
        torch.set_num_threads(before)
    for value, expected in zip(found, wanted, strict=True):
        if activation == "tanh":  # a relu's slope jumps where rounding decides on which side of 0 it is
            torch.testing.assert_close(value.double(), expected, rtol=1e-4, atol=1e-4)
        else:
            error = (value.double() - expected).norm() / expected.norm()
            assert error < 1e-2 if value is not found[0] else error < 1e-5


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_nan_and_infinity_never_get_lost(activation: str, odd: float) -> None:
    x, weight, bias = layer((2, LANES, 9, 9))
    x[0, 3, 4, 4] = odd
    y, expected = fused(x, weight, bias, activation), conv_reference(x, weight, bias, activation)
    assert not y[~expected.isfinite()].isfinite().any()
    torch.testing.assert_close(y[1], expected[1], rtol=1e-4, atol=1e-4)


def test_shut_gates_carry_x_to_the_last_bit() -> None:
    x, weight, bias = layer((3, LANES, 6, 5))
    bias[LANES:] = -800
    assert torch.equal(fused(x, weight, bias, "relu"), x)


def test_inference_keeps_nothing_and_gives_the_same() -> None:
    x, weight, bias = layer((7, 2 * LANES, 11, 6))
    y, z = highway_conv(x, weight, bias, "relu", False)
    assert z.numel() == 0
    assert torch.equal(y, fused(x, weight, bias, "relu"))


@pytest.mark.slow
@pytest.mark.parametrize("keep", [True, False])
def test_torch_finds_nothing_wrong_with_the_operator(keep: bool) -> None:
    values = [value.requires_grad_(keep) for value in layer((2, LANES, 5, 6))]
    torch.library.opcheck(highway_conv, (*values, "tanh", keep), rtol=1e-4, atol=1e-4)


def test_second_derivatives_are_those_of_plain_torch() -> None:
    found = []
    functions: list[Any] = [fused, conv_reference]
    for function in functions:
        values = [value.requires_grad_() for value in layer((1, LANES, 4, 4))]
        first = torch.autograd.grad(function(*values, "tanh").square().sum(), values, create_graph=True)
        found.append(torch.autograd.grad(sum(g.square().sum() for g in first), values))  # type: ignore[arg-type]
    for value, expected in zip(*found, strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_numbers_to_the_last_bit_every_time(threads: int) -> None:
    values = layer((9, 2 * LANES, 7, 7))
    dy = torch.randn(values[0].shape)
    torch.set_num_threads(threads)
    try:
        first, *others = (with_gradients(fused, values, dy, "relu") for _ in range(3))
    finally:
        torch.set_num_threads(1)
    assert all(torch.equal(a, b) for other in others for a, b in zip(first, other, strict=True))
