"""What the paper does to images before training: scaling, global contrast normalisation, the mean of every pixel.

Pure functions on tensors whose first axis is the sample; they work on any device.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

_CHUNK = 2**19  # values worked on at once: they stay in cache, and the rest of a large file on disk


def scale(x: Tensor, full: float = 256.0) -> Tensor:
    """Pixels divided by `full`, as float32; the paper's MNIST networks see pixels / 256."""
    return x.to(torch.float32) / full


def global_contrast_normalise(x: Tensor) -> Tensor:
    """Every sample with mean 0 and standard deviation 1 over all its values, as float32.

    The authors published their normalised CIFAR images but not the scale they used; unit deviation is our choice. A
    sample without any contrast becomes all zeros.
    """
    values = x.to(torch.float32)
    axes = tuple(range(1, x.ndim))
    centred = values - values.mean(axes, keepdim=True)
    deviation = centred.square().mean(axes, keepdim=True).sqrt()
    return centred / torch.where(deviation > 1e-6, deviation, 1.0)


def per_pixel_mean(x: Tensor) -> Tensor:
    """The mean of every pixel (or feature) over the samples, as float64 of the shape of one sample."""
    total = torch.zeros(x.shape[1:], dtype=torch.float64, device=x.device)
    for chunk in chunks(x):
        total += chunk.to(torch.float64).sum(0)
    return total / len(x)


def per_pixel_deviation(x: Tensor, mean: Tensor) -> Tensor:
    """The standard deviation of every pixel (or feature) around `mean`, as float64; 1 where it never varies."""
    total = torch.zeros_like(mean)
    for chunk in chunks(x):
        total += (chunk.to(torch.float64) - mean).square().sum(0)
    deviation = (total / len(x)).sqrt()
    return torch.where(deviation > 1e-12 * mean.abs(), deviation, 1.0)


def chunks(x: Tensor) -> Iterator[Tensor]:
    """`x` in pieces of a few samples or many, small enough for the processor's cache."""
    size = max(1, _CHUNK // x[0].numel())
    return (x[i : i + size] for i in range(0, len(x), size))
