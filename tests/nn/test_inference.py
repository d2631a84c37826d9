"""Plans for inference on few images: they give what the layers give, and notice every change."""

import copy
import gc
import pickle
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from verydeep.analysis import prune
from verydeep.models import Conv, ConvConfig, ConvNet, Dense, Dropout, Highways, Pool, create_model
from verydeep.nn import _inference

LAYERS = (
    *(Dropout(0.2), Conv(20), Highways((3, 1)), Pool(2, 2)),
    *(Conv(12, pieces=2), Conv(8, stride=2), Conv(16, 5, padding=0), Pool(how="mean"), Dense(9)),
)


def network(seed: int = 0) -> Any:
    torch.manual_seed(seed)
    model = ConvNet(ConvConfig(LAYERS, (3, 19, 22)))
    for parameter in model.parameters():
        nn.init.normal_(parameter, 0, 0.2)
    return model.eval()


def images(batch: int = 1) -> Tensor:
    return torch.randn(batch, 3, 19, 22, generator=torch.Generator().manual_seed(1))


def reference(model: Any, x: Tensor, closed: Collection[int] = ()) -> Tensor:
    """The output of torch's operations with the present parameters."""
    other = ConvNet(ConvConfig(LAYERS, (3, 19, 22))).eval()
    other.load_state_dict(model.state_dict())
    other.backend = "reference"
    y: Tensor = other(x, closed=closed)
    return y


def is_planned(model: Any) -> bool:
    return model in _inference._plans


@pytest.fixture(autouse=True)
def without_gradients() -> Any:
    with torch.no_grad():
        yield


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_plan_gives_what_the_layers_give(batch: int, threads: int) -> None:
    model, x, before = network(), images(batch), torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for _ in range(2):
            torch.testing.assert_close(model(x), reference(model, x), rtol=1e-4, atol=1e-4)
        assert is_planned(model)
        torch.testing.assert_close(model(x[:1]), reference(model, x[:1]), rtol=1e-4, atol=1e-4)
    finally:
        torch.set_num_threads(before)


def step(model: Any) -> None:
    with torch.enable_grad():
        torch.optim.SGD(model.parameters(), 0.1, fused=True).zero_grad()
        model(images()).square().sum().backward()
    torch.optim.SGD(model.parameters(), 0.1, fused=True).step()


def through_numpy(model: Any) -> None:
    model.layers.highway2.block.weight.numpy()[1, 2, 0, 1] += 1


def replace_parameter(model: Any) -> None:
    model.layers.conv1.weight = nn.Parameter(torch.randn_like(model.layers.conv1.weight))


def replace_map(model: Any) -> None:
    model.layers.highway3.gate = nn.Conv2d(20, 20, 1)


def in_inference_mode(model: Any) -> None:
    with torch.inference_mode():
        model.layers.highway2.block.weight[0, 0, 0, 0] += 10


def transpose_data(model: Any) -> None:
    weight = model.layers.highway2.block.weight
    weight.data = weight.data.transpose(2, 3)


