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


def is_fused(backend: Backend, known: bool, tensors: list[Tensor], worth: bool = True) -> bool:
    """Whether the fused kernels do it: where they can, unless the backend says otherwise.

    Args:
        backend: What the layer was told.
        known: Whether there are kernels for the layer's activations.
        tensors: What the kernels would work on.
        worth: Whether there is so much to do that "auto" prefers kernels, which take longer to call.
    """
    if backend == "reference" or (backend == "auto" and not worth):
        return False
    possible = known and kernels.suits(*tensors)
    if backend == "fused" and not possible:
        raise UserError(
            'backend="fused" needs float32 tensors on the CPU, tanh or relu, sigmoid gates, and no compiling, '
            'exporting, autocast or torch.func; backend="auto" takes what is possible'
        )
    return possible
