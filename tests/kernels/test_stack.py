"""Fused stacks compute what torch's operations do."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from verydeep.errors import UserError
from verydeep.kernels import stack
from verydeep.nn import HighwayStack, PlainStack, ResidualStack

KINDS = ("plain", "residual", "coupled", "independent")
GATELESS = ("plain", "residual")
Stack = HighwayStack | PlainStack | ResidualStack


def make(kind: str, width: int, depth: int, activation: str = "tanh", backend: Any = "fused") -> Stack:
    if kind == "plain":
        return PlainStack(width, depth, activation, backend=backend)
    if kind == "residual":
        return ResidualStack(width, depth, activation, backend=backend)
    return HighwayStack(width, depth, activation, -1.0, kind, backend=backend)  # type: ignore[arg-type]


def pair(kind: str, width: int, depth: int, activation: str = "tanh") -> tuple[Stack, Stack]:
    """A fused stack and its reference, with the same weights, biases away from zero."""
    fused, reference = (make(kind, width, depth, activation, backend) for backend in ("fused", "reference"))
    torch.nn.init.normal_(fused.bias)
    reference.load_state_dict(fused.state_dict())
    return fused, reference


def gradients(module: Stack, x: Tensor, dy: Tensor, **how: Any) -> list[Tensor]:
    """The output, and the gradients of x, weight and bias."""
    x = x.detach().clone().requires_grad_()
    module.zero_grad()
    y = module(x, **how)
    y.backward(dy)
    found = [x.grad, *(p.grad for p in (module.weight, module.bias))]
    return [y.detach(), *(torch.zeros(()) if grad is None else grad for grad in found)]


def assert_close(found: list[Tensor], expected: list[Tensor]) -> None:
    """To float32 rounding; both differ from float64 by up to 1e-5 of the largest number in a tensor."""
    for a, b in zip(found, expected, strict=True):
        scale = max(1.0, float(b.abs().max()))
        torch.testing.assert_close(a / scale, b / scale, rtol=1e-5, atol=2e-5)


@pytest.mark.slow
@settings(max_examples=2000)
@given(data=st.data())
def test_fused_stacks_equal_the_reference_forward_and_backward(data: st.DataObject) -> None:
    draw = data.draw
    width, depth = draw(st.integers(1, 41), "width"), draw(st.integers(1, 5), "depth")
    batch = draw(st.integers(1, 40) | st.sampled_from([1, 104, 105, 250]), "batch")
    kind = draw(st.sampled_from(KINDS), "kind")
    fused, reference = pair(kind, width, depth, draw(st.sampled_from(["tanh", "relu"])))
    closed = set() if kind in GATELESS else draw(st.sets(st.integers(0, depth - 1)), "closed")
    how = {"closed": closed, "first": draw(st.integers(0, depth), "first")}
    fused.recompute = draw(st.booleans(), "recompute")
    torch.manual_seed(draw(st.integers(0, 100), "seed"))
    x, dy = torch.randn(2, batch, width)
    assert_close(gradients(fused, x, dy, **how), gradients(reference, x, dy, **how))
    with torch.no_grad():
        assert_close([fused(x, **how)], [reference(x, **how)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("width", "depth"), [(50, 49), (71, 20), (128, 10), (256, 4)])
def test_the_papers_widths_and_depths(kind: str, width: int, depth: int) -> None:
    fused, reference = pair(kind, width, depth)
    x, dy = torch.randn(2, 100, width)
    found, expected = gradients(fused, x, dy), gradients(reference, x, dy)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5 * float(b.abs().max()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(7,), (2, 7), (3, 2, 7), (0, 7)])
def test_any_number_of_leading_dimensions(kind: str, shape: tuple[int, ...]) -> None:
    fused, reference = pair(kind, 7, 3)
    fused.backend = "auto"  # nothing to compute for an empty batch
    x = torch.randn(shape)
    assert fused(x).shape == shape
    torch.testing.assert_close(fused(x), reference(x))


@pytest.mark.parametrize("change", [lambda x: x.t().contiguous().t(), lambda x: x[::2], lambda x: x.flip(0)])
def test_the_input_may_lie_anyhow_in_memory(change: Callable[[Tensor], Tensor]) -> None:
    fused, reference = pair("coupled", 6, 3)
    x = torch.randn(10, 6)
    torch.testing.assert_close(fused(change(x)), reference(change(x)))
    dy = torch.randn(6, 10).t()
    assert_close(gradients(fused, x, dy), gradients(reference, x, dy))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_stays_so_in_its_sample_alone(kind: str, activation: str, value: float) -> None:
    fused, reference = pair(kind, 5, 3, activation)
    x = torch.randn(9, 5)
    x[4, 2] = value
    found, expected = fused(x), reference(x)
    assert torch.equal(found.isnan(), expected.isnan())
    torch.testing.assert_close(found, expected, equal_nan=True)


def test_a_gate_of_minus_infinity_is_shut_and_of_infinity_open() -> None:
    fused, _ = pair("coupled", 4, 1)
    x = torch.randn(3, 4)
    assert isinstance(fused, HighwayStack)
    fused.gate_bias = -torch.inf
    assert torch.equal(fused(x), x)
    fused.gate_bias = torch.inf
    torch.testing.assert_close(fused(x), torch.tanh(x @ fused.weight[0, :4].t() + fused.bias[0, :4]))


def test_denormal_numbers_are_as_good_as_zero() -> None:
    fused, reference = pair("coupled", 5, 3)
    x = torch.full((3, 5), 1e-40)
    torch.testing.assert_close(fused(x), reference(x))
    assert torch.full((1,), 1e-40).mul(1).item() > 0, "the processor's mode outside the kernel has changed"


def test_recomputing_gives_the_same_bits() -> None:
    fused, _ = pair("independent", 13, 30)
    x, dy = torch.randn(2, 150, 13)
    kept = gradients(fused, x, dy)
    fused.recompute = True
    assert all(torch.equal(a, b) for a, b in zip(gradients(fused, x, dy), kept, strict=True))


def test_inference_keeps_nothing_and_recomputing_little() -> None:
    module, layers = make("coupled", 8, 100), torch.arange(100)
    x = torch.randn(16, 8)
    sizes = [stack(x, module.weight, module.bias, layers, "tanh", segment)[1].numel() for segment in (0, 10, 1)]
    assert sizes == [0, 10 * 16 * 8, (100 * 3 + 1) * 16 * 8]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("segment", [0, 1, 3])
def test_the_operator_passes_torchs_own_checks(kind: str, segment: int) -> None:
    module = make(kind, 6, 4)
    x = torch.randn(5, 6, requires_grad=segment > 0)
    weight, bias = (p.detach().requires_grad_(segment > 0) for p in (module.weight, module.bias))
    torch.library.opcheck(stack, (x, weight, bias, torch.arange(4), module.formula, segment))
    turned = torch.randn(6, 5).t().requires_grad_(segment > 0)
    torch.library.opcheck(stack, (turned, weight, bias, torch.arange(4), module.formula, segment))


@pytest.mark.parametrize("carry", ["coupled", "independent"])
@pytest.mark.parametrize("closed", [(), (0,), (1, 3), (0, 1, 2, 3)])
def test_the_fused_trace_is_the_references(carry: str, closed: tuple[int, ...]) -> None:
    fused, reference = pair(carry, 6, 4)
    assert isinstance(fused, HighwayStack)
    assert isinstance(reference, HighwayStack)
    x = torch.randn(120, 6)
    for found, expected in zip(fused.trace(x, closed), reference.trace(x, closed), strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    ("kind", "closed"),
    [(kind, ()) for kind in KINDS]
    + [(kind, closed) for kind in ("coupled", "independent") for closed in [(0,), (1, 3), (0, 1, 2, 3)]],
)
@pytest.mark.parametrize("backend", ["fused", "reference"])
def test_every_state_leads_to_the_same_output(kind: str, closed: tuple[int, ...], backend: str) -> None:
    stack = dict(zip(("fused", "reference"), pair(kind, 6, 4), strict=True))[backend]
    x = torch.randn(2, 120, 6)
    y = stack(x, closed)
    states = stack.states(x, closed)
    assert len(states) == 5
    assert torch.equal(states[0], x)
    for layer, state in enumerate(states):
        assert torch.equal(stack(state, closed, layer), y)
        if layer in closed:
            assert torch.equal(states[layer + 1], state)


def test_a_second_derivative_is_refused_with_a_reason() -> None:
    x = torch.randn(3, 4, requires_grad=True)
    (dx,) = torch.autograd.grad(make("coupled", 4, 2)(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="reference"):
        dx.sum().backward()


@pytest.mark.parametrize(
    ("change", "x"),
    [
        (lambda module: module.double(), torch.randn(2, 4, dtype=torch.float64)),
        (lambda module: setattr(module, "activation", torch.nn.functional.gelu), torch.randn(2, 4)),
        (lambda module: module.to("meta"), torch.randn(2, 4, device="meta")),
    ],
)
def test_where_kernels_cannot_the_reference_does_or_fused_says_why(change: Callable[[Any], Any], x: Tensor) -> None:
    module = make("coupled", 4, 2)
    change(module)
    with pytest.raises(UserError, match="float32 tensors on the CPU"):
        module(x)
    module.backend = "auto"
    assert module(x).shape == x.shape


def test_an_unknown_backend_is_named() -> None:
    with pytest.raises(UserError, match="backend"):
        make("coupled", 4, 2, backend="numba")


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")  # torch's own, on a first jvp
def test_under_autocast_vmap_and_forward_derivatives_the_reference_does_it() -> None:
    module = make("coupled", 4, 2, backend="auto")
    x = torch.randn(3, 4)
    with torch.autocast("cpu", torch.bfloat16):
        assert module(x).shape == x.shape
    torch.testing.assert_close(torch.func.vmap(module)(x), module(x))
    tangent = torch.func.jvp(module, (x,), (torch.ones_like(x),))[1]
    assert tangent.abs().sum() > 0
    torch.testing.assert_close(torch.func.jacrev(module)(x[0]), torch.autograd.functional.jacobian(module, x[0]))


def test_a_stack_that_was_first_used_in_inference_mode_trains_afterwards() -> None:
    module, x = make("coupled", 3, 1234), torch.randn(2, 3)  # a depth that no other test has used
    with torch.inference_mode():
        module(x)
    module(x).sum().backward()
    assert module.weight.grad is not None