CHANGES: dict[str, Callable[[Any], object]] = {
    "in place": lambda model: model.layers.highway2.block.weight.mul_(2),
    "bias": lambda model: model.layers.conv4.bias.add_(1),
    "one number": lambda model: model.layers.conv6.weight[0, 0, 0, 0].add_(10),
    "data, in place": lambda model: model.layers.highway2.gate.weight.data.mul_(2),
    "data, assigned": lambda model: setattr(model.layers.conv1.weight, "data", torch.randn(20, 3, 3, 3)),
    "one filter, data": lambda model: model.layers.highway2.block.weight.data[3].zero_(),
    "data, other strides": transpose_data,
    "NumPy": through_numpy,
    "inference mode": in_inference_mode,
    "load_state_dict": lambda model: model.load_state_dict(network(1).state_dict()),
    "optimiser": step,
    "parameter": replace_parameter,
    "module": replace_map,
    "activation": lambda model: setattr(model.layers.highway2, "activation", torch.tanh),
    "classifier": lambda model: model.classifier.weight.zero_(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_of_the_network_is_noticed(change: str) -> None:
    model, x = network(), images()
    before = model(x)
    CHANGES[change](model)
    found = model(x)
    fresh = copy.deepcopy(model)
    fresh.backend = "reference"
    torch.testing.assert_close(found, fresh(x), rtol=1e-4, atol=1e-4)
    assert not torch.allclose(found, before)


@pytest.mark.parametrize("change", ["in place", "data, in place", "NumPy", "optimiser"])
def test_parameters_in_another_memory_format_are_read_at_every_call(change: str) -> None:
    model, x = network().to(memory_format=torch.channels_last), images()
    before = model(x)
    CHANGES[change](model)
    torch.testing.assert_close(model(x), reference(model, x), rtol=1e-4, atol=1e-4)
    assert not torch.allclose(model(x), before)


def test_an_output_is_not_overwritten_by_the_next_call() -> None:
    model = network()
    first = model(images())
    kept = first.clone()
    model(2 * images())
    assert torch.equal(first, kept)
    layers = (Conv(5), Highways((3,)))  # nothing follows the last convolution
    bare = ConvNet(ConvConfig(layers, (3, 4, 4), classes=80, classifier_std=None)).eval()
    first = bare(torch.ones(1, 3, 4, 4))
    kept = first.clone()
    bare(torch.zeros(1, 3, 4, 4))
    assert torch.equal(first, kept)


def test_hooks_training_and_gradients_do_without_a_plan() -> None:
    x = images()
    model, seen = network(), []
    model(x)
    handle = model.layers.highway2.gate.register_forward_hook(lambda *_: seen.append(1))
    torch.testing.assert_close(model(x), reference(model, x), rtol=1e-4, atol=1e-4)
    assert seen == [1]
    handle.remove()
    other = network()
    other.train()(x)
    with torch.enable_grad():
        other.eval()(x).sum().backward()
    other(images(40))
    assert not is_planned(other)


def test_a_network_with_closed_layers_is_planned_like_one_without_them() -> None:
    model, x = network(), images()
    whole, closed = model(x), model(x, closed={0})
    assert is_planned(model)
    torch.testing.assert_close(closed, reference(model, x, {0}), rtol=1e-4, atol=1e-4)
    assert not torch.equal(closed, whole)
    assert torch.equal(model(x), whole)
    assert torch.equal(closed, prune(model, [0])(x))


def test_copies_and_pickles_have_plans_of_their_own() -> None:
    model, x = network(), images()
    y = model(x)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):  # noqa: S301 - our own
        other.layers.conv1.weight.mul_(3)
        torch.testing.assert_close(other(x), reference(other, x), rtol=1e-4, atol=1e-4)
    assert torch.equal(model(x), y)


def test_a_plan_is_forgotten_with_its_network_and_replaced_by_the_next() -> None:
    gc.collect()
    before = len(_inference._plans)
    model = network()
    for batch in (1, 2, 3, 1):
        model(images(batch))
    assert len(_inference._plans) == before + 1
    del model
    gc.collect()
    assert len(_inference._plans) == before


def test_concurrent_calls_give_what_they_give_alone() -> None:
    model = network()
    inputs = [n * images() for n in range(8)]
    expected = [model(x) for x in inputs]

    def run(x: Tensor) -> Tensor:
        with torch.no_grad():
            y: Tensor = model(x)
            return y

    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            for found, wanted in zip(pool.map(run, inputs), expected, strict=True):
                torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)


def test_hooks_are_called_once_per_pass_also_the_first_time() -> None:
    model = create_model("highway-conv", input_shape=(3, 12, 12), classes=2, depth=5, width=16).eval()
    calls: list[object] = []
    assert isinstance(model, ConvNet)
    pool = next(layer for layer in model.layers if isinstance(layer, nn.MaxPool2d))
    pool.register_forward_hook(lambda *_: calls.append(None))
    with torch.no_grad():
        model(torch.randn(10, 3, 12, 12))
    assert len(calls) == 1
