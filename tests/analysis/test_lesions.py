"""Lesions: closing is the identity, and short cuts give what the long way gives."""

from collections.abc import Collection
from itertools import combinations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from verydeep.analysis import depth_usage, evaluate_model, greedy_lesions, lesion_study, pair_lesions, signal_flow
from verydeep.analysis._data import ModelAndData
from verydeep.analysis.blocks._blocks import ForwardMode, InstrumentedModel
from verydeep.analysis.lesions._lesions import LesionRunner
from verydeep.analysis.lesions._replay import can_replay
from verydeep.data import Split
from verydeep.errors import UserError
from verydeep.models import create_model
from verydeep.nn import HighwayLinear, HighwayStack, RecurrentHighway

from ._models import SHAPES, Images, Make, Own, conv, mlp, residual, shaken, split

EVERY = pytest.mark.parametrize("make", SHAPES)


def naive(model: nn.Module, data: Split, closed: Collection[int]) -> tuple[float, float]:
    """Loss and error the long way, with gates forced to 0 from outside wherever that is possible."""
    with torch.no_grad():
        logits = InstrumentedModel(model, data.x[:2]).run(ForwardMode(frozenset(closed)), data.x)
    loss = F.cross_entropy(logits, data.y).item()
    return loss, (logits.argmax(1) != data.y).double().mean().item()


@pytest.mark.parametrize("make", [mlp, conv, residual])
def test_closing_a_layer_here_is_closing_it_in_the_network(make: Make) -> None:
    model, data = shaken(make), split(30, SHAPES[make])
    study = lesion_study(model, data)
    for layer in range(len(study.layers)):
        loss = F.cross_entropy(model(data.x, closed={layer}), data.y).item()
        assert study.loss[layer] == pytest.approx(loss, rel=1e-5)


def test_closing_a_layer_of_ones_own_module_copies_its_input() -> None:
    model = Own().eval()
    x = split().x
    closed = InstrumentedModel(model, x).run(ForwardMode(frozenset({0})), x)
    model.first.forward = lambda x, closed=False: x.clone()  # type: ignore[method-assign]
    assert torch.equal(closed, model(x))


def test_layers_are_numbered_in_the_order_of_the_data() -> None:
    assert lesion_study(Own(), split()).layers == (
        *("first", "any.0"),
        *("stack.0", "stack.1", "stack.2"),
        "narrow",
    )
    assert lesion_study(Images(), split()).layers == ("conv", "wider", "lstm.0", "lstm.1", "lstm.2")


@EVERY
def test_reusing_the_prefix_gives_the_same_bits_as_computing_it_again(make: Make) -> None:
    model, data = shaken(make), split(50, SHAPES[make])
    with torch.no_grad():
        assert can_replay(InstrumentedModel(model, data.x[:2]), data.x)
    subject = ModelAndData.of(model, data)
    layers = range(len(subject.model.layers))
    for closed in (frozenset[int](), frozenset({0})):
        candidates = [layer for layer in layers if layer not in closed]
        quick = LesionRunner(subject, reuse=True).close_each(closed, candidates)
        slow = LesionRunner(subject, reuse=False).close_each(closed, candidates)
        assert quick.baseline == slow.baseline
        assert np.array_equal(quick.loss, slow.loss)
        assert np.array_equal(quick.error, slow.error)


