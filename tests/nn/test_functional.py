import pytest
import torch
from hypothesis import given, strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.func import jacrev, vmap

from verydeep.nn.functional import highway, resize

shapes = st.lists(st.integers(1, 5), min_size=0, max_size=4).map(tuple)


def inputs(*shape: int, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    x, h = (torch.randn(shape, dtype=dtype) for _ in range(2))
    t, c = (torch.rand(shape, dtype=dtype) for _ in range(2))
    return [value.requires_grad_() for value in (x, h, t, c)]


@given(shapes)
def test_backward_is_the_appendix_to_the_bit(shape: tuple[int, ...]) -> None:
    x, h, t, _ = inputs(*shape)
    dy = torch.randn(shape, dtype=torch.float64)
    dx, dh, dt = torch.autograd.grad(highway(x, h, t), (x, h, t), dy)
    assert torch.equal(dh, t * dy)
    assert torch.equal(dt, (h - x) * dy)
    assert torch.equal(dx, (1 - t) * dy)


@given(shapes)
def test_backward_with_an_independent_carry(shape: tuple[int, ...]) -> None:
    x, h, t, c = inputs(*shape)
    dy = torch.randn(shape, dtype=torch.float64)
    gradients = torch.autograd.grad(highway(x, h, t, c), (x, h, t, c), dy)
    for ours, expected in zip(gradients, (c * dy, t * dy, h * dy, x * dy), strict=True):
        assert torch.equal(ours, expected)


@given(shapes, st.sampled_from([torch.float32, torch.float64, torch.bfloat16]))
def test_coupled_is_independent_with_one_minus_t(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x, h, t, _ = inputs(*shape, dtype=dtype)
    y = highway(x, h, t)
    assert y.dtype == dtype
    rounding = 4 * torch.finfo(dtype).eps * max(1.0, x.abs().max().item(), h.abs().max().item())
    torch.testing.assert_close(y, highway(x, h, t, 1 - t), rtol=0, atol=rounding)


@given(shapes, st.sampled_from([torch.float32, torch.float64, torch.bfloat16]))
def test_a_shut_gate_gives_x_and_an_open_one_h_exactly(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x, h, _, _ = inputs(*shape, dtype=dtype)
    assert torch.equal(highway(x, h, torch.zeros_like(x)), x)
    assert torch.equal(highway(x, h, torch.ones_like(x)), h)


def test_first_and_second_derivatives() -> None:
    x, h, t, c = inputs(3, 4)
    assert gradcheck(highway, (x, h, t))
    assert gradgradcheck(highway, (x, h, t))
    assert gradcheck(highway, (x, h, t, c))
    assert gradgradcheck(highway, (x, h, t, c))


def test_a_gate_may_broadcast() -> None:
    x, h, _, _ = inputs(2, 3, 4)
    t = torch.rand(2, 3, 1, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(highway(x, h, t), h * t + x * (1 - t))
    assert gradcheck(highway, (x, h, t))


@pytest.mark.parametrize("parts", [3, 4])
def test_compiles_to_one_graph(parts: int) -> None:
    values = inputs(5, 6, dtype=torch.float32)[:parts]
    compiled = torch.compile(highway, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*values), highway(*values))
    gradients = torch.autograd.grad(compiled(*values).sum(), values)
    torch.testing.assert_close(gradients, torch.autograd.grad(highway(*values).sum(), values))


def test_works_under_vmap_and_jacrev() -> None:
    x, h, t, _ = inputs(5, 6)
    assert torch.equal(vmap(highway)(x, h, t), highway(x, h, t))
    jacobian = jacrev(highway)(x[0], h[0], t[0])
    torch.testing.assert_close(jacobian, torch.diag(1 - t[0]))


def test_autocast_keeps_what_is_carried_in_full_precision() -> None:
    x = torch.randn(4, 8, requires_grad=True)
    layer = torch.nn.Linear(8, 16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h, t = layer(x).chunk(2, -1)
        y = highway(x, torch.tanh(h), torch.sigmoid(t))
    assert h.dtype == torch.bfloat16
    assert y.dtype == torch.float32
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.dtype == torch.float32


def test_resize_appends_zeros_to_a_vector() -> None:
    x = torch.randn(2, 3)
    y = resize(x, 5)
    assert torch.equal(y[:, :3], x)
    assert torch.equal(y[:, 3:], torch.zeros(2, 2))


def test_resize_keeps_blocks_at_even_distances() -> None:
    assert resize(torch.arange(6.0), 3).tolist() == [0, 2, 4]
    assert resize(torch.arange(5.0), 2).tolist() == [0, 2]


def test_resize_of_maps_changes_channels_and_positions() -> None:
    x = torch.randn(2, 3, 5, 7)
    y = resize(x, 4, dim=1, stride=2)
    assert y.shape == (2, 4, 3, 4)
    assert torch.equal(y[:, :3], x[:, :, ::2, ::2])
    assert not y[:, 3].any()
    assert resize(x, 3, dim=1) is x
