import math
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import nn

from verydeep.errors import UserError
from verydeep.kernels.runtime._eligibility import can_run_conv
from verydeep.models import Conv, Highways, conv_stages, create_model, from_pretrained, multiply_adds, save_pretrained
from verydeep.nn import HighwayConv2d, suggest_gate_bias

# The highway layers of each stage and their feature maps.
LAYOUTS = {
    (1, 4, 4): [(3, 16, 4)],
    (1, 8, 8): [(3, 16, 8), (3, 32, 4)],
    (1, 28, 28): [(3, 16, 28), (3, 32, 14), (3, 64, 7)],
    (3, 32, 32): [(3, 16, 32), (3, 32, 16), (3, 64, 8)],
    (3, 48, 64): [(3, 16, 24), (3, 32, 12), (3, 64, 6)],
    (2, 100, 30): [(3, 16, 100), (3, 32, 50), (3, 64, 25)],
    (4, 256, 256): [(3, 16, 32), (3, 32, 16), (3, 64, 8)],
}


@pytest.mark.parametrize("shape", LAYOUTS, ids=str)
def test_the_image_size_decides_on_the_stages(shape: tuple[int, int, int]) -> None:
    model = create_model("highway-conv", input_shape=shape, classes=5)
    traces = model.trace(torch.randn(2, *shape))
    maps = [tuple(trace.t.shape[1:3]) for trace in traces]
    assert maps == [(width, side) for count, width, side in LAYOUTS[shape] for _ in range(count)]
    assert model(torch.randn(2, *shape)).shape == (2, 5)


def test_large_images_cost_hardly_more() -> None:
    costs = {}
    for side in (32, 256):
        with torch.device("meta"):
            costs[side] = multiply_adds(create_model("highway-conv", input_shape=(3, side, side)))
    assert costs[256] < 1.5 * costs[32]


@pytest.mark.parametrize(("depth", "stages"), [(3, [0, 0, 0]), (5, [1, 1, 0]), (12, [3, 3, 3]), (49, [16, 15, 15])])
def test_depth_counts_the_hidden_layers(depth: int, stages: list[int]) -> None:
    model: Any = create_model("highway-conv", depth=depth, device="meta")
    assert [len(layer.kernels) for layer in model.config.layers if isinstance(layer, Highways)] == stages
    hidden = [module for module in model.layers if isinstance(module, nn.Conv2d | HighwayConv2d)]
    assert depth == model.config.depth == len(hidden)


@pytest.mark.parametrize("depth", [3, 5, 12])
def test_plain_convolutions_take_the_places_of_highway_layers(depth: int) -> None:
    highway: Any = create_model("highway-conv", depth=depth)
    plain: Any = create_model("plain-conv", depth=depth)
    assert plain.highway_depth == 0
    assert plain.config.depth == depth

    def kernels(model: Any) -> list[tuple[int, ...]]:
        maps = [layer.block if isinstance(layer, HighwayConv2d) else layer for layer in model.layers]
        return [tuple(layer.weight.shape) for layer in maps if isinstance(layer, nn.Conv2d)]

    def others(model: Any) -> list[str]:
        return [repr(layer) for layer in model.layers if isinstance(layer, nn.MaxPool2d | nn.Dropout)]

    assert kernels(plain) == kernels(highway)
    assert others(plain) == others(highway)
    assert plain.classifier.weight.shape == highway.classifier.weight.shape


def test_plain_convolutions_are_rectified_and_start_with_he_weights() -> None:
    torch.manual_seed(0)
    model: Any = create_model("plain-conv", width=64)
    for layer, following in pairwise(model.layers):
        if isinstance(layer, nn.Conv2d):
            assert isinstance(following, nn.ReLU)
            assert layer.weight.detach().std().item() == pytest.approx(math.sqrt(2 / (9 * layer.in_channels)), rel=0.1)
            assert layer.bias is not None
            assert not layer.bias.any()


def test_a_highway_and_a_plain_network_of_a_layer_per_stage_are_the_same() -> None:
    found = []
    for name in ("highway-conv", "plain-conv"):
        torch.manual_seed(3)
        found.append(create_model(name, depth=3).eval())
    x = torch.randn(2, 3, 32, 32)
    assert torch.equal(found[0](x), found[1](x))


@pytest.mark.parametrize("shape", LAYOUTS, ids=str)
@pytest.mark.parametrize("layers", [1, 2, 5])
def test_a_caller_can_ask_for_a_number_of_layers_per_stage(shape: tuple[int, int, int], layers: int) -> None:
    layout = conv_stages(shape)
    assert layout.stages == len(LAYOUTS[shape])
    config: Any = create_model(
        "highway-conv", depth=layout.depth(layers), input_shape=shape, classes=5, device="meta"
    ).config
    assert config.depth == layout.depth(layers)
    assert sum(isinstance(layer, Conv) and layer.stride == 2 for layer in config.layers) == layout.halvings
    highways = [len(layer.kernels) for layer in config.layers if isinstance(layer, Highways)]
    assert highways == [layers - 1] * layout.stages


def test_stages_without_layers_and_samples_that_are_no_images_are_refused() -> None:
    with pytest.raises(UserError, match="a stage has at least 1 layer, its plain convolution; got 0"):
        conv_stages((3, 32, 32)).depth(0)
    for shape in ((30,), (3, 0, 32)):
        with pytest.raises(UserError, match="input_shape must be"):
            conv_stages(shape)


def test_settings_are_used() -> None:
    model: Any = create_model("highway-conv", width=32, gate_bias=-4.0, dropout=0.0, classes=3)
    highways = [layer for layer in model.layers if isinstance(layer, HighwayConv2d)]
    assert all((layer.gate_bias == -4.0).all() for layer in highways)
    assert model.classifier.weight.shape == (3, 128)
    assert torch.equal(*(model.train()(torch.ones(1, 3, 32, 32)) for _ in range(2)))  # without dropout
    assert create_model("highway-conv", depth=33, device="meta").config.gate_bias == suggest_gate_bias(30)


def test_highway_layers_run_in_kernels() -> None:
    model: Any = create_model("highway-conv")
    for layer in model.layers:
        if isinstance(layer, HighwayConv2d):
            x = torch.zeros(1, layer.channels, 8, 8)
            assert can_run_conv(layer.kernel_size, x, x)


@pytest.mark.parametrize("name", ["highway-conv", "plain-conv"])
def test_it_is_saved_layer_by_layer(name: str, tmp_path: Any) -> None:
    model = create_model(name, input_shape=(1, 8, 8), classes=4).eval()
    save_pretrained(model, tmp_path)
    x = torch.randn(3, 1, 8, 8)
    assert torch.equal(from_pretrained(tmp_path)(x), model(x))


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"depth": 5, "input_shape": (3, 64, 64), "width": 0}, "width and classes at least 1"),
        ({"depth": 3, "input_shape": (3, 64, 64)}, "depth must be at least 4 for images of shape (3, 64, 64)"),
        ({"input_shape": (30,)}, "use highway-mlp"),
        ({"blocks": 3}, "highway-conv has no setting 'blocks'"),
        ({"dropout": 6.0}, "dropout = 6.0 multiplies"),
    ],
)
def test_bad_settings_are_explained(overrides: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as error:
        create_model("highway-conv", **overrides)
    assert words in str(error.value)
