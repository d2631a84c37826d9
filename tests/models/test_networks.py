import json
import re
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from verydeep.errors import UserError
from verydeep.models import Conv, ConvConfig, Dense, Highways, Pool, build, create_model, list_models, multiply_adds
from verydeep.nn import (
    HighwayConv2d,
    HighwayStack,
    LSTMHighway,
    Maxout,
    RecurrentHighway,
    parameter_groups,
    suggest_gate_bias,
)

# Counted from the published layer lists, independently of this code.
COUNTS = {
    ("highway-mlp", 10): 85_660,
    ("highway-mlp", 20): 136_660,
    ("highway-mlp", 50): 289_660,
    ("highway-mlp", 100): 544_660,
    ("plain-mlp", 10): 102_463,
    ("plain-mlp", 20): 153_583,
    ("plain-mlp", 50): 306_943,
    ("plain-mlp", 100): 562_543,
    ("highway-mnist-16", 10): 38_986,
    ("highway-mnist-32", 10): 151_690,
    ("highway-a", 11): 236_328,
    ("highway-b", 19): 2_312_438,
    ("highway-c", 32): 1_251_798,
    ("highway-19-nin", 19): 2_256_838,
    ("residual-mlp", 50): 306_943,  # as many as the plain network
    ("lstm-highway", 50): 274_795,  # four maps of 35 x 35 + 35 per layer
    ("maxout-mnist", 4): 418_714,
    ("dsn-mnist", 9): 349_674,
    ("maxout-cifar", 5): 16_247_830,
    ("nin", 9): 966_986,
    ("dsn", 9): 966_986,
    ("resnet-110", 110): 1_727_962,
    ("highway-110", 110): 2_649_918,
}
ROUNDED = {"fitnet-a": 250e3, "fitnet-b": 2.5e6, "maxout": 9e6, "all-cnn-c": 1.37e6}
MULTIPLICATIONS = {"fitnet-a": 30e6, "fitnet-b": 382e6, "highway-19-nin": 331e6}
MODELS = list_models()
NOT_IN_TABLE_2 = {"dasnet", "dsn-mnist", "lstm-highway", "maxout-cifar", "recurrent-highway", "residual-mlp"}
NAMES = sorted({card.name for card in MODELS})
INFOS = {(card.name, card.layers): card for card in MODELS if "classes" not in card.overrides}


@pytest.mark.parametrize(("network", "count"), COUNTS.items(), ids=str)
def test_parameters_and_layers_are_the_published_ones(network: tuple[str, int], count: int) -> None:
    assert INFOS[network].parameters == count


def test_a_hundred_classes_add_only_to_the_last_layer() -> None:
    counts = {card.name: card.parameters for card in MODELS if card.overrides.get("classes") == 100}
    inputs = {"highway-19-nin": 100, "maxout-cifar": 500, "dasnet": 500, "nin": 192, "dsn": 192, "all-cnn-c": 192}
    for name, count in counts.items():
        ten = next(card.parameters for card in MODELS if card.name == name and not card.overrides)
        assert count == ten + 90 * (inputs[name] + 1)
    assert counts["highway-19-nin"] == 2_265_928
    assert counts.keys() == inputs.keys()
    assert all((card.dataset == "cifar100") == ("classes" in card.overrides) for card in MODELS)


def test_every_network_that_the_paper_names_is_listed() -> None:
    names = {"highway-mlp", "plain-mlp", "residual-mlp", "lstm-highway", "recurrent-highway", "highway-mnist-16"}
    names |= {"highway-mnist-32", "maxout-mnist", "dsn-mnist", "maxout", "fitnet-a", "fitnet-b", "highway-a"}
    names |= {"highway-b", "highway-c", "maxout-cifar", "dasnet", "nin", "dsn", "all-cnn-c", "highway-19-nin"}
    assert names <= set(NAMES)


@pytest.mark.parametrize("name", ROUNDED)
def test_parameters_agree_with_what_was_published_only_rounded(name: str) -> None:
    count = next(card.parameters for card in MODELS if card.name == name)
    assert count == pytest.approx(ROUNDED[name], rel=0.02)


