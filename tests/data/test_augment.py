import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from verydeep.data import Augment, crop_and_mirror
from verydeep.errors import UserError


def slow(x: Tensor, top: Tensor, left: Tensor, mirrored: Tensor, pad: int) -> Tensor:
    n, channels, height, width = x.shape
    out = torch.zeros_like(x)
    for k in range(n):
        for c in range(channels):
            for i in range(height):
                for j in range(width):
                    row = i + int(top[k]) - pad
                    column = (width - 1 - j if mirrored[k] else j) + int(left[k]) - pad
                    if 0 <= row < height and 0 <= column < width:
                        out[k, c, i, j] = x[k, c, row, column]
    return out


shapes = st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 5), st.integers(1, 5))


@given(shapes, st.integers(0, 3), st.integers(0, 9999))
def test_crop_and_mirror_equals_the_definition_pixel_by_pixel(shape: tuple[int, ...], pad: int, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    n = shape[0]
    x = torch.randn(shape, generator=random)
    top, left = (torch.randint(0, 2 * pad + 1, (n,), generator=random) for _ in range(2))
    mirrored = torch.rand(n, generator=random) < 0.5
    assert torch.equal(crop_and_mirror(x, top, left, mirrored, pad), slow(x, top, left, mirrored, pad))


def test_an_augment_call_does_what_its_draws_say() -> None:
    x = torch.randint(0, 256, (20, 3, 6, 6), dtype=torch.uint8)
    augment = Augment(pad=2, mirror=True)
    moves = augment.draw(20, torch.Generator().manual_seed(3))
    top, left, mirrored = moves.unbind(1)
    assert torch.equal(augment(x, moves), slow(x, top, left, mirrored, 2))


def test_draws_reach_every_offset_evenly_and_mirror_half() -> None:
    moves = Augment(pad=2, mirror=True).draw(10_000, torch.Generator().manual_seed(0))
    for column in (0, 1):
        assert torch.bincount(moves[:, column], minlength=5).tolist() == pytest.approx([2000] * 5, rel=0.1)
    assert moves[:, 2].sum().item() == pytest.approx(5000, rel=0.1)
    assert moves[:, :2].double().T.corrcoef()[0, 1].abs() < 0.05


def test_the_same_generator_state_draws_the_same_and_another_does_not() -> None:
    a, b, c = (Augment(8, True).draw(50, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(a, b)
    assert not torch.equal(a, c)


def test_without_pad_and_mirror_nothing_changes() -> None:
    x = torch.randn(4, 3, 5, 5)
    augment = Augment()
    assert torch.equal(augment(x, augment.draw(4, torch.Generator())), x)


def test_a_negative_pad_is_refused() -> None:
    with pytest.raises(UserError, match="pad must be 0 or more"):
        Augment(pad=-1)
