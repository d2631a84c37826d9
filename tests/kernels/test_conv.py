"""Fused convolutional layers against plain torch."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from verydeep.kernels.ir._processor import LANES

from ._conv_cases import (
    HIGHWAY,
    MEMBERS,
    Case,
    Member,
    cases,
    errors,
    fused,
    inputs,
    reference,
    with_gradients,
)

RELU, MAXOUT, HIGHWAY_3X3 = Member(3, 1, 1, "relu", 1), Member(3, 1, 1, "maxout", 2), HIGHWAY[2]


def layout(x: Tensor, kind: str) -> Tensor:
    """The same images in another place in memory."""
    if kind == "last":
        return x.to(memory_format=torch.channels_last)
    if kind == "slice":
        return torch.stack([x, x], -1)[..., 0]
    return x


@pytest.mark.slow
@settings(max_examples=150)
@given(
    case=cases(),
    seed=st.integers(0, 999),
    threads=st.sampled_from([1, 2, 3]),
    kind=st.sampled_from(["first", "last", "slice"]),
)
def test_every_member_equals_plain_torch_within_some_roundings(case: Case, seed: int, threads: int, kind: str) -> None:
    values = inputs(case, seed)
    expected = with_gradients(reference, case.member, [value.double() for value in values], None)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        found = with_gradients(fused, case.member, (layout(values[0], kind), *values[1:]), None)
    finally:
        torch.set_num_threads(before)
    y, *gradients = errors(found, expected)
    assert y < 1e-5
    smooth = case.member.kind in ("linear", "highway_tanh")
    assert max(gradients) < (1e-5 if smooth else 2e-2)


@pytest.mark.parametrize("member", [RELU, MAXOUT, *HIGHWAY[:4], Member(3, 1, 2, "relu", 1)], ids=str)
@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_nan_and_infinity_never_get_lost(member: Member, odd: float) -> None:
    x, weight, bias = inputs(Case(member, 2, 20, 20, 9, 9))
    x[0, 3, 4, 4] = odd
    y, expected = fused(member, x, weight, bias), reference(member, x, weight, bias)
    wrong = ~expected.isfinite()
    assert wrong.any()
    assert not y[wrong].isfinite().any()
    torch.testing.assert_close(y[1], expected[1], rtol=1e-4, atol=1e-4)


def test_a_nan_of_any_piece_is_the_maximum() -> None:
    x, weight, bias = inputs(Case(MAXOUT, 1, 3, 2, 4, 4))
    for piece in range(4):
        odd = bias.clone()
        odd[piece] = float("nan")
        assert fused(MAXOUT, x, weight, odd).isnan().sum() == 16


def test_pieces_that_are_equal_share_the_gradient() -> None:
    x, weight, bias = inputs(Case(MAXOUT, 2, 20, 20, 6, 5))
    values = x, weight.zero_(), bias.zero_()
    found, expected = (with_gradients(function, MAXOUT, values, None) for function in (fused, reference))
    assert expected[3].any()
    for value, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(value, wanted, rtol=1e-4, atol=1e-5)


def test_shut_gates_carry_x_to_the_last_bit() -> None:
    for member in HIGHWAY[::2]:
        x, weight, bias = inputs(Case(member, 3, 21, 21, 6, 5))
        bias[21:] = -800
        assert torch.equal(fused(member, x, weight, bias), x)


@pytest.mark.parametrize("member", [RELU, MAXOUT, *HIGHWAY[::3]], ids=str)
def test_inference_keeps_nothing_and_gives_the_same(member: Member) -> None:
    values = inputs(Case(member, 7, 2 * LANES, 2 * LANES, 11, 6))
    leaves = [value.clone().requires_grad_() for value in values]
    y = fused(member, *values)
    assert y.grad_fn is None
    assert torch.equal(y, fused(member, *leaves))
    with torch.no_grad():
        assert torch.equal(y, fused(member, *leaves))


def test_one_image_on_several_threads_has_the_same_bits() -> None:
    for member in (*HIGHWAY[::2], RELU):
        values = inputs(Case(member, 1, 64, 64, 19, 18))
        before = torch.get_num_threads()
        results = []
        for threads in (1, 2, 3, 7):
            torch.set_num_threads(threads)
            results.append(fused(member, *values))
        torch.set_num_threads(before)
        assert all(torch.equal(result, results[0]) for result in results)


@pytest.mark.parametrize("member", [Member(3, 1, 1, "linear", 1), HIGHWAY[1], HIGHWAY[3]], ids=str)
def test_second_derivatives_are_those_of_plain_torch(member: Member) -> None:
    found = []
    functions: list[Any] = [fused, reference]
    for function in functions:
        values = [value.requires_grad_() for value in inputs(Case(member, 1, 9, 9, 4, 4))]
        first = torch.autograd.grad(function(member, *values).square().sum(), values, create_graph=True)
        found.append(torch.autograd.grad(sum(g.square().sum() for g in first), values))  # type: ignore[arg-type]
    for value, expected in zip(*found, strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_numbers_to_the_last_bit_every_time(threads: int) -> None:
    values = inputs(Case(HIGHWAY_3X3, 9, 33, 33, 7, 7))
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        first, *others = (with_gradients(fused, HIGHWAY_3X3, values, None) for _ in range(3))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for other in others for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("channels", [1, 2, 16])
@pytest.mark.parametrize("outs", [1, 16])
def test_gradients_survive_the_next_call(channels: int, outs: int) -> None:
    for member in (RELU, MAXOUT, Member(1, 0, 1, "linear", 1)):
        values = inputs(Case(member, 1, channels, outs, 1, 1))
        found = with_gradients(fused, member, values, None)
        kept = [value.clone() for value in found]
        with_gradients(fused, member, [value + 1 for value in values], None)
        assert all(torch.equal(a, b) for a, b in zip(found, kept, strict=True))


def test_x_without_a_gradient_gets_none() -> None:
    x, weight, bias = inputs(Case(RELU, 2, 3, 20, 6, 6))
    leaves = weight.requires_grad_(), bias.requires_grad_()
    found = torch.autograd.grad(fused(RELU, x, weight, bias).sum(), leaves)
    expected = torch.autograd.grad(reference(RELU, x, weight, bias).sum(), leaves)
    for value, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(value, wanted, rtol=1e-3, atol=1e-3)


def test_there_are_members_of_every_kind() -> None:
    kinds = {member.kind for member in MEMBERS}
    assert kinds == {"linear", "relu", "maxout", "highway_relu", "highway_tanh"}
