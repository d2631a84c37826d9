"""Weights in one byte each, for copies that only have to look right, such as those of an epoch during training."""

import numpy as np
from numpy.typing import NDArray

BLOCK = 64  # consecutive values that share a scale


def quantise(values: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
    """Round values to whole multiples, -127 to 127, of a scale that every 64 consecutive values have in common.

    The error is at most half a scale, 0.4 % of the largest value of a block.

    Args:
        values: Finite values of any shape.

    Returns:
        The multiples, in the same shape, and the scales of the blocks.

    Example:
        >>> import numpy as np
        >>> from verydeep.models import dequantise, quantise
        >>> multiples, scales = quantise(np.array([0.5, -1.0, 0.25], dtype=np.float32))
        >>> multiples.tolist(), dequantise(multiples, scales).round(2).tolist()
        ([64, -127, 32], [0.5, -1.0, 0.25])
    """
    flat = values.astype(np.float32).ravel()
    blocks = np.pad(flat, (0, -flat.size % BLOCK)).reshape(-1, BLOCK)
    scales = (np.abs(blocks).max(1, initial=0) / 127).astype(np.float16)
    divisors = np.where(scales == 0, 1, scales).astype(np.float32)[:, None]
    multiples = np.clip(np.rint(blocks / divisors), -127, 127).astype(np.int8)
    return multiples.ravel()[: flat.size].reshape(values.shape), scales


def dequantise(multiples: NDArray[np.int8], scales: NDArray[np.float16]) -> NDArray[np.float32]:
    """The values that `quantise` has rounded."""
    factors = np.repeat(scales.astype(np.float32), BLOCK)[: multiples.size]
    return multiples.astype(np.float32) * factors.reshape(multiples.shape)
