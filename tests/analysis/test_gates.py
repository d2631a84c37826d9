"""Gate statistics and class routing: one pass gives what all gates at once would give."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from verydeep.analysis import class_routing, gate_statistics, signal_flow
from verydeep.analysis.activity._activity import Moments, Recorder
from verydeep.analysis.blocks._blocks import InstrumentedModel
from verydeep.data import Split
from verydeep.errors import UserError
from verydeep.models import MLP, MLPConfig, create_model
from verydeep.nn import HighwayLinear, HighwayStack

from ._models import SHAPES, Images, Make, Own, Resized, conv, mlp, shaken, split

EVERY = pytest.mark.parametrize("make", SHAPES)


def batches(data: Split, size: int) -> list[tuple[Tensor, Tensor]]:
    return list(zip(data.x.split(size), data.y.split(size), strict=True))


def activity(model: nn.Module, data: Split) -> list[tuple[Tensor, Tensor]]:
    """Gates and block outputs of every layer for all samples at once, `(sample, block, *positions)`."""
    recorder = Recorder(len(data))
    with torch.no_grad():
        InstrumentedModel(model, data.x[:2]).run(recorder, data.x)
    return [(layer.t.double(), layer.y.double()) for layer in recorder.layers]


@EVERY
def test_streaming_gives_what_the_whole_set_gives(make: Make) -> None:
    model, data = shaken(make), split(53, SHAPES[make])
    found = gate_statistics(model, batches(data, 7), sample=30)
    whole = activity(model, data)
    assert found.samples == 53
    assert len(found.layers) == len(whole)
    for layer, (t, y) in enumerate(whole):
        over = [dim for dim in range(t.dim()) if dim != 1]
        torch.testing.assert_close(torch.from_numpy(found.mean[layer]), t.mean(over), rtol=1e-6, atol=1e-9)
        torch.testing.assert_close(
            torch.from_numpy(found.variance[layer]), t.var(over, correction=0), rtol=1e-4, atol=1e-9
        )
        assert found.open_share[layer] == pytest.approx((t > 0.5).double().mean(over).numpy(), abs=0.01)
        assert found.shut_share[layer] == pytest.approx((t < 0.05).double().mean(over).numpy(), abs=0.01)
        assert found.sample_gates[layer] == pytest.approx(t[30].numpy(), rel=1e-5)
        assert found.sample_outputs[layer] == pytest.approx(y[30].numpy(), rel=1e-4, abs=1e-6)


def test_the_gates_are_those_of_the_stack() -> None:
    model, data = mlp(), split()
    assert isinstance(model.stack, HighwayStack)
    assert model.input is not None
    x = model.activation(model.input(data.x.flatten(1)))
    trace = model.stack.trace(x)
    found = gate_statistics(model, data, sample=4)
    assert np.stack(found.mean) == pytest.approx(trace.t.mean(1).detach().numpy(), rel=1e-5)
    assert np.stack(found.sample_outputs) == pytest.approx(trace.y[:, 4].detach().numpy(), rel=1e-5)
    inputs = torch.cat([x[None], trace.y[:-1]])
    change = (trace.y - inputs).square().mean((1, 2)).sqrt()
    assert found.change == pytest.approx(change.detach().numpy(), rel=1e-5)


def test_feature_maps_of_one_sample_keep_their_positions() -> None:
    found = gate_statistics(shaken(conv), split(5, (1, 16, 16)))
    assert found.sample_gates[0].shape == found.sample_outputs[0].shape == (16, 12, 12)
    assert found.mean[0].shape == (16,)


def test_biases_are_those_of_now_and_of_the_beginning() -> None:
    model = shaken(mlp)
    assert isinstance(model, MLP)
    assert isinstance(model.stack, HighwayStack)
    found = gate_statistics(model, split())
    assert np.array_equal(np.stack(found.bias), model.stack.gate_bias.double().numpy())
    assert np.array_equal(np.stack(found.initial_bias), np.full((5, 7), -0.5))
    own = gate_statistics(Own(), split())
    assert [values[0] for values in own.initial_bias] == [-0.5] * 6
    without = gate_statistics(Resized(), split())
    assert np.isnan(without.initial_bias[0]).all()
    assert without.bias[0].shape == (1,)


def test_moments_do_not_lose_digits_far_from_zero() -> None:
    values = 1e6 + torch.randn(4000, 2, dtype=torch.float64)
    moments = Moments()
    for part in values.split(13):
        moments.add(part)
    torch.testing.assert_close(moments.variance[0], values.var(0, correction=0), rtol=1e-9, atol=0)


def test_a_sample_that_is_not_there_is_refused() -> None:
    for data in (split(60), batches(split(60), 20)):
        with pytest.raises(UserError, match="there is no sample 60: samples are numbered 0 to 59"):
            gate_statistics(mlp(), data, sample=60)


@pytest.mark.parametrize("make", [mlp, conv, Own, Images])
def test_routing_compares_the_means_of_classes(make: Make) -> None:
    model, data = shaken(make), split(61, SHAPES[make])
    found = class_routing(model, batches(data, 9), ("a", "b", "c"))
    assert found.counts.tolist() == [21, 20, 20]
    rows = []
    for layer, (t, _) in enumerate(activity(model, data)):
        gates = t.flatten(2).mean(2) if t.dim() > 2 else t
        rows.append(torch.stack([gates[data.y == c].mean(0) for c in range(3)]))
        assert found.mean[layer] == pytest.approx(gates.mean(0).numpy(), rel=1e-5)
        assert found.difference[layer] == pytest.approx((rows[-1] - gates.mean(0)).numpy(), abs=1e-6)
    means = torch.cat(rows, 1)
    distance = (means[:, None] - means[None]).square().mean(2).sqrt()
    assert found.distance == pytest.approx(distance.numpy(), rel=1e-4, abs=1e-7)
    assert found.linkage.shape == (2, 4)
    assert found.linkage[0, 2] == pytest.approx(distance[~torch.eye(3, dtype=torch.bool)].min().item(), rel=1e-4)


def test_the_standard_error_is_how_much_differences_vary() -> None:
    model = mlp()
    differences, errors = [], []
    for _ in range(200):
        y = torch.arange(60) % 3
        found = class_routing(model, Split(torch.randn(60, 1, 6, 6), y), probe_samples=1)
        differences.append(np.stack(found.difference))
        errors.append(np.stack(found.standard_error))
    varied = np.std(differences, axis=0)
    assert np.mean(varied / np.mean(errors, axis=0)) == pytest.approx(1, abs=0.03)


def test_gates_of_classes_that_differ_tell_them_and_noise_does_not() -> None:
    model = mlp()
    apart = class_routing(model, split(200))
    assert apart.probe_accuracy > 0.65
    assert apart.probe_samples == 200
    noise = class_routing(model, Split(torch.randn(200, 1, 6, 6), torch.arange(200) % 3))
    assert noise.probe_accuracy < 0.5
    assert noise.probe_chance == pytest.approx(67 / 200)
    assert noise.significant < 0.1
    assert apart.significant > 0.5


def test_a_single_class_is_at_no_distance_from_itself() -> None:
    found = class_routing(mlp(), Split(split(40).x, torch.zeros(40, dtype=torch.int64)))
    assert found.distance.tolist() == [[0.0]]
    assert found.linkage.shape == (0, 4)


def test_classes_are_not_compared_all_at_once() -> None:
    classes = 300
    model = MLP(MLPConfig("highway", depth=6, width=7, input_shape=(1, 6, 6), classes=classes))
    data = Split(torch.randn(classes, 1, 6, 6), torch.arange(classes))
    tracemalloc.start()
    found = class_routing(model, data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.distance.shape == (classes, classes)
    assert peak < classes**2 * sum(layer.shape[-1] for layer in found.mean) * 8


def test_an_empty_class_is_left_out() -> None:
    data, model = split(40), mlp()
    y = torch.where(data.y == 1, 0, data.y)
    for given in (Split(data.x, y), [(data.x, y)]):
        found = class_routing(model, given, ("a", "b", "c", "d"))
        assert found.classes == ("a", "c")
        assert found.counts.tolist() == [(y == 0).sum(), (y == 2).sum()]
        assert found.distance.shape == (2, 2)
    same = class_routing(model, Split(data.x, y // 2), ("a", "c"))
    assert np.array_equal(np.stack(found.difference), np.stack(same.difference))
    with pytest.raises(UserError, match="class number 2, but there are names for only 2"):
        class_routing(model, data, ("a", "b"))


def test_a_class_of_one_sample_leaves_the_others_their_errors() -> None:
    data, model = split(41), mlp()
    y = torch.where(data.y == 2, 0, data.y)
    y[0] = 2
    found = class_routing(model, Split(data.x, y))
    known = np.isfinite(np.stack(found.standard_error))
    assert known[:, :2].all()
    assert not known[:, 2].any()
    assert found.significant > 0


def test_signals_and_gradients_are_those_of_the_layers() -> None:
    torch.manual_seed(3)
    layers = [HighwayLinear(36, gate_bias=-0.5) for _ in range(3)]
    model, data = nn.Sequential(nn.Flatten(), *layers), split(40)
    found = signal_flow(model, batches(data, 9), "highway, at initialisation")
    outputs = [model[:2](data.x)]
    for layer in layers[1:]:
        outputs.append(layer(outputs[-1]))
    loss = nn.functional.cross_entropy(outputs[-1], data.y, reduction="sum")
    gradients = torch.autograd.grad(loss, outputs)
    rms = [[v.detach().square().mean().sqrt().item() for v in values] for values in (outputs, gradients)]
    assert found.layers == ("1", "2", "3")
    assert found.activation == pytest.approx(rms[0], rel=1e-5)
    assert found.gradient == pytest.approx(rms[1], rel=1e-5)


def test_plain_networks_lose_gradients_that_highways_keep() -> None:
    shape: dict[str, Any] = {"depth": 100, "width": 20, "input_shape": (1, 6, 6), "classes": 3}
    flows = {name: signal_flow(create_model(name, **shape), split(), name) for name in ("plain-mlp", "highway-mlp")}
    kept = {name: flow.gradient[0] / flow.gradient[-1] for name, flow in flows.items()}
    assert len(flows["plain-mlp"].layers) == len(flows["highway-mlp"].layers) == 99
    assert 3 * kept["plain-mlp"] < kept["highway-mlp"]


def test_other_models_show_their_weights_and_frozen_ones_their_gradients() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 8), nn.ReLU(inplace=True), nn.Linear(8, 3))
    flow = signal_flow(model.requires_grad_(False), split())
    assert flow.layers == ("1", "3")
    assert (flow.gradient > 0).all()
    with pytest.raises(UserError, match="has no highway layers, linear maps or convolutions"):
        signal_flow(nn.Flatten(), split())
