"""What holds for every kind of highway layer, checked on all of them."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, strategies as st
from torch import Tensor, nn
from torch.autograd import gradcheck, gradgradcheck
from torch.func import functional_call
from torch.utils.flop_counter import FlopCounterMode

from verydeep.errors import UserError
from verydeep.models import create_model
from verydeep.nn import (
    Highway,
    HighwayConv1d,
    HighwayConv2d,
    HighwayConv3d,
    HighwayLinear,
    HighwayStack,
    LSTMHighway,
    Maxout,
    PlainStack,
    RecurrentHighway,
    suggest_gate_bias,
)

Make = Callable[..., nn.Module]
SINGLE: dict[str, tuple[Make, tuple[int, ...]]] = {
    "linear": (lambda **k: HighwayLinear(4, **k), (3, 4)),
    "conv1d": (lambda **k: HighwayConv1d(2, **k), (2, 2, 5)),
    "conv2d": (lambda **k: HighwayConv2d(2, **k), (2, 2, 4, 3)),
    "conv3d": (lambda **k: HighwayConv3d(2, **k), (1, 2, 2, 3, 3)),
}
single = pytest.mark.parametrize("kind", SINGLE)
carries = pytest.mark.parametrize("carry", ["coupled", "independent"])


def make(kind: str, **options: Any) -> tuple[Any, Tensor]:
    factory, shape = SINGLE[kind]
    return factory(**options).double(), torch.randn(shape, dtype=torch.float64)


def check_gradients(layer: nn.Module, *x: Tensor) -> None:
    """First and second derivatives with respect to the input and every parameter."""
    names, parameters = zip(*layer.named_parameters(), strict=True)
    inputs = (*(value.detach().requires_grad_() for value in x), *(p.detach().requires_grad_() for p in parameters))

    def call(*values: Tensor) -> Any:
        return functional_call(layer, dict(zip(names, values[len(x) :], strict=True)), values[: len(x)])

    assert gradcheck(call, inputs)
    assert gradgradcheck(call, inputs)


@single
@carries
def test_derivatives_of_single_layers(kind: str, carry: str) -> None:
    check_gradients(*make(kind, carry=carry, activation="tanh"))


@pytest.mark.slow
@pytest.mark.parametrize("out", [2, 6])
def test_derivatives_of_layers_that_change_the_width(out: int) -> None:
    check_gradients(HighwayLinear(4, out_width=out).double(), torch.randn(3, 4, dtype=torch.float64))
    conv = HighwayConv2d(3, activation="tanh", out_channels=out, stride=2).double()
    check_gradients(conv, torch.randn(1, 3, 3, 4, dtype=torch.float64))


@pytest.mark.slow
@pytest.mark.parametrize(
    "layer",
    [
        HighwayStack(3, 3),
        HighwayStack(3, 2, carry="independent"),
        PlainStack(3, 3),
        LSTMHighway(3, 3),
        Highway(nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 3), nn.Sigmoid())),
        Maxout(3),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_derivatives_of_stacks_and_wrappers(layer: nn.Module) -> None:
    x = torch.randn(2, 3, dtype=torch.float64)
    if isinstance(layer, Maxout):
        assert gradcheck(layer, (x.requires_grad_(),))
    else:
        check_gradients(layer.double(), x)


@pytest.mark.slow
@carries
def test_derivatives_of_the_recurrent_layer(carry: Any) -> None:
    layer = RecurrentHighway(2, 3, recurrence_depth=2, carry=carry).double()
    check_gradients(layer, torch.randn(3, 2, 2, dtype=torch.float64), torch.randn(1, 2, 3, dtype=torch.float64))


@single
@given(gate=st.sampled_from([-800.0, 800.0]), activation=st.sampled_from(["tanh", "relu", "elu"]))
def test_gates_forced_shut_or_open_give_equations_4_and_5(kind: str, gate: float, activation: str) -> None:
    layer, x = make(kind, activation=activation)
    layer.gate_bias = gate
    jacobian = torch.autograd.functional.jacobian(layer, x)
    if gate < 0:
        assert torch.equal(layer(x), x)
        identity = torch.eye(x.numel(), dtype=x.dtype).reshape(*x.shape, *x.shape)
        assert torch.equal(jacobian, identity)
    else:
        phi = layer.activation

        def block(x: Tensor) -> Tensor:
            result: Tensor = phi(layer.block(x))
            return result

        torch.testing.assert_close(layer(x), block(x))
        torch.testing.assert_close(jacobian, torch.autograd.functional.jacobian(block, x))


@single
def test_coupled_equals_independent_whose_carry_is_one_minus_t(kind: str) -> None:
    coupled, x = make(kind)
    independent, _ = make(kind, carry="independent")
    state = coupled.state_dict()
    # sigmoid(-z) = 1 - sigmoid(z)
    state |= {"carry.weight": -state["gate.weight"], "carry.bias": -state["gate.bias"]}
    independent.load_state_dict(state)
    torch.testing.assert_close(independent(x), coupled(x))


@single
@carries
def test_one_product_gives_all_pre_activations(kind: str, carry: str) -> None:
    layer, x = make(kind, carry=carry)
    products: list[int] = []

    class Count(FlopCounterMode):
        def _count_flops(self, func_packet: Any, out: Any, args: Any, kwargs: Any) -> Any:
            if func_packet in self.flop_registry:
                products.append(1)
            return super()._count_flops(func_packet, out, args, kwargs)  # type: ignore[no-untyped-call]

    with Count(display=False):
        layer(x)
    assert len(products) == 1


@single
@carries
def test_state_dict_keys_speak_of_block_and_gate(kind: str, carry: str) -> None:
    layer, _ = make(kind, carry=carry)
    parts = ["block", "gate"] + (["carry"] if carry == "independent" else [])
    assert list(layer.state_dict()) == [f"{part}.{name}" for part in parts for name in ("weight", "bias")]


@single
def test_the_gate_bias_reaches_the_gate_and_only_the_gate(kind: str) -> None:
    layer, _ = make(kind, gate_bias=-3.5, carry="independent")
    assert (layer.state_dict()["gate.bias"] == -3.5).all()
    assert not layer.state_dict()["block.bias"].any()
    assert (layer.state_dict()["carry.bias"] == 3.5).all()
    layer.gate_bias = -1.0
    assert (layer.gate_bias == -1.0).all()
    assert not layer.state_dict()["block.bias"].any()


@single
@carries
def test_a_closed_layer_copies_its_input(kind: str, carry: str) -> None:
    layer, x = make(kind, carry=carry)
    assert torch.equal(layer(x, closed=True), x)
    trace = layer.trace(x, closed=True)
    assert torch.equal(trace.y, x)
    assert not trace.t.any()


@single
@carries
def test_a_trace_shows_what_made_the_output(kind: str, carry: str) -> None:
    layer, x = make(kind, carry=carry)
    h, t, c, y = layer.trace(x)
    assert torch.equal(y, layer(x))
    torch.testing.assert_close(y, h * t + x * c)
    torch.testing.assert_close(t, torch.sigmoid(layer.gate(x)))
    if carry == "coupled":
        assert torch.equal(c, 1 - t)


@pytest.mark.slow
@single
def test_layers_compile_to_one_graph(kind: str) -> None:
    layer, x = make(kind)
    compiled: Any = torch.compile(layer, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), layer(x))


@pytest.mark.parametrize("activation", [nn.PReLU(4), torch.sin])
def test_an_activation_may_be_any_callable(activation: Any) -> None:
    layer = HighwayLinear(4, activation)
    x = torch.randn(3, 4)
    torch.testing.assert_close(layer.trace(x).h, activation(layer.block(x)))
    assert ("activation.weight" in layer.state_dict()) == isinstance(activation, nn.Module)


def test_the_gate_activation_can_be_chosen() -> None:
    layer = HighwayConv2d(2, gate_activation="hardsigmoid")
    x = torch.randn(1, 2, 3, 3)
    torch.testing.assert_close(layer.trace(x).t, nn.functional.hardsigmoid(layer.gate(x)))


def test_a_layer_that_widens_carries_x_beside_zeros() -> None:
    layer = HighwayLinear(3, gate_bias=-800.0, out_width=5)
    x = torch.randn(2, 3)
    assert torch.equal(layer(x), torch.cat([x, torch.zeros(2, 2)], 1))
    assert torch.equal(layer(x, closed=True), layer(x))


def test_a_strided_layer_carries_sub_sampled_maps() -> None:
    layer = HighwayConv2d(2, gate_bias=-800.0, stride=2)
    x = torch.randn(1, 2, 5, 6)
    assert torch.equal(layer(x), x[:, :, ::2, ::2])


def test_images_without_a_batch_are_taken_too() -> None:
    layer, x = HighwayConv2d(2), torch.randn(2, 4, 4)
    torch.testing.assert_close(layer(x), layer(x[None])[0])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: HighwayLinear(5)(torch.zeros(2, 4)), "width 5 got x of shape (2, 4)"),
        (lambda: HighwayLinear(0), "width of at least 1, got 0"),
        (lambda: HighwayLinear(5, "tnah"), "did you mean 'tanh'?"),
        (lambda: HighwayLinear(5, 3), "HighwayLinear(5, out_width=3)"),  # type: ignore[arg-type]
        (lambda: HighwayConv2d(5, 6, 3), "write HighwayConv2d(5, 3, out_channels=6)"),  # type: ignore[arg-type]
        (lambda: HighwayStack(5, 3, 2), "name or a callable, got 2"),  # type: ignore[arg-type]
        (lambda: HighwayLinear(5, carry="free"), "unknown carry 'free'; known: coupled, independent"),  # type: ignore[arg-type]
        (lambda: HighwayLinear(5, init="he"), "unknown initialisation 'he'"),
        (lambda: HighwayConv2d(3, 2), "kernel_size must be odd"),
        (lambda: HighwayConv2d(3)(torch.zeros(1, 4, 5, 5)), "3 channels got x of shape (1, 4, 5, 5)"),
        (lambda: HighwayConv1d(3)(torch.zeros(3)), "must be (batch, 3, width)"),
        (lambda: HighwayStack(5, 0), "depth 0"),
        (lambda: HighwayStack(5, -3), "depth -3"),
        (lambda: HighwayStack(5, 3)(torch.zeros(2, 4)), "last dimension must be 5"),
        (
            lambda: HighwayStack(5, 3)(torch.zeros(2, 5), closed={3}),
            "cannot close layer 3: the highway layers are numbered 0 to 2",
        ),
        (lambda: PlainStack(5, 3)(torch.zeros(2, 5), closed={0}), "this PlainStack has no highway layers"),
        (lambda: Maxout(3)(torch.zeros(2, 4)), "multiple of 3"),
        (lambda: Maxout(0), "at least 1 piece"),
    ],
)
def test_bad_input_gets_one_clear_line(call: Callable[[], object], words: str) -> None:
    with pytest.raises(UserError) as error:
        call()
    assert words in str(error.value)
    assert "\n" not in str(error.value)


CLOSABLE: dict[str, tuple[Callable[[], Any], tuple[int, ...], int]] = {
    "HighwayStack": (lambda: HighwayStack(4, 3), (2, 4), 3),
    "independent": (lambda: HighwayStack(4, 3, carry="independent", backend="reference"), (2, 4), 3),
    "LSTMHighway": (lambda: LSTMHighway(4, 3), (2, 4), 3),
    "RecurrentHighway": (lambda: RecurrentHighway(4, 4, 3), (5, 2, 4), 3),
    "MLP": (lambda: create_model("highway-mlp", depth=4, width=4, input_shape=(6,)), (2, 6), 3),
    "ConvNet": (lambda: create_model("highway-mnist-16").eval(), (2, 1, 28, 28), 8),
    "ResidualNet": (lambda: create_model("highway-110", blocks=1).eval(), (2, 3, 32, 32), 3),
}
closable = pytest.mark.parametrize("name", CLOSABLE)


@closable
def test_closed_layers_carry_everywhere_and_traces_show_it_without_gradients(name: str) -> None:
    make, shape, depth = CLOSABLE[name]
    model, x = make(), torch.randn(shape)
    trace = model.trace(x, closed={1})
    rows = trace if isinstance(trace, tuple) and not hasattr(trace, "t") else [*zip(*trace, strict=True)]
    assert len(rows) == depth
    for layer, (h, t, c, y) in enumerate(rows):
        assert h.shape == y.shape
        assert not any(value.requires_grad for value in (h, t, c, y))
        assert bool(t.any()) == (layer != 1)
        if layer == 1:
            assert not h.any()
            assert (c == 1).all()
    same_shape = rows[1][3].shape == rows[0][3].shape  # the first of a wider stage carries x-hat
    assert not same_shape or torch.equal(rows[1][3], rows[0][3])


@closable
@pytest.mark.parametrize("method", ["forward", "trace"])
def test_closing_what_does_not_exist_is_the_same_error_everywhere(name: str, method: str) -> None:
    make, shape, depth = CLOSABLE[name]
    call, x = getattr(make(), method), torch.zeros(shape)
    for wrong in (depth, -1):
        with pytest.raises(UserError, match=f"cannot close layer {wrong}: the highway layers are numbered 0 to"):
            call(x, closed=[0, wrong])
    for wrong_type in (1, True, "1"):
        with pytest.raises(UserError, match="closed must be a set of layer numbers, counted from 0"):
            call(x, closed=wrong_type)


@single
@pytest.mark.parametrize("wrong", [{0}, 1, ()])
def test_a_single_layer_is_closed_by_true_or_false(kind: str, wrong: Any) -> None:
    layer, x = make(kind)
    for call in (layer, layer.trace):
        with pytest.raises(UserError, match="closed must be True or False for a single layer"):
            call(x, closed=wrong)
    assert not any(value.requires_grad for value in layer.trace(x))


def test_the_default_gate_bias_of_a_stack_follows_its_depth() -> None:
    for depth in (1, 10, 1000):
        for kind in (HighwayStack, LSTMHighway):
            assert kind(3, depth).gate_bias.unique().item() == pytest.approx(suggest_gate_bias(depth, "linear"))
    assert HighwayStack(3, 1000, gate_bias=-2.0).initial_gate_bias == -2.0
    assert (HighwayStack(2, 1000, carry="independent").bias[:, 4:] > 6).all()  # the carry gates start open
