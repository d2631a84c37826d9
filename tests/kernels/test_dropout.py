"""Fused dropout: the statistics of its random numbers, and where they come from."""

import pytest
import torch
from torch import Tensor, nn

from verydeep.kernels import dropout
from verydeep.kernels.dropout._dropout_op import _run
from verydeep.kernels.ir._random import random_lanes
from verydeep.models import Conv, ConvConfig, ConvNet, Dropout, Pool
from verydeep.nn import run_dropout


def kept(shape: tuple[int, ...], p: float, seed: int = 0) -> Tensor:
    torch.manual_seed(seed)
    return dropout(torch.ones(shape), p) != 0


@pytest.mark.parametrize("p", [0.05, 0.2, 0.5, 0.9])
def test_numbers_are_kept_with_the_probability_and_scaled(p: float) -> None:
    torch.manual_seed(0)
    y = dropout(torch.full((1000, 1001), 3.0), p)
    share = float((y != 0).double().mean())
    assert abs(share - (1 - p)) < 5 * (p * (1 - p) / y.numel()) ** 0.5
    torch.testing.assert_close(y[y != 0], torch.full_like(y[y != 0], 3 / (1 - p)))


def test_neighbours_and_successive_calls_are_independent() -> None:
    torch.manual_seed(0)
    first, second = (dropout(torch.ones(1 << 20), 0.5) != 0 for _ in range(2))
    signs = [mask.double() * 2 - 1 for mask in (first, second)]
    bound = 5 / (1 << 20) ** 0.5
    assert abs(float((signs[0] * signs[1]).mean())) < bound
    for distance in (1, 2, 3, 16, 17, 32, 64, 256, 1000, 4096, 65536):
        assert abs(float((signs[0] * signs[0].roll(distance)).mean())) < bound, distance


def test_keys_that_differ_in_one_bit_give_independent_numbers() -> None:
    x = torch.ones(1 << 16)
    signs = [(_run(x, 0.5, key) != 0).double() * 2 - 1 for key in (0, *(1 << bit for bit in range(63)))]
    correlations = torch.corrcoef(torch.stack(signs)).fill_diagonal_(0)
    assert float(correlations.abs().max()) < 6 / (1 << 16) ** 0.5


def test_the_generator_of_torch_decides() -> None:
    assert torch.equal(kept((99, 3), 0.5, seed=1), kept((99, 3), 0.5, seed=1))
    assert not torch.equal(kept((99, 3), 0.5, seed=1), kept((99, 3), 0.5, seed=2))
    torch.manual_seed(0)
    state = torch.get_rng_state()
    first = dropout(torch.ones(999), 0.5)
    torch.set_rng_state(state)
    assert torch.equal(first, dropout(torch.ones(999), 0.5))


@pytest.mark.parametrize("threads", [2, 3])
def test_the_number_of_threads_does_not_matter(threads: int) -> None:
    before = torch.get_num_threads()
    expected = kept((300, 1001), 0.3)
    torch.set_num_threads(threads)
    try:
        assert torch.equal(expected, kept((300, 1001), 0.3))
    finally:
        torch.set_num_threads(before)


def test_random_numbers_are_those_of_the_interpreter() -> None:
    key = 0x123456789ABCDEF
    y = _run(torch.ones(1000), 0.3, key)
    lanes = len(random_lanes(key, 0))
    numbers = torch.cat([torch.from_numpy(random_lanes(key, n)) for n in range(0, 1000, lanes)])[:1000]
    assert torch.equal(y == 0, numbers < 0.3)


@pytest.mark.parametrize("last", [True, False])
def test_gradients_pass_where_numbers_were_kept(last: bool) -> None:
    x = torch.ones(4, 5, 6, 7)
    x = (x.to(memory_format=torch.channels_last) if last else x).requires_grad_()
    y = dropout(x, 0.4)
    dy = torch.randn(4, 5, 6, 7)
    (dx,) = torch.autograd.grad(y, x, dy)
    torch.testing.assert_close(dx, y.detach() * dy)


def test_second_derivatives_use_the_same_numbers() -> None:
    x = torch.randn(50, requires_grad=True)
    y = dropout(x, 0.4)
    (dx,) = torch.autograd.grad(y.square().sum(), x, create_graph=True)
    (ddx,) = torch.autograd.grad(dx.sum(), x)
    torch.testing.assert_close(ddx, 2 * (y.detach() / x.detach()).square())


def test_nan_never_gets_lost() -> None:
    assert dropout(torch.full((100,), float("nan")), 0.5).isnan().all()


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_probabilities_of_0_and_1_are_those_of_torch(p: float) -> None:
    x = torch.randn(3, 4)
    assert torch.equal(run_dropout(nn.Dropout(p), x), nn.Dropout(p)(x))


def test_evaluation_copies_nothing() -> None:
    x = torch.randn(3, 4)
    assert run_dropout(nn.Dropout(0.5).eval(), x) is x


def test_recomputed_activations_drop_the_same_numbers() -> None:
    config = ConvConfig((Dropout(0.3), Conv(16), Pool(2, 2), Dropout(0.5), Conv(16), Pool()), (3, 16, 16))
    torch.manual_seed(0)
    model, x = ConvNet(config), torch.randn(20, 3, 16, 16)
    found = []
    for recompute in (False, True):
        model.recompute = recompute
        torch.manual_seed(1)
        found.append(torch.autograd.grad(model(x).square().sum(), list(model.parameters())))
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))
