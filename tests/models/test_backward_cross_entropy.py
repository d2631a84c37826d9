"""The core of a training step without autograd puts the gradients where autograd would, to the bit."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from verydeep import kernels
from verydeep.errors import UserError
from verydeep.models import MLP, create_model

Found = tuple[Tensor, Tensor, list[Tensor | None]]


def make(**settings: Any) -> MLP:
    torch.manual_seed(0)
    model = create_model(settings.pop("name", "highway-mlp"), depth=4, width=9, input_shape=(4, 8), **settings)
    assert isinstance(model, MLP)
    return model


def batch(samples: int = 50) -> tuple[Tensor, Tensor, float]:
    torch.manual_seed(1)
    return torch.randn(samples, 4, 8), torch.randint(0, 10, (samples,)), 1 / samples


def by_autograd(model: MLP, x: Tensor, y: Tensor, scale: float) -> Found:
    logits = model(x)
    loss = F.cross_entropy(logits, y, reduction="sum")
    loss.backward(loss.new_tensor(scale))
    return loss.detach(), logits.detach(), [p.grad for p in model.parameters()]


def by_descent(model: MLP, x: Tensor, y: Tensor, scale: float) -> Found:
    loss, logits = model.backward_cross_entropy(x, y, scale)
    assert not loss.requires_grad
    assert not logits.requires_grad
    return loss, logits, [p.grad for p in model.parameters()]


def assert_same(found: Found, expected: Found) -> None:
    for a, b in zip([*found[:2], *found[2]], [*expected[:2], *expected[2]], strict=True):
        assert (a is None and b is None) or (a is not None and b is not None and torch.equal(a, b))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A number for every time that the kernels did it."""
    found: list[int] = []
    run = kernels.backward_mlp

    def counted(*args: Any) -> Any:
        found.append(len(found))
        return run(*args)

    monkeypatch.setattr(kernels, "backward_mlp", counted)
    return found


@pytest.mark.parametrize("samples", [1, 50, 250])
@pytest.mark.parametrize(
    "settings",
    [
        {"name": "plain-mlp"},
        {"name": "plain-mlp", "activation": "relu"},
        {},
        {"activation": "relu"},
        {"carry": "independent"},
    ],
    ids=str,
)
def test_the_bits_are_those_of_autograd(settings: dict[str, Any], samples: int, calls: list[int]) -> None:
    model = make(**settings)
    twin = copy.deepcopy(model)
    assert_same(by_descent(model, *batch(samples)), by_autograd(twin, *batch(samples)))
    assert calls == [0]


def _grad_there(model: MLP) -> None:
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)


def _frozen(model: MLP) -> None:
    assert model.input is not None
    model.input.weight.requires_grad_(False)


def _reference(model: MLP) -> None:
    assert model.stack is not None
    model.stack.backend = "reference"


def _recompute(model: MLP) -> None:
    model.checkpoint_activations()


@pytest.mark.parametrize("change", [_grad_there, _frozen, _reference, _recompute])
def test_where_kernels_alone_would_do_something_else_autograd_does_it(
    change: Callable[[MLP], None], calls: list[int]
) -> None:
    model = make()
    change(model)
    twin = copy.deepcopy(model)
    change(twin)  # a copy has no gradients
    assert_same(by_descent(model, *batch()), by_autograd(twin, *batch()))
    assert calls == []


def test_whoever_watches_is_told(calls: list[int]) -> None:
    watch: list[Callable[[Any, list[str]], Any]] = [
        lambda model, told: model.register_forward_hook(lambda *_: told.append("network")),
        lambda model, told: model.classifier.register_forward_hook(lambda *_: told.append("layer")),
        lambda model, told: model.stack.weight.register_hook(lambda _: told.append("gradient")),
        lambda model, told: model.stack.bias.register_post_accumulate_grad_hook(lambda _: told.append("after")),
    ]
    for begin in watch:
        model, told = make(), list[str]()
        begin(model, told)
        model.backward_cross_entropy(*batch())
        assert len(told) == 1
    assert calls == []


def test_wrong_input_is_refused() -> None:
    x, y, scale = batch()
    with pytest.raises(UserError, match=r"takes x of shape \(batch, 4, 8\)"):
        make().backward_cross_entropy(x[:, :3], y, scale)
    with pytest.raises(IndexError, match="out of bounds"):
        make().backward_cross_entropy(x, y + 1, scale)


class Doubled(torch.nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


class Louder(MLP):
    def forward(self, *arguments: Any) -> Tensor:
        return 2 * super().forward(*arguments)


def another_classifier(model: MLP) -> MLP:
    model.classifier = Doubled(9, 10)
    return model


def two_classifiers(model: MLP) -> MLP:
    model.classifier = torch.nn.Sequential(torch.nn.Linear(9, 9), torch.nn.Linear(9, 10))  # type: ignore[assignment]
    return model


def louder(model: MLP) -> MLP:
    return Louder(model.config)


def tied(_model: MLP) -> MLP:
    model = create_model("highway-mlp", depth=4, width=32, input_shape=(4, 8), classes=32)
    assert isinstance(model, MLP)
    assert model.input is not None
    model.classifier.weight = model.input.weight
    return model


@pytest.mark.parametrize("change", [another_classifier, two_classifiers, louder, tied])
def test_networks_that_were_changed_are_taken_as_they_are(change: Callable[[MLP], MLP], calls: list[int]) -> None:
    model = change(make())
    assert_same(by_descent(model, *batch()), by_autograd(copy.deepcopy(model), *batch()))
    assert not calls
    x = batch()[0].flatten(1)
    assert model.input is not None
    assert model.stack is not None
    plain = model.classifier(model.stack(torch.tanh(model.input(x))))
    factor = 2 if change is louder else 1
    torch.testing.assert_close(model(batch()[0]), factor * plain)


@pytest.mark.parametrize(
    "loss_of", [lambda y: y.square().sum(), lambda y: F.huber_loss(y, y.detach().round(), reduction="sum")]
)
def test_backward_of_any_loss_is_that_of_autograd(loss_of: Callable[[Tensor], Tensor], calls: list[int]) -> None:
    x, _, scale = batch()
    model, other = make(), make()
    loss, outputs = model.backward_loss(x, loss_of, scale)
    assert calls
    expected = other(x)
    total = loss_of(expected)
    total.backward(total.new_tensor(scale))
    found = [p.grad for p in model.parameters()]
    assert_same((loss, outputs, found), (total.detach(), expected.detach(), [p.grad for p in other.parameters()]))


@pytest.mark.parametrize("inputs", [1, 7, 16, 33])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_kernels_take_any_number_of_inputs(inputs: int, activation: str, calls: list[int]) -> None:
    x, y, scale = torch.randn(50, inputs), torch.randint(0, 10, (50,)), 1 / 50
    model = create_model("highway-mlp", depth=4, width=9, input_shape=(inputs,), activation=activation)
    assert isinstance(model, MLP)
    twin, reference = copy.deepcopy(model), copy.deepcopy(model)
    assert reference.stack is not None
    reference.stack.backend = "reference"
    found = by_descent(model, x, y, scale)
    assert_same(found, by_autograd(twin, x, y, scale))
    assert calls == [0]
    expected = by_autograd(reference, x, y, scale)
    for a, b in zip([*found[:2], *found[2]], [*expected[:2], *expected[2]], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    assert model.input is not None
    assert model.input.weight.grad is not None
    assert model.input.weight.grad.is_contiguous()
    with torch.no_grad():
        assert torch.equal(model(x).roll(11, 0), model(x.roll(11, 0)))  # wherever a sample is in the batch