@pytest.mark.parametrize("name", MULTIPLICATIONS)
def test_multiplications_agree_with_the_published_number(name: str) -> None:
    count = next(card.multiply_adds for card in MODELS if card.name == name)
    assert count == pytest.approx(MULTIPLICATIONS[name], rel=0.01)


@pytest.mark.parametrize("depth", [5, 7, 9])
def test_maxout_networks_of_other_depths_have_the_budget_of_fitnet_a(depth: int) -> None:
    card, published = (next(each for each in MODELS if each.name == n) for n in (f"fitnet-a-{depth}", "fitnet-a"))
    assert card.layers == depth
    assert card.parameters == pytest.approx(published.parameters, rel=0.03)
    assert card.multiply_adds == pytest.approx(published.multiply_adds, rel=0.03)


@pytest.mark.parametrize("name", NAMES)
def test_every_network_turns_a_batch_into_logits_and_gradients(name: str) -> None:
    small: dict[str, Any] = {"blocks": 2} if name.endswith("110") else {"depth": 4} if name.endswith("mlp") else {}
    model = create_model(name, **small)
    x = torch.randn(2, *model.input_shape)
    logits = model(x)
    assert logits.shape == (2, 10)
    nn.functional.cross_entropy(logits, torch.tensor([1, 2])).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_network_takes_another_number_of_classes(name: str) -> None:
    with torch.device("meta"):
        model = create_model(name, classes=7)
        assert model(torch.zeros(2, *model.input_shape)).shape == (2, 7)


@pytest.mark.parametrize(
    ("name", "gate_bias"),
    [("highway-mnist-16", -1.0), ("highway-19-nin", -2.0), ("highway-c", -3.0), ("highway-110", -6.0)],
)
def test_gate_biases_are_the_published_ones(name: str, gate_bias: float) -> None:
    model: Any = create_model(name)
    highways = [module for module in model.modules() if hasattr(module, "gate_bias")]
    assert len(highways) == model.highway_depth > 0
    assert all((layer.gate_bias == gate_bias).all() for layer in highways)


def test_a_deep_network_gets_the_gate_bias_that_its_depth_wants() -> None:
    model: Any = create_model("highway-mlp", depth=1000)
    assert (model.stack.gate_bias == suggest_gate_bias(1000, "linear")).all()
    assert (create_model("highway-mlp", gate_bias=-2.0).stack.gate_bias == -2.0).all()  # type: ignore[union-attr]


def test_pooling_rounds_sizes_up() -> None:
    model: Any = create_model("highway-mnist-16").eval()
    sizes = []
    x = torch.zeros(1, 1, 28, 28)
    for layer in model.layers:
        x = layer(x)
        if isinstance(layer, nn.MaxPool2d):
            sizes.append(x.shape[-1])
    assert sizes == [12, 6, 3]


@pytest.mark.parametrize("stride", [1, 2, 3, 5])
def test_pooling_may_leave_out_positions(stride: int) -> None:
    for side in (5, 6, 7, 12):
        model = build(ConvConfig((Conv(2), Pool(2, stride), Dense(3)), (1, side, side + 1), 2))
        assert model(torch.zeros(1, 1, side, side + 1)).shape == (1, 2)


@pytest.mark.parametrize("name", ["highway-mnist-16", "highway-mlp", "highway-110"])
def test_closed_layers_of_a_network_copy_their_input(name: str) -> None:
    small: dict[str, Any] = {"blocks": 2} if name.endswith("110") else {"depth": 4} if name.endswith("mlp") else {}
    model: Any = create_model(name, gate_bias=-1.0, **small).eval()
    x = torch.randn(2, *model.input_shape)
    whole = model(x)
    everything = set(range(model.highway_depth))
    for layer in everything:
        assert not torch.equal(model(x, closed={layer}), whole)
    shut = create_model(name, gate_bias=-1000.0, **small).eval()
    others = {key: value for key, value in model.state_dict().items() if "gate" not in key and "stack" not in key}
    shut.load_state_dict(others, strict=False)
    torch.testing.assert_close(model(x, closed=everything), shut(x))