class Sly(nn.Module):
    """Changes a tensor in place behind the back of the module that made it."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.relu = nn.Linear(36, 8), nn.ReLU(inplace=True)
        self.layer, self.head = HighwayLinear(8, gate_bias=0.0), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        before = self.stem(x.flatten(1))
        after = self.relu(before)
        return self.head(self.layer(after + before))  # type: ignore[no-any-return]


def test_a_model_for_which_reuse_would_be_wrong_is_computed_the_long_way() -> None:
    model, data = Sly(), split()
    assert not can_replay(InstrumentedModel(model, data.x[:2]), data.x)
    study = lesion_study(model, data)
    assert study.baseline.loss == pytest.approx(F.cross_entropy(model(data.x), data.y).item(), rel=1e-6)
    assert study.loss[0] == pytest.approx(naive(model, data, {0})[0], rel=1e-6)


class InPlace(Sly):
    def forward(self, x: Tensor) -> Tensor:
        x += 1
        return self.head(self.layer(self.stem(x.flatten(1))))  # type: ignore[no-any-return]


def test_a_model_that_changes_its_input_is_given_copies() -> None:
    model, data = InPlace(), split()
    expected = F.cross_entropy(model(data.x.clone()), data.y).item()
    kept = data.x.clone()
    assert lesion_study(model, data).baseline.loss == pytest.approx(expected, rel=1e-6)
    assert lesion_study(model, [(data.x, data.y)]).baseline.loss == pytest.approx(expected, rel=1e-6)
    assert torch.equal(data.x, kept)


def test_pairs_close_both_layers() -> None:
    model, data = shaken(mlp), split()
    pairs = pair_lesions(model, data)
    for a, b in combinations(range(5), 2):
        expected = naive(model, data, {a, b})
        assert (pairs.loss[a, b], pairs.error[a, b]) == pytest.approx(expected, rel=1e-6)
        assert pairs.loss[b, a] == pairs.loss[a, b]
    assert np.diag(pairs.loss) == pytest.approx(lesion_study(model, data).loss)


def test_the_greedy_order_closes_the_cheapest_layer_each_time() -> None:
    model, data = shaken(mlp), split()
    greedy = greedy_lesions(model, data)
    closed: list[int] = []
    for layer in greedy.order:
        costs = {k: naive(model, data, {*closed, k}) for k in range(5) if k not in closed}
        assert costs[layer] == min(costs.values())
        closed.append(layer)
        assert (greedy.loss[len(closed)], greedy.error[len(closed)]) == pytest.approx(costs[layer], rel=1e-6)
    assert sorted(closed) == [0, 1, 2, 3, 4]


def test_the_order_can_be_chosen_on_a_few_samples_and_among_a_few_layers() -> None:
    model, data = shaken(mlp), split(90)
    few = greedy_lesions(model, data, choosing=20, layers=[1, 3])
    assert sorted(few.order) == [1, 3]
    assert few.samples == 90
    assert few.loss[2] == pytest.approx(naive(model, data, {1, 3})[0], rel=1e-6)
    grouped = greedy_lesions(model, data, group=2)
    assert sorted(grouped.order) == [0, 1, 2, 3, 4]
    alone = lesion_study(model, data).loss
    assert set(grouped.order[:2]) == set(np.argsort(alone)[:2].tolist())


def test_depth_usage_keeps_the_fewest_layers_within_the_tolerance() -> None:
    greedy = greedy_lesions(shaken(mlp), split())
    curve = greedy.__class__(
        greedy.layers, "", 1000, (4, 2, 0, 1, 3), greedy.loss, np.array([0.1, 0.1, 0.103, 0.101, 0.15, 0.5])
    )
    assert depth_usage(curve, 0.0).idle == (4,)
    assert depth_usage(curve, 0.001).idle == (4, 2, 0)
    assert depth_usage(curve, 0.001).kept == (1, 3)
    assert depth_usage(curve, 0.4).kept == ()
    for wrong in (-0.1, 1.0, float("nan")):
        with pytest.raises(UserError, match="tolerance must be at least 0 and less than 1"):
            depth_usage(curve, wrong)


def test_batches_of_ones_own_give_what_a_split_gives() -> None:
    model, data = shaken(mlp), split(50)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(data.x, data.y), batch_size=7)
    expected = lesion_study(model, data)
    assert lesion_study(model, loader).loss == pytest.approx(expected.loss, rel=1e-6)
    with pytest.raises(UserError, match="an iterator can only be used once"):
        lesion_study(model, iter(loader))


class Shared(nn.Module):
    def __init__(self, layer: nn.Module, times: int = 1) -> None:
        super().__init__()
        self.layer, self.times = layer, times

    def forward(self, x: Tensor) -> Tensor:
        x = x.flatten(1)
        for _ in range(self.times):
            x = self.layer(x)
        return x


class Tupled(Shared):
    def forward(self, x: Tensor) -> Tensor:
        return (super().forward(x), x)  # type: ignore[return-value]


class Sequence(Shared):
    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x.flatten(2))[1][0]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (create_model("plain-mlp", depth=3, input_shape=(1, 6, 6)), "this MLP uses no highway layers"),
        (
            Sequence(RecurrentHighway(36, 5, batch_first=True)),
            "except inside a RecurrentHighway, which cannot be analysed",
        ),
        (Shared(HighwayLinear(36), times=2), "'layer' is applied more than once"),
        (Tupled(HighwayStack(36, 2)), r"must return logits of shape \(batch, classes\), \(2, ...\) here; got tuple"),
        (mlp().stack, r"got x of shape \(2, 1, 6, 6\): its last dimension must be 7"),
        (nn.Sequential(nn.Linear(5, 3)), r"fails on samples of shape \(1, 6, 6\): mat1 and mat2 shapes"),
        (create_model("highway-mlp", depth=3, input_shape=(1, 6, 6), classes=2), "class number 2, .* classes 0 to 1"),
    ],
)
def test_what_cannot_be_looked_at_is_refused_in_one_line(model: nn.Module, words: str) -> None:
    with pytest.raises(UserError, match=words) as error:
        lesion_study(model, split())
    assert "\n" not in str(error.value)


def test_no_samples_are_refused() -> None:
    empty = Split(torch.empty(0, 1, 6, 6), torch.empty(0, dtype=torch.int64))
    with pytest.raises(UserError, match="no samples"):
        lesion_study(mlp(), empty)
    with pytest.raises(UserError, match="no samples"):
        lesion_study(mlp(), [])


def test_progress_goes_from_nothing_to_everything() -> None:
    model, data = shaken(mlp), split(50)
    for work in (lesion_study, pair_lesions, greedy_lesions, signal_flow):
        shares: list[float] = []
        work(model, data, progress=shares.append)
        assert shares == sorted(shares)
        assert shares[-1] == pytest.approx(1)


def test_any_model_can_be_measured() -> None:
    model, data = Own().train(), split()
    model.train()
    found = evaluate_model(model, data)
    assert model.training
    assert found.loss == pytest.approx(F.cross_entropy(model.eval()(data.x), data.y).item(), rel=1e-6)


@pytest.mark.parametrize("samples", [2, 10, 40])
def test_lesions_of_a_convolutional_network_take_any_number_of_samples(samples: int) -> None:
    model = create_model("highway-conv", input_shape=(3, 12, 12), classes=2, depth=4, width=16).eval()
    data = Split(torch.randn(samples, 3, 12, 12), torch.arange(samples) % 2)
    assert len(lesion_study(model, data).loss) == model.highway_depth
