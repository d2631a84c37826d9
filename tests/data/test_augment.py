import math
from typing import Any

import pytest
import torch
from hypothesis import given, strategies as st
from torch import Tensor

from verydeep.data import Augment, Batches, Split, crop_and_mirror, rotate_and_scale
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


def test_an_augment_call_applies_its_draws() -> None:
    x = torch.randint(0, 256, (20, 3, 6, 6), dtype=torch.uint8)
    augment = Augment(pad=2, mirror=True)
    moves = augment.draw(20, torch.Generator().manual_seed(3))
    top, left, mirrored, angle, factor = moves.unbind(1)
    assert torch.equal(augment(x, moves), slow(x, top, left, mirrored, 2))
    assert torch.equal(angle, torch.zeros(20))
    assert torch.equal(factor, torch.ones(20))


def test_images_are_rotated_and_scaled_about_their_centre() -> None:
    x = torch.randn(2, 3, 6, 6)
    none, right = torch.zeros(2), torch.full((2,), math.pi / 2)
    one = torch.ones(2)
    torch.testing.assert_close(rotate_and_scale(x, none, one), x)
    torch.testing.assert_close(rotate_and_scale(x, right, one), x.rot90(1, (2, 3)))
    torch.testing.assert_close(rotate_and_scale(x, 2 * right, one), x.rot90(2, (2, 3)))
    block = torch.zeros(1, 1, 4, 8)
    block[:, :, 1:3, 3:5] = 1
    larger = rotate_and_scale(block, none[:1], 2 * one[:1])
    assert larger[0, 0, :, 2:6].min() > 0
    assert larger.sum() == pytest.approx(4 * block.sum().item(), rel=0.3)
    upright = rotate_and_scale(block, right[:1], one[:1])  # the middle stays where it is, however long the sides are
    torch.testing.assert_close(upright, block)


def test_draws_of_angles_and_sizes_are_uniform_and_leave_the_others_unchanged() -> None:
    plain = Augment(pad=2, mirror=True).draw(10_000, torch.Generator().manual_seed(0))
    moves = Augment(pad=2, mirror=True, rotate=90, scale=0.2).draw(10_000, torch.Generator().manual_seed(0))
    assert torch.equal(moves[:, :3], plain[:, :3])
    angle, factor = moves[:, 3], moves[:, 4]
    assert (angle.min().item(), angle.max().item()) == pytest.approx((-math.pi / 2, math.pi / 2), rel=0.01)
    assert (factor.min().item(), factor.max().item()) == pytest.approx((0.8, 1.2), rel=0.01)
    assert angle.mean().abs() < 0.05
    assert moves[:, 3:].T.corrcoef()[0, 1].abs() < 0.05


def test_draws_of_offsets_are_uniform_and_half_are_mirrored() -> None:
    moves = Augment(pad=2, mirror=True).draw(10_000, torch.Generator().manual_seed(0))
    for column in (0, 1):
        assert torch.bincount(moves[:, column].long(), minlength=5).tolist() == pytest.approx([2000] * 5, rel=0.1)
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


@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"pad": -1}, "pad must be 0 or more"), ({"rotate": 181.0}, "0 to 180 degrees"), ({"rotate": math.nan}, "degrees"),
     ({"scale": 1.0}, "scale must be at least 0 and less than 1")],
)  # fmt: skip
def test_impossible_settings_are_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        Augment(**wrong)


def test_the_added_pixels_have_the_given_colour() -> None:
    x = torch.rand(2, 2, 3, 3)
    augment = Augment(pad=1, fill=(-2.0, 5.0))
    moves = torch.tensor([[0.0, 0.0, 0.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0, 1.0]], dtype=torch.float64)
    out = augment(x, moves)
    assert (out[0, 0, 0] == -2).all()
    assert (out[0, 1, :, 0] == 5).all()
    torch.testing.assert_close(out[0, :, 1:, 1:], x[0, :, :2, :2])
    torch.testing.assert_close(out[1], x[1])


def test_a_colour_of_other_channels_is_refused() -> None:
    split = Split(torch.zeros(4, 3, 8, 8), torch.zeros(4, dtype=torch.int64))
    with pytest.raises(UserError, match="fill has 1 values, but the images have 3 channels"):
        Batches(split, 2, seed=0, augment=Augment(pad=1, fill=(0.5,)))
