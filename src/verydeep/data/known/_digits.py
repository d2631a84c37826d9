"""The digits that come with scikit-learn: 1797 images of 8 x 8 pixels, always available offline.

They are the test part of UCI's optical recognition of handwritten digits (Alpaydin, Kaynak 1998). Each pixel counts the
ink in a 4 x 4 block, so values go from 0 to 16; they are kept unchanged.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from verydeep.data._dataset import Dataset, Split

_SEED = 0


def load_digits() -> Dataset:
    """Load all digits: four fifths of each class for training and one fifth for testing, always the same ones."""
    from sklearn import datasets  # type: ignore[import-untyped]

    bunch = datasets.load_digits()
    x = torch.from_numpy(bunch.images.astype(np.uint8)[:, None])
    y = torch.from_numpy(bunch.target.astype(np.int64))
    test = torch.from_numpy(_every_fifth(bunch.target))
    return Dataset("digits", Split(x[~test], y[~test]), None, Split(x[test], y[test]), tuple("0123456789"))


def _every_fifth(y: NDArray[np.int64]) -> NDArray[np.bool_]:
    """A mask of one fifth of each class. NumPy guarantees that RandomState never draws other numbers."""
    draw = np.random.RandomState(_SEED)
    mask = np.zeros(len(y), dtype=bool)
    for c in np.unique(y):
        members = np.flatnonzero(y == c)
        mask[draw.permutation(members)[: round(len(members) / 5)]] = True
    return mask
