"""Stacks whose products round their factors to bfloat16, in autocast on processors with instructions for it."""

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from verydeep.kernels.runtime import _eligibility
from verydeep.models import MLP, create_model
from verydeep.nn import HighwayStack, PlainStack, ResidualStack

needs_instructions = pytest.mark.skipif(
    not _eligibility.has_bfloat16(), reason="this processor has no instructions for bfloat16 (AVX512-BF16)"
)
KINDS = st.sampled_from(["plain", "residual", "coupled", "independent"])
Stack = HighwayStack | PlainStack | ResidualStack


def make(kind: str, width: int, depth: int, activation: str) -> Stack:
    if kind == "plain":
        return PlainStack(width, depth, activation, backend="fused")
    if kind == "residual":
        return ResidualStack(width, depth, activation, backend="fused")
    return HighwayStack(width, depth, activation, -1.0, kind, backend="fused")  # type: ignore[arg-type]


def gradients(module: Stack, x: Tensor, dy: Tensor, bfloat16: bool) -> list[Tensor]:
    """The output, and the gradients of x, weight and bias."""
    x = x.clone().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
        y = module(x)
    return [y.detach(), *torch.autograd.grad(y, (x, module.weight, module.bias), dy)]


def error(found: Tensor, expected: Tensor) -> float:
    """The size of the difference, relative to the size of what is expected."""
    return float((found - expected).norm() / expected.norm().clamp(min=1e-6))


@needs_instructions
@pytest.mark.slow
@settings(max_examples=300)
@given(
    kind=KINDS,
    width=st.integers(1, 70),
    depth=st.integers(1, 4),
    batch=st.integers(1, 40) | st.sampled_from([100, 105, 250]),
    recompute=st.booleans(),
)
def test_outputs_and_gradients_are_those_of_float32_to_the_rounding(
    kind: str, width: int, depth: int, batch: int, recompute: bool
) -> None:
    torch.manual_seed(0)
    module = make(kind, width, depth, "tanh")
    module.recompute = recompute
    x, dy = torch.randn(2, batch, width)
    found, expected = gradients(module, x, dy, True), gradients(module, x, dy, False)
    # Errors of many units cancel each other.
    assert max(map(error, found, expected)) < (0.02 if width >= 16 else 0.1)
    assert all(value.dtype == torch.float32 for value in found)


@needs_instructions
@pytest.mark.parametrize("kind", ["plain", "residual", "coupled", "independent"])
def test_one_layer_rounds_its_factors_and_nothing_else(kind: str) -> None:
    """As torch does it with the rounded factors in float32: sums differ in their order only."""
    torch.manual_seed(0)
    module = make(kind, 50, 1, "tanh")
    x = torch.randn(100, 50)
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        found = module(x)
    with torch.no_grad():
        module.weight.copy_(module.weight.bfloat16())
        h, *gates = (x.bfloat16().float() @ module.weight[0].T + module.bias[0]).chunk(module.maps, 1)
        t, *c = (torch.sigmoid(gate) for gate in gates) if gates else (None,)
        expected = torch.tanh(h)
        if kind == "residual":
            expected = x + expected
        elif t is not None:
            expected = expected * t + x * (c[0] if c else 1 - t)
    assert error(found, expected) < 1e-6
    assert found.dtype == torch.float32


@needs_instructions
def test_the_bits_do_not_change_and_states_are_those_of_the_output() -> None:
    torch.manual_seed(0)
    module = make("coupled", 33, 6, "relu")
    x, dy = torch.randn(2, 130, 33)
    first, second = gradients(module, x, dy, True), gradients(module, x, dy, True)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    module.recompute = True
    assert all(torch.equal(a, b) for a, b in zip(gradients(module, x, dy, True), first, strict=True))
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        assert torch.equal(module(x), first[0])
        assert torch.equal(module.states(x)[-1], first[0])
        assert isinstance(module, HighwayStack)
        assert torch.equal(module.trace(x).y[-1], first[0])


@needs_instructions
def test_the_first_and_the_last_layer_stay_float32() -> None:
    model = create_model("highway-mlp", depth=2, width=8, input_shape=(20,), classes=3).eval()
    x = torch.randn(5, 20)
    assert isinstance(model, MLP)
    assert isinstance(model.stack, HighwayStack)
    with torch.no_grad():
        model.stack.gate_bias = -torch.inf  # the only layer between copies its input
        with torch.autocast("cpu", torch.bfloat16):
            found = model(x)
        assert torch.equal(found, model(x))
    assert found.dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_without_the_instructions_torch_computes(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_eligibility, "has_bfloat16", lambda: False)
    module = HighwayStack(8, 3)
    with torch.autocast("cpu", dtype):
        assert not module._can_run_fused(torch.randn(4, 8))
        module(torch.randn(4, 8)).sum().backward()
    assert module.weight.grad is not None
