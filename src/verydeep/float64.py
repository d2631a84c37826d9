"""Sums in float64 on every device: Apple's GPUs (`mps`) have no float64, so there the CPU adds them up."""

import torch
from torch import Tensor


def as_float64(values: Tensor) -> Tensor:
    """The same numbers in float64, on the same device if it can hold them, otherwise on the CPU."""
    return values.to(float64_device(values.device)).double()


def float64_device(device: torch.device | str) -> torch.device:
    """Where sums over what this device computes are kept."""
    device = torch.device(device)
    return torch.device("cpu") if device.type == "mps" else device
