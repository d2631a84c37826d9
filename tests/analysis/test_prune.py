"""Pruning: what is left computes what the network with closed layers computes, to the bit."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from verydeep.analysis import (
    DepthUsage,
    depth_usage,
    gate_statistics,
    greedy_lesions,
    highway_layers,
    lesion_study,
    observations,
    prune,
    prune_report,
    removable,
)
from verydeep.analysis.blocks._blocks import ForwardMode, InstrumentedModel
from verydeep.errors import UserError
from verydeep.models import MLP, ConvNet, MLPConfig, Network, from_pretrained, save_pretrained
from verydeep.nn import HighwayLayer, HighwayLinear, HighwayStack

from ._models import SHAPES, Make, Own, conv, mlp, residual, shaken, split


def lesioned(model: nn.Module, names: list[str], x: Tensor) -> Tensor:
    instrumented = InstrumentedModel(model, x[:2])
    return instrumented.run(ForwardMode(frozenset(instrumented.layers.index(name) for name in names)), x)


@pytest.mark.parametrize("make", SHAPES)
def test_pruned_is_lesioned_to_the_bit(make: Make) -> None:
    model, x = shaken(make), split(40, SHAPES[make]).x
    before = copy.deepcopy(model.state_dict())
    names = list(removable(model))
    sets = [names[:1], names[-1:], names[::2], names[1:]]
    for gone in sets if make is mlp else [*sets, names]:
        pruned = prune(model, gone)
        assert type(pruned) is type(model)
        if isinstance(model, MLP | ConvNet):  # kernels run layers together, but not those of an instrumented network
            assert torch.equal(pruned(x), model(x, closed={names.index(name) for name in gone}))
            torch.testing.assert_close(pruned(x), lesioned(model, gone, x), rtol=1e-3, atol=1e-4)
        else:
            assert torch.equal(pruned(x), lesioned(model, gone, x))
        assert len(highway_layers(pruned)) == len(highway_layers(model)) - len(gone)
        if gone:
            assert sum(p.numel() for p in pruned.parameters()) < sum(p.numel() for p in model.parameters())
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


@pytest.mark.parametrize("make", [mlp, conv])
def test_numbers_are_those_of_closed(make: Make) -> None:
    model, x = shaken(make), split(20, SHAPES[make]).x
    assert torch.equal(prune(model, [0, 2])(x), model(x, closed={0, 2}))


@pytest.mark.parametrize("make", [mlp, conv, residual])
def test_our_networks_stay_ordinary_networks(make: Make, tmp_path: Path) -> None:
    model, data = shaken(make), split(30, SHAPES[make])
    pruned = prune(model, removable(model)[1:])
    assert isinstance(pruned, Network)
    save_pretrained(pruned, tmp_path)
    again = from_pretrained(tmp_path)
    assert torch.equal(again(data.x), pruned(data.x))
    assert again.config == pruned.config
    again.train()
    optimiser = torch.optim.SGD(again.parameters(), lr=0.1)
    loss = nn.functional.cross_entropy(again(data.x), data.y)
    loss.backward()
    assert all(p.grad is not None for p in again.parameters())
    optimiser.step()
    assert not torch.equal(again.eval()(data.x), pruned(data.x))


def test_the_smaller_network_shares_nothing_with_the_larger() -> None:
    for model in (shaken(mlp), shaken(conv), shaken(Own)):
        pruned = prune(model, removable(model)[:1])
        own = {p.data_ptr() for p in model.parameters()}
        assert not own & {p.data_ptr() for p in pruned.parameters()}


def test_the_initial_gate_bias_does_not_follow_from_the_new_depth() -> None:
    model = MLP(MLPConfig("highway", depth=60, width=5, input_shape=(4,)))
    pruned = prune(model, range(50))
    assert isinstance(model.stack, HighwayStack)
    assert isinstance(pruned.stack, HighwayStack)
    assert pruned.stack.initial_gate_bias == model.stack.initial_gate_bias


def test_a_fully_connected_network_can_lose_all_highway_layers() -> None:
    model, data = shaken(mlp), split()
    usage = depth_usage(greedy_lesions(model, data), 0.99)
    assert usage.kept == ()
    pruned = prune(model, usage)
    assert isinstance(pruned, MLP)
    assert (highway_layers(pruned), pruned.config.depth) == ((), 1)
    assert torch.equal(pruned(data.x), model(data.x, closed=set(range(5))))
    assert torch.equal(prune(model, range(5))(data.x), pruned(data.x))
    report = prune_report(model, pruned, usage, data)
    assert (report.kept, report.removed) == ((), usage.idle)
    assert report.parameters[1] == sum(p.numel() for p in pruned.parameters())


@pytest.mark.parametrize(
    ("make", "remove", "words"),
    [
        (mlp, [5], "there is no highway layer 5: layers are numbered 0 to 4"),
        (mlp, ["stack.9"], "unknown highway layer 'stack.9'; did you mean"),
        (Own, [0], "are given by name, such as"),
        (residual, ["blocks.2"], "changes the shape and cannot be removed from a ResidualNet"),
    ],
)
def test_layers_that_cannot_be_removed_are_refused(make: Make, remove: list[int | str], words: str) -> None:
    with pytest.raises(UserError, match=words):
        prune(shaken(make), remove)


class Turned(HighwayLayer):
    """A user's own kind of highway layer, which carries x turned round."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(36, 36)

    def transforms(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        return torch.tanh(x), torch.sigmoid(self.gate(x)), None

    def x_hat(self, x: Tensor) -> Tensor:
        return x.flip(-1)


def test_layers_of_ones_own_kind_stay_and_stay_closed() -> None:
    model, data = nn.Sequential(nn.Flatten(), Turned(), HighwayLinear(36)), split()
    assert torch.equal(prune(model, ["1"])(data.x), lesioned(model, ["1"], data.x))
    assert np.isnan(gate_statistics(model, data).bias[0]).all()


def test_the_report_measures_both_networks() -> None:
    model, data, test = shaken(mlp), split(60), split(30)
    greedy = greedy_lesions(model, data, "valid")
    usage = DepthUsage(greedy, 0.3, tuple(sorted(greedy.order[3:])), greedy.order[:3])
    pruned = prune(model, usage)
    report = prune_report(model, pruned, usage, data, test, batch=20)
    wrong = [(network(data.x).argmax(1) != data.y).double().mean().item() for network in (model, pruned)]
    assert [score.error for score in report.chosen] == pytest.approx(wrong)
    assert report.chosen[1].error == pytest.approx(usage.greedy.error[len(usage.idle)])
    assert report.test is not None
    assert report.test[0].error == pytest.approx((model(test.x).argmax(1) != test.y).double().mean().item())
    assert report.parameters == tuple(sum(p.numel() for p in m.parameters()) for m in (model, pruned))
    assert report.multiply_adds[0] - report.multiply_adds[1] == len(usage.idle) * 2 * 7 * 7
    assert report.latency_batch == 20
    assert (report.split, report.removed, report.kept) == ("valid", usage.idle, usage.kept)


def test_the_papers_observations_are_counted() -> None:
    model, data = mlp(), split()
    assert isinstance(model.stack, HighwayStack)
    model.stack.gate_bias = -3.0
    model.stack.gate_bias[0] = 4.0
    gates, lesions = gate_statistics(model, data), lesion_study(model, data)
    usage = depth_usage(greedy_lesions(model, data), 0.1)
    seen = observations(gates, lesions, usage)
    assert seen.biases_fell == pytest.approx(0.8)
    assert seen.open_on_average == pytest.approx(0.2)
    assert seen.open_per_sample == pytest.approx(np.mean(gates.open_share))
    assert seen.active_in_sample == pytest.approx((np.stack(gates.sample_gates) >= 0.05).mean())
    assert seen.bias_with_depth is not None
    assert seen.bias_with_depth < -0.5
    assert seen.activity_with_bias is not None
    assert seen.activity_with_bias > 0.9
    assert seen.stripes_begin is not None
    assert gates.change[: seen.stripes_begin].sum() >= 0.9 * gates.change.sum()
    assert gates.change[: seen.stripes_begin - 1].sum() < 0.9 * gates.change.sum()
    assert seen.most_important is not None
    assert seen.most_important[0] == int(np.argmax(lesions.loss))
    assert seen.layers_used == len(usage.kept)
    assert observations().biases_fell is None
