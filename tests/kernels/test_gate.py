"""The fused highway operation against plain torch."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from verydeep.kernels.gate._gate_op import gate_reference, highway_gate

SHAPES = st.one_of(
    st.tuples(st.tuples(st.integers(1, 9), st.integers(1, 40)), st.just(-1)),
    st.tuples(st.tuples(st.integers(1, 3), st.integers(1, 19), st.integers(1, 9)), st.just(-2)),
    st.tuples(st.tuples(st.integers(1, 3), st.integers(1, 19), st.integers(1, 5), st.integers(1, 5)), st.just(-3)),
    st.tuples(st.tuples(*[st.integers(1, 4)] * 5), st.just(-4)),
)
ODD = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-40, -1e-45, 3e38, -3e38, 88.0, -88.0, 200.0]
FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


def inputs(shape: tuple[int, ...], dim: int, maps: int, seed: int, last: bool = False) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    z_shape = list(shape)
    z_shape[dim] *= maps
    z, x = (torch.randn(size, generator=generator) * 3 for size in (z_shape, shape))
    return (z.to(memory_format=FORMATS[z.dim()]) if last and z.dim() in FORMATS else z), x


def with_gradients(function: Any, z: Tensor, x: Tensor, dy: Tensor, *options: object) -> tuple[Tensor, ...]:
    z, x = z.detach().clone().requires_grad_(), x.detach().clone().requires_grad_()
    y = function(z, x, *options)
    return y, *torch.autograd.grad(y, (z, x), dy)


@settings(max_examples=300)
@given(
    shape=SHAPES,
    maps=st.sampled_from([2, 3]),
    activation=st.sampled_from(["relu", "tanh"]),
    seed=st.integers(0, 999),
    last=st.booleans(),
    strided=st.booleans(),
)
def test_equals_plain_torch_to_rounding(
    shape: tuple[tuple[int, ...], int], maps: int, activation: str, seed: int, last: bool, strided: bool
) -> None:
    size, dim = shape
    z, x = inputs(size, dim, maps, seed, last)
    dy = torch.randn(size, generator=torch.Generator().manual_seed(seed + 1))
    if strided:
        x, dy = (torch.stack([value, value], -1)[..., 0] for value in (x, dy))
    found, wanted = (with_gradients(f, z, x, dy, maps, dim, activation) for f in (highway_gate, gate_reference))
    for value, expected in zip(found, wanted, strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-5, atol=3e-6)


@pytest.mark.slow
@settings(max_examples=300)
@given(
    maps=st.sampled_from([2, 3]),
    activation=st.sampled_from(["relu", "tanh"]),
    odd=st.lists(st.sampled_from(ODD), min_size=4, max_size=4),
    width=st.integers(1, 20),
)
def test_nan_infinity_and_denormals_go_through_as_in_plain_torch(
    maps: int, activation: str, odd: list[float], width: int
) -> None:
    z, x = inputs((2, width), -1, maps, 0)
    z[0, 0], z[0, width], z[0, -1], x[0, 0] = torch.tensor(odd)
    dy = torch.ones(2, width)
    found, wanted = (with_gradients(f, z, x, dy, maps, -1, activation) for f in (highway_gate, gate_reference))
    for value, expected in zip(found, wanted, strict=True):
        finite = expected.isfinite()
        assert torch.equal(value.isfinite(), finite)
        assert value[expected.isnan()].isnan().all()
        largest = max([abs(number) for number in odd if math.isfinite(number)] + [1.0])
        torch.testing.assert_close(value[finite], expected[finite], rtol=1e-5, atol=3e-6 * largest)


@pytest.mark.parametrize("size", [1e-39, 1e-10, 1e-3])
def test_a_small_block_state_keeps_all_its_digits(size: float) -> None:
    z = torch.cat([torch.full((1, 16), size), torch.full((1, 16), 300.0)], 1)
    y = highway_gate(z, torch.zeros(1, 16), 2, -1, "tanh")
    torch.testing.assert_close(y, torch.full((1, 16), size), rtol=1e-5, atol=0)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_shut_gates_carry_x_to_the_last_bit_and_open_ones_give_the_block_state(activation: str) -> None:
    z, x = inputs((5, 33), -1, 2, 1)
    z[:, 33:] = -800
    assert torch.equal(highway_gate(z, x, 2, -1, activation), x)
    z[:, 33:] = 800
    torch.testing.assert_close(highway_gate(z, x, 2, -1, activation), gate_reference(z, x, 2, -1, activation))


@pytest.mark.parametrize("maps", [2, 3])
@pytest.mark.parametrize(
    ("shape", "dim", "last"), [((3, 5), -1, False), ((2, 9, 4, 3), -3, False), ((2, 9, 4, 3), -3, True)]
)
def test_torch_finds_nothing_wrong_with_the_operator(maps: int, shape: tuple[int, ...], dim: int, last: bool) -> None:
    z, x = inputs(shape, dim, maps, 0, last)
    torch.library.opcheck(highway_gate, (z.requires_grad_(), x.requires_grad_(), maps, dim, "tanh"))


def test_the_output_has_the_memory_format_of_z() -> None:
    z, x = inputs((2, 16, 5, 5), -3, 2, 0, last=True)
    assert highway_gate(z, x, 2, -3, "relu").is_contiguous(memory_format=torch.channels_last)
    assert highway_gate(z.contiguous(), x, 2, -3, "relu").is_contiguous()


def test_second_derivatives_are_those_of_plain_torch() -> None:
    z, x = inputs((3, 7), -1, 2, 0)
    found = []
    functions: list[Any] = [highway_gate, gate_reference]
    for function in functions:
        values = [value.clone().requires_grad_() for value in (z, x)]
        y = function(*values, 2, -1, "tanh")
        first = torch.autograd.grad(y.square().sum(), values, create_graph=True)
        found.append(torch.autograd.grad(sum(g.square().sum() for g in first), values))  # type: ignore[arg-type]
    for value, expected in zip(*found, strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-5, atol=1e-5)
