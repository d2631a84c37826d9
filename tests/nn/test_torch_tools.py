"""Layers behave under torch's own tools: factories, export, quantisation, hooks, and what is not supported."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import prune

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
    PlainStack,
    RecurrentHighway,
)

FACTORIES: dict[str, Callable[..., nn.Module]] = {
    "HighwayLinear": lambda **k: HighwayLinear(4, carry="independent", **k),
    "HighwayConv1d": lambda **k: HighwayConv1d(2, **k),
    "HighwayConv2d": lambda **k: HighwayConv2d(2, **k),
    "HighwayConv3d": lambda **k: HighwayConv3d(2, **k),
    "HighwayStack": lambda **k: HighwayStack(4, 3, **k),
    "PlainStack": lambda **k: PlainStack(4, 3, **k),
    "LSTMHighway": lambda **k: LSTMHighway(4, 3, **k),
    "RecurrentHighway": lambda **k: RecurrentHighway(3, 4, **k),
    "highway-mlp": lambda **k: create_model("highway-mlp", depth=3, width=4, **k),
    "plain-mlp": lambda **k: create_model("plain-mlp", depth=3, width=4, **k),
    "highway-mnist-16": lambda **k: create_model("highway-mnist-16", **k),
    "fitnet-a": lambda **k: create_model("fitnet-a", **k),
    "highway-110": lambda **k: create_model("highway-110", blocks=1, **k),
}
factories = pytest.mark.parametrize("name", FACTORIES)


@factories
def test_parameters_are_made_on_the_device_and_with_the_type_that_is_asked_for(name: str) -> None:
    on_meta = FACTORIES[name](device="meta", dtype=torch.bfloat16)
    tensors = [*on_meta.parameters(), *(b for b in on_meta.buffers() if b.is_floating_point())]
    assert {(value.device.type, value.dtype) for value in tensors} == {("meta", torch.bfloat16)}
    assert {value.dtype for value in FACTORIES[name](dtype=torch.float64).parameters()} == {torch.float64}


@factories
def test_naming_the_default_device_and_type_changes_no_bit(name: str) -> None:
    torch.manual_seed(1)
    usual = FACTORIES[name]().state_dict()
    torch.manual_seed(1)
    named = FACTORIES[name](device="cpu", dtype=torch.float32).state_dict()
    assert list(usual) == list(named)
    assert all(torch.equal(usual[key], named[key]) for key in usual)


@factories
def test_a_network_made_on_meta_can_be_initialised_later(name: str) -> None:
    usual, late = FACTORIES[name](), FACTORIES[name](device="meta").to_empty(device="cpu")
    with torch.no_grad():
        for parameter in late.parameters():
            parameter.fill_(float("nan"))
    late.apply(lambda module: getattr(module, "reset_parameters", lambda: None)())
    for (key, value), expected in zip(late.named_parameters(), usual.parameters(), strict=True):
        spread = expected.std().item()
        assert torch.isfinite(value).all(), key
        assert value.mean().item() == pytest.approx(expected.mean().item(), abs=spread + 1e-6), key
        if value.numel() > 500 or spread < 1e-6:
            assert value.std().item() == pytest.approx(spread, rel=0.15, abs=1e-6), key


def test_a_highway_of_other_modules_can_be_initialised_later() -> None:
    gate = nn.Sequential(nn.Linear(4, 4, device="meta"), nn.Sigmoid())
    layer = Highway(nn.Linear(4, 4, device="meta"), gate, gate_bias=-3.0).to_empty(device="cpu")
    layer.reset_parameters()
    assert layer.gate_bias.tolist() == [-3.0] * 4


def test_double_precision_starts_with_double_precision() -> None:
    weight = HighwayLinear(50, dtype=torch.float64).block.weight
    assert not torch.equal(weight, weight.float().double())


EXPORTED: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "single": (lambda: nn.Sequential(HighwayLinear(4), HighwayLinear(4, carry="independent")), (3, 4)),
    "stack": (lambda: HighwayStack(4, 5), (3, 4)),
    "lstm": (lambda: LSTMHighway(4, 3), (3, 4)),
    "conv": (lambda: HighwayConv2d(2), (3, 2, 5, 5)),
    "mlp": (lambda: create_model("highway-mlp", depth=4, width=5, input_shape=(6,)), (3, 6)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPORTED)
def test_layers_can_be_exported_for_any_batch_size(name: str) -> None:
    make, shape = EXPORTED[name]
    model, x = make().eval(), torch.randn(shape)
    exported = torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},)).module()
    other = torch.randn(7, *shape[1:])
    torch.testing.assert_close(exported(other), model(other))


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is:DeprecationWarning")
@pytest.mark.parametrize("module", [HighwayLinear(4), HighwayStack(4, 2), RecurrentHighway(3, 4)])
def test_scripting_is_refused_in_one_line_that_names_export(module: nn.Module) -> None:
    with pytest.raises(UserError, match=r"torch\.jit\.script does not support .*; use torch\.export\.export"):
        torch.jit.script(nn.Sequential(nn.Linear(4, 4), module))
    with pytest.raises(UserError, match="does not support MLP"):
        torch.jit.script(create_model("highway-mlp", depth=3, width=4))


@pytest.mark.filterwarnings("ignore:.*quantiz:DeprecationWarning", "ignore:.*quantiz:UserWarning")
@pytest.mark.parametrize("carry", ["coupled", "independent"])
def test_dynamic_quantisation_gives_nearly_the_same_network(carry: Any) -> None:
    layers = (HighwayLinear(16, carry=carry), HighwayStack(16, 3, carry=carry), nn.Linear(16, 3))
    model, x = nn.Sequential(*layers).eval(), torch.randn(50, 16)
    quantised = torch.ao.quantization.quantize_dynamic(model)
    assert not isinstance(quantised[0].gate, nn.Linear)
    with torch.no_grad():
        assert 0 < (quantised(x) - model(x)).norm() / model(x).norm() < 0.05
    torch.testing.assert_close(quantised[0].trace(x).t, layers[0].trace(x).t, atol=0.02, rtol=0)
    assert torch.equal(quantised[0].gate_bias, layers[0].gate_bias)


@pytest.mark.filterwarnings("ignore:.*quantiz:DeprecationWarning", "ignore:.*quantiz:UserWarning")
def test_a_quantised_network_runs_and_can_be_traced() -> None:
    model, x = create_model("highway-mlp", depth=5, width=16).eval(), torch.randn(20, 784)
    quantised = torch.ao.quantization.quantize_dynamic(model)
    with torch.no_grad():
        assert 0 < (quantised(x) - model(x)).norm() / model(x).norm() < 0.1
    assert len(quantised.trace(x)) == 4


def test_hooks_and_replacements_of_the_maps_inside_a_layer_take_effect() -> None:
    layer: Any = HighwayLinear(4)
    x, seen = torch.randn(3, 4), list[Tensor]()
    before = layer(x)
    handle = layer.gate.register_forward_hook(lambda _module, _args, output: seen.append(output))
    torch.testing.assert_close(layer(x), before)
    torch.testing.assert_close(torch.sigmoid(seen[0]), layer.trace(x).t)
    handle.remove()
    prune.l1_unstructured(layer.block, "weight", 1.0)
    assert not layer.trace(x).h.any()
    layer.gate = nn.Sequential(nn.Linear(4, 2), nn.Linear(2, 4))  # such as a low-rank replacement
    torch.testing.assert_close(layer.trace(x).t, torch.sigmoid(layer.gate(x)))
