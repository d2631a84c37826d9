"""ZCA whitening: pixels become uncorrelated with as little change to the images as possible.

As in pylearn2, whose images the maxout networks and FitNets were trained on: the matrix is (C + 0.1 I) ** -0.5, where C
is the covariance of the training images after contrast normalisation.
"""

import base64
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from verydeep.errors import UserError

_BIAS = 0.1  # added to every eigenvalue of the covariance, for images of deviation about 1
_LARGEST = 4096  # values per image; the matrix of larger images has more than 16 million numbers


def check_size(values: int) -> None:
    """Refuse images whose matrix would be too large."""
    if values > _LARGEST:
        raise UserError(
            f"data.preprocess 'zca' is for images of at most {_LARGEST} values, but these have {values}; use 'contrast'"
        )


def whitening_matrix(chunks: Iterable[Tensor], mean: Tensor) -> Tensor:
    """The matrix, float32, from the training images in chunks `(n, values)` and their mean.

    Args:
        chunks: Prepared images.
        mean: The mean of each value, float64.
    """
    covariance, count = torch.zeros(len(mean), len(mean), dtype=torch.float64), 0
    for chunk in chunks:
        centred = chunk.to(torch.float64).sub_(mean).to(torch.float32)
        covariance += (centred.T @ centred).to(torch.float64)
        count += len(chunk)
    values, vectors = torch.linalg.eigh(covariance / count)
    whitening: Tensor = (vectors * (values.clamp(min=0) + _BIAS).rsqrt()) @ vectors.T
    return whitening.to(torch.float32)


def pack_matrix(matrix: Tensor) -> str:
    """The upper triangle of a symmetric matrix as text, to be stored as JSON."""
    rows, columns = torch.triu_indices(*matrix.shape).unbind()
    return base64.b64encode(matrix[rows, columns].numpy().astype("<f4").tobytes()).decode()


@lru_cache(maxsize=2)
def unpack_matrix(text: str, values: int) -> Tensor:
    """The symmetric matrix that `pack_matrix` made text of."""
    try:
        numbers = np.frombuffer(base64.b64decode(text, validate=True), dtype="<f4")
    except ValueError:
        numbers = np.empty(0, dtype="<f4")
    if len(numbers) != values * (values + 1) // 2:
        raise UserError(f"preparation: whitening is not the triangle of a matrix of {values} rows")
    rows, columns = torch.triu_indices(values, values).unbind()
    matrix = torch.empty(values, values)
    matrix[rows, columns] = matrix[columns, rows] = torch.from_numpy(numbers.astype(np.float32))
    return matrix
