"""Who computes a layer: fused kernels, or torch's own operations, which define what is right."""

from typing import Literal

from torch import Tensor

from verydeep import kernels
from verydeep.errors import UserError, unknown

Backend = Literal["auto", "fused", "reference"]
BACKENDS = ("auto", "fused", "reference")


def check_backend(backend: str) -> None:
    """Refuse a name that is none."""
    if backend not in BACKENDS:
        raise unknown("backend", backend, BACKENDS)


def is_fused(backend: Backend, known: bool, tensors: list[Tensor], least: int = 0) -> bool:
    """Whether the fused kernels do it: where they can, unless the backend says otherwise.

    Args:
        backend: What the layer was told.
        known: Whether there are kernels for the layer's activations.
        tensors: What the kernels would work on.
        least: How many numbers the first tensor has when "auto" prefers kernels, which take longer to call.
    """
    if backend == "reference":
        return False
    possible = known and kernels.suits(*tensors)
    if backend == "auto":
        return possible and tensors[0].numel() >= least  # asked last: while exporting, a size is a symbol
    if backend == "fused" and not possible:
        raise UserError(
            'backend="fused" needs float32 tensors on the CPU, tanh or relu, sigmoid gates, and no compiling, '
            'exporting, autocast or torch.func; backend="auto" takes what is possible'
        )
    return possible
