import json
import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, strategies as st
from torch import Tensor

from verydeep.config import from_dict, to_dict
from verydeep.data import ArrayPreparation, DataConfig, global_contrast_normalise, per_pixel_mean, scale
from verydeep.data.prepare._preprocess import fit_arrays, per_pixel_deviation
from verydeep.errors import UserError


def images(n: int = 5, channels: int = 3) -> Tensor:
    return torch.randint(0, 256, (n, channels, 4, 6), dtype=torch.uint8)


def slow_contrast(x: Tensor) -> Tensor:
    out = torch.empty(x.shape)
    for i, image in enumerate(x):
        pixels = [float(p) for p in image.flatten()]
        mean = sum(pixels) / len(pixels)
        deviation = math.sqrt(sum((p - mean) ** 2 for p in pixels) / len(pixels))
        out[i] = torch.tensor([(p - mean) / (deviation or 1.0) for p in pixels]).view(image.shape)
    return out


def test_contrast_normalisation_equals_the_definition_pixel_by_pixel() -> None:
    x = images()
    torch.testing.assert_close(global_contrast_normalise(x), slow_contrast(x))


@pytest.mark.parametrize("value", [0, 7, 255])
def test_an_image_without_contrast_becomes_zero(value: int) -> None:
    assert not global_contrast_normalise(torch.full((2, 3, 5, 5), value, dtype=torch.uint8)).any()


def test_scaling_divides_by_256() -> None:
    x = images()
    expected = torch.tensor([[float(p) / 256 for p in image.flatten()] for image in x]).view(x.shape)
    assert torch.equal(scale(x), expected)
    assert scale(x).dtype == torch.float32


def test_mean_and_deviation_of_every_pixel_equal_the_definition() -> None:
    x = images(n=9)
    mean = per_pixel_mean(x)
    for c, i, j in ((0, 0, 0), (1, 3, 5), (2, 2, 1)):
        values = [float(image[c, i, j]) for image in x]
        assert mean[c, i, j].item() == pytest.approx(sum(values) / 9)
        expected = math.sqrt(sum((v - sum(values) / 9) ** 2 for v in values) / 9)
        assert per_pixel_deviation(x, mean)[c, i, j].item() == pytest.approx(expected)


def test_statistics_over_chunks_equal_those_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    x = images(n=11)
    whole = {how: fit_arrays(x, how) for how in ("contrast", "standardise")}
    monkeypatch.setattr("verydeep.data.prepare._preprocess._CHUNK", 3 * x[0].numel())
    for how, preparation in whole.items():
        pieces = fit_arrays(x, how)  # type: ignore[arg-type]
        assert pieces.mean == pytest.approx(preparation.mean)
        assert pieces.deviation == pytest.approx(preparation.deviation)
        torch.testing.assert_close(preparation.whole(x, "train"), preparation(x))


def test_colour_images_get_contrast_and_mean_and_grey_ones_are_scaled() -> None:
    colour, grey = images(7, 3), images(7, 1)
    prepared = fit_arrays(colour, "paper")(colour)
    torch.testing.assert_close(prepared, slow_contrast(colour) - slow_contrast(colour).mean(0), atol=1e-5, rtol=1e-5)
    assert torch.equal(fit_arrays(grey, "paper")(grey), grey.float() / 256)


def test_numbers_that_are_not_images_are_unchanged() -> None:
    x = torch.randn(5, 3)
    assert torch.equal(fit_arrays(x, "paper").whole(x, "train"), x)


def test_none_keeps_the_bytes_and_makes_other_numbers_float32() -> None:
    x = images()
    assert torch.equal(fit_arrays(x, "none").whole(x, "train"), x)
    assert fit_arrays(x.double(), "none").whole(x.double(), "train").dtype == torch.float32


def test_standardised_training_samples_have_mean_0_and_deviation_1_even_far_from_0() -> None:
    x = torch.randn(200, 4, dtype=torch.float64) * 3 + 1.6e9
    prepared = fit_arrays(x, "standardise").whole(x, "train")
    assert prepared.mean(0).abs().max() < 1e-4
    torch.testing.assert_close(prepared.std(0, unbiased=False), torch.ones(4), atol=1e-4, rtol=1e-4)


def test_a_feature_that_never_varies_becomes_zero_when_standardised() -> None:
    x = torch.full((6, 2), 0.1, dtype=torch.float64)
    assert fit_arrays(x, "standardise")(x).abs().max() < 1e-6


def test_values_that_overflow_after_standardising_are_refused() -> None:
    preparation = fit_arrays(torch.tensor([[0.0], [1e-30]], dtype=torch.float64), "standardise")
    with pytest.raises(UserError, match=r"test: some values are so far outside"):
        preparation.whole(torch.tensor([[1e30]], dtype=torch.float64), "test")


