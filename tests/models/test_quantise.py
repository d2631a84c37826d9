"""Weights in a byte each."""

import numpy as np
import pytest

from verydeep.models import dequantise, quantise


@pytest.mark.parametrize("shape", [(), (1,), (64,), (65,), (7, 33), (0,), (2, 3, 5, 5)])
def test_every_value_is_within_half_a_scale(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    multiples, scales = quantise(values)
    found = dequantise(multiples, scales)
    assert found.shape == values.shape
    blocks = np.repeat(scales.astype(np.float32), 64)[: values.size].reshape(shape)
    assert (np.abs(found - values) <= 0.56 * blocks).all()  # scales are rounded themselves


def test_zeros_stay_zeros() -> None:
    assert (dequantise(*quantise(np.zeros(100, dtype=np.float32))) == 0).all()
