"""Dropout of a network's layers, in kernels where they can run."""

from torch import Tensor, nn

from verydeep import kernels
from verydeep.kernels import Backend


def run_dropout(layer: nn.Dropout, x: Tensor, backend: Backend = "auto") -> Tensor:
    """`layer(x)`. With the same state of torch's generator, the kernels and torch choose different numbers.

    Args:
        layer: The module; if it has hooks, it is called as usual.
        x: A tensor of any shape.
        backend: "auto", "fused" (the same here) or "reference".
    """
    if layer.training and not kernels.has_hooks(layer) and kernels.can_run_dropout(backend, layer, x):
        return kernels.dropout(x, layer.p)
    y: Tensor = layer(x)
    return y
