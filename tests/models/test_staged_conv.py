from typing import Any

import pytest
import torch

from verydeep.errors import UserError
from verydeep.kernels.runtime._eligibility import can_run_conv
from verydeep.models import Highways, create_model, from_pretrained, multiply_adds, save_pretrained
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


@pytest.mark.parametrize(("depth", "stages"), [(4, [0, 0, 0]), (6, [1, 1, 0]), (13, [3, 3, 3]), (50, [16, 15, 15])])
def test_depth_counts_the_layers_with_weights(depth: int, stages: list[int]) -> None:
    config: Any = create_model("highway-conv", depth=depth, device="meta").config
    assert config.depth == depth
    assert [len(layer.kernels) for layer in config.layers if isinstance(layer, Highways)] == stages


def test_settings_are_used() -> None:
    model: Any = create_model("highway-conv", width=32, gate_bias=-4.0, dropout=0.0, classes=3)
    highways = [layer for layer in model.layers if isinstance(layer, HighwayConv2d)]
    assert all((layer.gate_bias == -4.0).all() for layer in highways)
    assert model.classifier.weight.shape == (3, 128)
    assert torch.equal(*(model.train()(torch.ones(1, 3, 32, 32)) for _ in range(2)))  # without dropout
    assert create_model("highway-conv", depth=34, device="meta").config.gate_bias == suggest_gate_bias(30)


def test_highway_layers_run_in_kernels() -> None:
    model: Any = create_model("highway-conv")
    for layer in model.layers:
        if isinstance(layer, HighwayConv2d):
            x = torch.zeros(1, layer.channels, 8, 8)
            assert can_run_conv(layer.kernel_size, x, x)


def test_it_is_saved_layer_by_layer(tmp_path: Any) -> None:
    model = create_model("highway-conv", input_shape=(1, 8, 8), classes=4).eval()
    save_pretrained(model, tmp_path)
    x = torch.randn(3, 1, 8, 8)
    assert torch.equal(from_pretrained(tmp_path)(x), model(x))


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"depth": 5, "input_shape": (3, 64, 64), "width": 0}, "width and classes at least 1"),
        ({"depth": 4, "input_shape": (3, 64, 64)}, "depth must be at least 5 for images of shape (3, 64, 64)"),
        ({"input_shape": (30,)}, "use highway-mlp"),
        ({"blocks": 3}, "highway-conv has no setting 'blocks'"),
        ({"dropout": 6.0}, "dropout = 6.0 multiplies"),
    ],
)
def test_bad_settings_are_explained(overrides: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as error:
        create_model("highway-conv", **overrides)
    assert words in str(error.value)