def test_samples_of_another_shape_are_refused_with_both_shapes() -> None:
    with pytest.raises(UserError, match=r"\(1, 4, 6\).*\(3, 4, 6\)"):
        fit_arrays(images(), "paper")(images(channels=1))
    with pytest.raises(UserError, match="mean does not have one value"):
        ArrayPreparation((2, 2), mean=(1.0,))


@given(st.integers(1, 6), st.integers(1, 3), st.integers(1, 5), st.integers(1, 5), st.integers(0, 2**31))
def test_contrast_normalised_samples_have_mean_0_and_deviation_1_or_0(
    n: int, c: int, h: int, w: int, seed: int
) -> None:
    x = torch.randint(0, 256, (n, c, h, w), generator=torch.Generator().manual_seed(seed), dtype=torch.uint8)
    y = global_contrast_normalise(x).flatten(1).double()
    assert y.mean(1).abs().max() < 1e-5
    for deviation, flat in zip(y.std(1, unbiased=False), x.flatten(1), strict=True):
        assert float(deviation) == pytest.approx(0.0 if len(set(flat.tolist())) == 1 else 1.0, abs=1e-5)


def test_imagenet_s_colours_are_subtracted_and_divided_by() -> None:
    pixels = torch.tensor([[0, 128, 255]], dtype=torch.uint8).view(1, 3, 1, 1).expand(4, 3, 2, 2)
    mean, deviation = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    expected = [(value / 255 - m) / d for value, m, d in zip((0, 128, 255), mean, deviation, strict=True)]
    ready = fit_arrays(pixels, "imagenet")(pixels)
    assert ready.dtype == torch.float32
    assert ready[0, :, 0, 0].tolist() == pytest.approx(expected, abs=1e-6)
    with pytest.raises(UserError, match="'imagenet' is for colour images, but samples have shape"):
        fit_arrays(torch.zeros(2, 1, 4, 4, dtype=torch.uint8), "imagenet")


def test_whitened_training_images_are_hardly_correlated() -> None:
    random = torch.Generator().manual_seed(0)
    mixed = torch.randn(3000, 12, generator=random) @ torch.randn(12, 12, generator=random)
    pixels = (mixed.view(-1, 3, 2, 2) * 20 + 128).clamp(0, 255).to(torch.uint8)
    preparation = fit_arrays(pixels, "zca")
    x = preparation(pixels).double().flatten(1)
    assert x.mean(0).abs().max() < 1e-3
    contrast = fit_arrays(pixels, "contrast")(pixels).double().flatten(1)
    between = [(each.T @ each / len(each)).triu(1).abs().mean() for each in (x, contrast)]
    assert between[0] < 0.5 * between[1]  # with 0.1 added to the eigenvalues, it is not 0
    # the definition: (C + 0.1 I) ** -0.5 of images with normalised contrast
    values, vectors = torch.linalg.eigh(contrast.T @ contrast / len(contrast))
    expected = contrast @ (vectors * (values.clamp(min=0) + 0.1).rsqrt()) @ vectors.T
    torch.testing.assert_close(x, expected, rtol=1e-3, atol=1e-3)


def test_whitening_is_stored_as_text_and_read_again() -> None:
    pixels = images(50)
    preparation = fit_arrays(pixels, "zca")
    again = from_dict(ArrayPreparation, json.loads(json.dumps(to_dict(preparation))), "data.json")
    assert torch.equal(again(pixels), preparation(pixels))
    for damaged in ("abcd", "not base64!"):
        with pytest.raises(UserError, match="whitening is not the triangle of a matrix of 72 rows"):
            replace(preparation, whitening=damaged)(pixels)


def test_images_that_are_too_large_to_whiten_are_refused() -> None:
    with pytest.raises(UserError, match="at most 4096 values, but these have 12288; use 'contrast'"):
        fit_arrays(torch.zeros(2, 3, 64, 64, dtype=torch.uint8), "zca")


def test_images_get_the_norm_that_is_asked_for() -> None:
    pixels = images(20)
    plain, scaled = (fit_arrays(pixels, "contrast", contrast_norm=norm) for norm in (None, 40.0))
    factor = 40.0 / math.sqrt(72)
    torch.testing.assert_close(scaled(pixels), factor * plain(pixels))
    with pytest.raises(UserError, match="contrast_norm is for images with normalised contrast"):
        fit_arrays(pixels, "scale", contrast_norm=40.0)
    with pytest.raises(UserError, match="contrast_norm must be more than 0, got -1"):
        DataConfig("cifar10", contrast_norm=-1.0)
