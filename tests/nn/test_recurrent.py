import pytest
import torch
from torch import Tensor, nn

from verydeep.errors import UserError
from verydeep.nn import RecurrentHighway


def by_hand(layer: RecurrentHighway, x: Tensor, s: Tensor) -> list[Tensor]:
    """Equations 7 to 9 of Zilly et al. 2017, written out."""
    n = layer.hidden_size
    states = []
    for at_time in x:
        for depth in range(layer.recurrence.depth):
            r, b = layer.recurrence.weight[depth], layer.recurrence.bias[depth]
            h = r[:n] @ s + b[:n]
            t = r[n:] @ s + b[n:]
            if depth == 0:
                h = h + layer.input.weight[:n] @ at_time
                t = t + layer.input.weight[n:] @ at_time
            h, t = torch.tanh(h), torch.sigmoid(t)
            s = h * t + s * (1 - t)
        states.append(s)
    return states


def test_is_the_published_recurrence() -> None:
    layer = RecurrentHighway(3, 4, recurrence_depth=3)
    x, s = torch.randn(5, 3), torch.randn(4)
    output, last = layer(x, s[None])
    torch.testing.assert_close(output, torch.stack(by_hand(layer, x, s)))
    assert torch.equal(last[0], output[-1])


@pytest.mark.parametrize("batch_first", [False, True])
def test_shapes_are_those_of_a_gru(batch_first: bool) -> None:
    ours, gru = RecurrentHighway(3, 4, batch_first=batch_first), nn.GRU(3, 4, batch_first=batch_first)
    for shape in ((5, 2, 3), (5, 3)):
        x = torch.randn(shape)
        for mine, theirs in zip(ours(x), gru(x), strict=True):
            assert mine.shape == theirs.shape


def test_batch_first_only_swaps_dimensions() -> None:
    layer = RecurrentHighway(3, 4)
    x = torch.randn(5, 2, 3)
    output, last = layer(x)
    layer.batch_first = True
    swapped, last_again = layer(x.transpose(0, 1))
    assert torch.equal(swapped.transpose(0, 1), output)
    assert torch.equal(last, last_again)


def test_the_state_can_be_carried_over_from_one_part_of_a_sequence_to_the_next() -> None:
    layer = RecurrentHighway(3, 4, carry="independent")
    x = torch.randn(6, 2, 3)
    whole, last = layer(x)
    first, state = layer(x[:2])
    second, end = layer(x[2:], state)
    torch.testing.assert_close(torch.cat([first, second]), whole)
    torch.testing.assert_close(end, last)


def test_wrong_shapes_are_named() -> None:
    layer = RecurrentHighway(3, 4)
    with pytest.raises(UserError, match=r"input of shape \(5, 2, 7\)"):
        layer(torch.zeros(5, 2, 7))
    with pytest.raises(UserError, match=r"h_0 of shape \(2, 4\): it must be \(1, 2, 4\)"):
        layer(torch.zeros(5, 2, 3), torch.zeros(2, 4))
    with pytest.raises(UserError, match="input_size"):
        RecurrentHighway(0, 4)
