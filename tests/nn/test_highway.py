from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from verydeep.errors import UserError
from verydeep.nn import Highway
from verydeep.nn.functional import resize


class Gate(nn.Module):
    """One gate for every position of a sequence."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        return torch.sigmoid(self.linear(x))


def linear_gate(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, width), nn.Sigmoid())


@pytest.mark.parametrize(
    ("block", "gate", "shape"),
    [
        (nn.Linear(6, 6), linear_gate(6), (4, 6)),
        (nn.Conv2d(3, 3, 3, padding=1), nn.Sequential(nn.Conv2d(3, 3, 1), nn.Sigmoid()), (2, 3, 5, 5)),
        (nn.GRU(6, 6, batch_first=True), linear_gate(6), (2, 5, 6)),
        (nn.LSTM(6, 6, batch_first=True), Gate(6), (2, 5, 6)),
        (nn.MultiheadAttention(6, 2, batch_first=True), Gate(6), (2, 5, 6)),
        (nn.TransformerEncoderLayer(6, 2, 12, batch_first=True, dropout=0.0), Gate(6), (2, 5, 6)),
    ],
    ids=["linear", "conv", "gru", "lstm", "attention", "transformer"],
)
def test_wraps_any_module(block: nn.Module, gate: nn.Module, shape: tuple[int, ...]) -> None:
    layer = Highway(block, gate, gate_bias=-2.0)
    x = torch.randn(shape)
    h, t, c, y = layer.trace(x)
    torch.testing.assert_close(y, h * t + x * (1 - t))
    torch.testing.assert_close(c, 1 - t)
    layer(x).sum().backward()
    assert all(p.grad is not None for p in layer.parameters())
    layer.gate_bias = -1000.0
    assert torch.equal(layer(x), x)


def test_a_third_module_is_the_carry_gate() -> None:
    block, gate, carry = nn.Linear(3, 3), linear_gate(3), linear_gate(3)
    x = torch.randn(2, 3)
    y = Highway(block, gate, carry)(x)
    torch.testing.assert_close(y, block(x) * gate(x) + x * carry(x))


def test_the_shape_may_change_with_an_x_hat() -> None:
    layer = Highway(nn.Linear(3, 5), nn.Sequential(nn.Linear(3, 5), nn.Sigmoid()), resize=partial(resize, width=5))
    layer.gate_bias = -1000.0
    x = torch.randn(2, 3)
    assert torch.equal(layer(x), resize(x, 5))


def test_the_gate_bias_is_that_of_its_last_layer() -> None:
    first, last = nn.Linear(3, 4), nn.Linear(4, 3)
    gate = nn.Sequential(first, nn.ReLU(), last, nn.Sigmoid())
    layer = Highway(nn.Linear(3, 3), gate, gate_bias=-4.0)
    assert last.bias.tolist() == [-4.0] * 3
    assert -4.0 not in first.bias.tolist()
    assert torch.equal(layer.gate_bias, last.bias)


@pytest.mark.parametrize(
    ("block", "gate", "words"),
    [
        (nn.Linear(3, 5), linear_gate(3), "the block gave shape (2, 5) where x has (2, 3)"),
        (nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 5), nn.Sigmoid()), "the gate gave shape (2, 5)"),
    ],
)
def test_shapes_that_do_not_meet_are_shown_with_the_cure(block: nn.Module, gate: nn.Module, words: str) -> None:
    with pytest.raises(UserError, match="resize=") as error:
        Highway(block, gate)(torch.randn(2, 3))
    assert words in str(error.value)


def test_a_gate_without_a_bias_cannot_be_given_one() -> None:
    gate: Any = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Sigmoid())
    with pytest.raises(UserError, match="no parameter named 'bias'"):
        Highway(nn.Linear(3, 3), gate, gate_bias=-1.0)


def test_x_hat_is_made_once() -> None:
    x_hat = nn.BatchNorm1d(3)
    Highway(nn.Linear(3, 3), linear_gate(3), resize=x_hat)(torch.randn(4, 3))
    assert x_hat.num_batches_tracked == 1


def test_a_block_that_returns_no_tensor_is_named() -> None:
    class Pair(nn.Module):
        def forward(self, x: Tensor) -> list[Tensor]:
            return [x, x]

    with pytest.raises(UserError, match="Pair must return a tensor, got list"):
        Highway(Pair(), linear_gate(3))(torch.randn(2, 3))