STACKS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "HighwayStack": (HighwayStack(8, 5), (3, 8)),
    "HighwayStack, reference": (HighwayStack(8, 5, backend="reference"), (3, 2, 8)),
    "LSTMHighway": (LSTMHighway(8, 5), (3, 8)),
    "RecurrentHighway": (RecurrentHighway(3, 8, 5), (4, 2, 3)),
    "highway-mlp": (create_model("highway-mlp", depth=6, width=8, input_shape=(8,)), (3, 8)),
    "highway-mnist-16": (create_model("highway-mnist-16").eval(), (2, 1, 28, 28)),
    "highway-110": (create_model("highway-110", blocks=2).eval(), (2, 3, 32, 32)),
}
stacks = pytest.mark.parametrize("name", STACKS)


@stacks
def test_layers_to_close_are_whole_numbers_in_any_collection(name: str) -> None:
    module, shape = STACKS[name]
    x = torch.randn(shape)
    expected, trace = module(x, closed={1, 2}), module.trace(x, closed={1, 2})
    for closed in ([1, 2, 2], (2, 1), range(1, 3), np.array([1, 2]), {np.int32(1), 2}, torch.tensor([1, 2])):
        for value, wanted in ((module(x, closed=closed), expected), (module.trace(x, closed=closed), trace)):
            torch.testing.assert_close(value, wanted, rtol=0, atol=0)


@stacks
def test_layers_to_close_that_are_no_numbers_are_refused(name: str) -> None:
    module, shape = STACKS[name]
    for closed in (None, 1, True, "1", {"1"}, {1.5}, {None}, [[1]], [True, False], np.array([True, False])):
        for call in (module, module.trace):
            with pytest.raises(UserError, match="closed must be a set of layer numbers, counted from 0"):
                call(torch.randn(shape), closed=closed)


def test_a_name_is_no_configuration_and_a_number_no_shape() -> None:
    with pytest.raises(UserError, match="build takes a configuration, got 'highway-mlp'; create_model takes the name"):
        build("highway-mlp")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="input_shape"):
        create_model("highway-mlp", input_shape=5)


def test_fitnets_are_maxout_networks() -> None:
    model = create_model("fitnet-a")
    assert sum(isinstance(module, Maxout) for module in model.modules()) == 10
    assert not any(isinstance(module, nn.ReLU) for module in model.modules())


def test_a_network_of_one_s_own_is_a_description() -> None:
    base = create_model("highway-a").config
    layers = tuple(Highways(layer.kernels[1:]) if isinstance(layer, Highways) else layer for layer in base.layers)
    model = build(ConvConfig(layers, base.input_shape, base.classes, base.gate_bias))
    assert model.highway_depth == 3
    assert [name for name, module in model.named_modules() if isinstance(module, HighwayConv2d)] == [
        "layers.highway2",
        "layers.highway4",
        "layers.highway6",
    ]


@pytest.mark.parametrize("name", ["highway-mlp", "highway-19-nin", "nin"])
def test_all_parameters_are_in_one_group_of_the_authors_settings(name: str) -> None:
    model = create_model(name)
    groups = parameter_groups(model, 0.1, 0.01)
    assert sum(len(group["params"]) for group in groups) == len(list(model.parameters()))
    assert ("classifier" in {group["name"] for group in groups}) == (name != "nin")


