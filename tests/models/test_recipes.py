"""The networks layer by layer, as their publications describe them, written down a second time."""

import math
from typing import Any

import pytest
import torch
from torch import nn

from verydeep.models import Conv, Dense, Dropout, Highways, Pool, create_model
from verydeep.paper import read_recipe

NINE = (3, 1, 3, 1, 3, 1, 3, 1, 3)
TRUNK = (
    *(Dropout(0.2), Conv(32), Highways((3, 3, 3, 3)), Pool(2, 2)),
    *(Dropout(0.2), Conv(80), Highways((3, 3, 3, 3, 3)), Pool(2, 2)),
    *(Dropout(0.2), Conv(128), Highways((3, 3, 3, 3, 3))),
)
HEAD = (Conv(100, 1), Pool(None, how="mean"), Dropout(0.2))
RECIPES: dict[str, tuple[Any, ...]] = {
    "highway-mnist-32": (
        *(Dropout(0.2), Conv(32, 5, 0), Highways((3, 3)), Pool(3, 2)),
        *(Dropout(0.3), Highways((3, 3, 3)), Pool(3, 2)),
        *(Dropout(0.4), Highways((3, 3, 3)), Pool(2, 2)),
        Dropout(0.5),
    ),
    "highway-19-nin": (*TRUNK, *HEAD),
    "highway-a": (
        *(Dropout(0.2), Conv(16), Highways((3, 3)), Pool(2, 2)),
        *(Dropout(0.2), Conv(32), Highways((3, 3)), Pool(2, 2)),
        *(Dropout(0.2), Conv(64), Highways((3, 3)), Pool(), Dense(250), Dropout(0.2)),
    ),
    "nin": (
        *(Conv(192, 5), Conv(160, 1), Conv(96, 1), Pool(3, 2, "max"), Dropout(0.5)),
        *(Conv(192, 5), Conv(192, 1), Conv(192, 1), Pool(3, 2, "max"), Dropout(0.5)),
        *(Conv(192, 3), Conv(192, 1), Conv(None, 1), Pool(None, how="mean")),
    ),
    "highway-b": (*TRUNK, Pool(), Dense(500), Dropout(0.2)),
    "highway-c": (
        *(Dropout(0.2), Conv(24), Highways(NINE), Pool(2, 2)),
        *(Dropout(0.2), Conv(48), Highways(NINE), Pool(2, 2)),
        *(Dropout(0.2), Conv(96), Highways(NINE), *HEAD),
    ),
}
GATE_BIAS = {"nin": -1, "highway-mnist-32": -1, "highway-19-nin": -2, "highway-a": -1, "highway-b": -2, "highway-c": -3}
CLASSIFIER = {"highway-mnist-32": 0.1, "highway-19-nin": 0.05}


@pytest.mark.parametrize("name", RECIPES)
def test_layers_are_those_of_the_recipe(name: str) -> None:
    config = create_model(name).config
    assert config.layers == RECIPES[name]
    assert config.gate_bias == GATE_BIAS[name]


@pytest.mark.parametrize("name", CLASSIFIER)
def test_classifiers_start_as_the_authors_did(name: str) -> None:
    weights = torch.cat([create_model(name).get_parameter("classifier.weight").flatten() for _ in range(10)])
    assert weights.std().item() == pytest.approx(CLASSIFIER[name], rel=0.1)


def test_the_cifar100_classifier_starts_from_he_s_variance() -> None:
    config = read_recipe("highway-19-nin-cifar100", "paper").model
    assert config.classifier_std == pytest.approx(math.sqrt(2 / 100), abs=1e-4)
    weight = create_model(config.name, classes=100, **config.overrides()).get_parameter("classifier.weight")
    assert weight.std().item() == pytest.approx(math.sqrt(2 / 100), rel=0.05)
    assert read_recipe("highway-19-nin-cifar100", "fast").model.classifier_std == config.classifier_std


def test_all_convolutions_start_with_he_s_variance() -> None:
    model = create_model("highway-19-nin")
    convolutions = [
        module for module in model.modules() if isinstance(module, nn.Conv2d) and module.weight.numel() > 5000
    ]
    assert len(convolutions) > 20
    for module in convolutions:
        fan_in = module.weight[0].numel()
        assert module.weight.std().item() == pytest.approx(math.sqrt(2 / fan_in), rel=0.06)
        assert module.bias is not None
        assert not module.bias.mean() > 0


@pytest.mark.parametrize("name", ["fitnet-a", "fitnet-b", "maxout"])
def test_maxout_networks_start_with_answers_of_a_usual_size(name: str) -> None:
    """He's variance is for rectifiers: ten layers of maxout would make the values a thousand times larger."""
    torch.manual_seed(0)
    model = create_model(name)
    first = next(module for module in model.modules() if isinstance(module, nn.Conv2d))
    assert first.weight.std().item() == pytest.approx(first.weight[0].numel() ** -0.5, rel=0.1)
    with torch.no_grad():
        assert model.eval()(torch.randn(16, 3, 32, 32)).std() < 10


@pytest.mark.parametrize(("name", "inputs"), [("resnet-110", 64), ("highway-110", 56)])
def test_the_110_layer_networks_start_as_their_author_s(name: str, inputs: int) -> None:
    model = create_model(name, blocks=1)
    weights = torch.cat([create_model(name, blocks=1).get_parameter("classifier.weight").flatten() for _ in range(5)])
    assert weights.std().item() == pytest.approx(math.sqrt(2 / inputs), rel=0.1)
    assert model.get_parameter("classifier.weight").shape == (10, inputs)


def test_the_residual_network_adds_zeros_on_both_sides_of_x() -> None:
    """The author's code: F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, planes // 4, planes // 4))."""
    model: Any = create_model("resnet-110", blocks=1)
    block = model.blocks[1]
    nn.init.zeros_(block.block[-1].weight)
    x = torch.rand(2, 16, 8, 8)
    expected = nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 8, 8))
    assert torch.equal(block(x), expected)
    former: Any = create_model("resnet-110", blocks=1, zeros="after")  # as networks of 0.5.0 do
    before = former.blocks[1]
    nn.init.zeros_(before.block[-1].weight)
    assert torch.equal(before(x), nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 0, 16)))


def test_recomputing_activations_counts_a_batch_once() -> None:
    states = []
    for recompute in (False, True):
        torch.manual_seed(0)
        model = create_model("resnet-110", blocks=2)
        if recompute:
            model.checkpoint_activations()
        torch.manual_seed(1)
        model(torch.randn(4, 3, 32, 32)).sum().backward()
        states.append((model.state_dict(), [p.grad for p in model.parameters()]))
    assert all(torch.equal(a, b) for a, b in zip(states[0][0].values(), states[1][0].values(), strict=True))
    torch.testing.assert_close(states[0][1], states[1][1])


def test_every_highway_of_the_110_layer_network_sees_a_batch_once() -> None:
    model = create_model("highway-110", blocks=1)
    model(torch.randn(2, 3, 32, 32))
    counts = {module.num_batches_tracked.item() for module in model.modules() if isinstance(module, nn.BatchNorm2d)}  # type: ignore[union-attr]
    assert counts == {1}