@pytest.mark.parametrize(
    ("name", "overrides", "words"),
    [
        ("higway-a", {}, "unknown model 'higway-a'; did you mean 'highway-a'?"),
        ("highway-mlp", {"dept": 3}, "highway-mlp: unknown setting 'dept'; did you mean 'depth'?"),
        ("highway-mlp", {"depth": -5}, "depth is the number of hidden layers, and must be at least 0; got -5"),
        ("highway-mlp", {"depth": "ten"}, "highway-mlp: depth: expected int, got str 'ten'"),
        ("highway-mlp", {"width": 0}, "must be at least 1, got width 0"),
        ("highway-mlp", {"activation": "rleu"}, "did you mean 'relu'?"),
        ("highway-mnist-16", {"input_shape": (1, 4, 4)}, "too small for the network"),
        ("highway-a", {"input_shape": (3, 32)}, "(channels, height, width)"),
        ("highway-110", {"blocks": 0}, "at least 1"),
        ("highway-mlp", {"gate_bias": 1e308}, "a setting of the network is too large"),
        ("highway-mlp", {"depth": 10**72}, "a network has at most 100,000 hidden layers"),
        ("highway-mlp", {"width": 10**72}, "a setting of the network is too large"),
        ("highway-conv", {"depth": 10**9}, "a network has at most 100,000 hidden layers"),
        ("highway-mlp", {"width": 2**40, "depth": 3}, "not enough memory for this network"),
        ("highway-mlp", {"width": 300_000, "depth": 3}, "not enough memory: the weights of this network need 1,44"),
        ("highway-110", {"blocks": (3, 3)}, "a number for each of the 3 stages, got (3, 3)"),
    ],
)
def test_a_network_that_cannot_be_made_says_why(name: str, overrides: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as error:
        create_model(name, **overrides)
    assert words in str(error.value)


def test_wrong_inputs_are_shown_beside_right_ones() -> None:
    model = create_model("highway-mnist-16")
    with pytest.raises(UserError, match=re.escape("(batch, 1, 28, 28), got (5, 3, 32, 32)")):
        model(torch.zeros(5, 3, 32, 32))
    with pytest.raises(UserError, match="cannot close layer 8: the highway layers are numbered 0 to 7"):
        model(torch.zeros(1, 1, 28, 28), closed={8})
    with pytest.raises(UserError, match="no highway layers"):
        create_model("plain-mlp", depth=3)(torch.zeros(1, 1, 28, 28), closed={0})


def test_everything_inferred_says_so_in_its_card() -> None:
    inferred = {card.name for card in MODELS if card.inferred}
    assert inferred - NOT_IN_TABLE_2 == {
        "fitnet-a",
        "fitnet-a-9",
        "fitnet-a-7",
        "fitnet-a-5",
        "fitnet-b",
        "highway-a",
        "highway-b",
        "highway-c",
        "maxout",
    }


def test_cards_are_plain_data() -> None:
    rows = json.loads(json.dumps([vars(card) for card in MODELS]))
    assert {row["published"] for row in rows if row["name"] == "highway-b"} == {"92.46 (92.28 ± 0.16)"}


def test_counting_leaves_every_module_in_its_mode() -> None:
    model = create_model("highway-mlp", depth=3).train()
    model.stack.eval()  # type: ignore[union-attr]
    multiply_adds(model)
    assert [model.training, model.stack.training, model.classifier.training] == [True, False, True]  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["highway-mlp", "plain-mlp"])
def test_fully_connected_networks_take_flat_samples_too(name: str) -> None:
    model: Any = create_model(name, depth=3, width=5, input_shape=(2, 3, 4))
    x = torch.randn(7, 2, 3, 4)
    assert torch.equal(model(x.flatten(1)), model(x))
    y = torch.zeros(7, dtype=torch.long)
    assert torch.equal(model.backward_cross_entropy(x.flatten(1), y, 1.0)[1], model(x))
    with pytest.raises(UserError, match=re.escape("x of shape (batch, 2, 3, 4) or (batch, 24), got (7, 25)")):
        model(torch.zeros(7, 25))
    with pytest.raises(UserError, match=re.escape("x of shape (batch, 24), got (24,)")):
        create_model(name, depth=3, width=5, input_shape=(24,))(torch.zeros(24))


def test_the_trace_of_a_network_leads_to_its_logits() -> None:
    model: Any = create_model("highway-mlp", depth=4, width=5, gate_bias=-1.0)
    x = torch.randn(3, 784)
    torch.testing.assert_close(model.classifier(model.trace(x, closed={1})[-1].y), model(x, closed={1}))
    assert create_model("plain-mlp", depth=4).trace(x) == ()
    conv: Any = create_model("highway-mnist-16").eval()
    images = torch.randn(2, 1, 28, 28)
    last = nn.Sequential(*list(conv.layers)[-2:])(conv.trace(images)[-1].y)
    torch.testing.assert_close(conv.classifier(last.flatten(1)), conv(images))
