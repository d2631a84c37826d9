"""Random numbers that follow from the seed and the position in training, and leave the process's own state alone."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeVar

import torch
from torch import nn

from verydeep.training.step._process_group import ProcessGroup

Module = TypeVar("Module", bound=nn.Module)


def private_random_state(device: torch.device) -> AbstractContextManager[None]:
    """Restore torch's global generators (of the CPU, and of `device` if it is a GPU) at the end of the block."""
    if device.type in ("cuda", "mps"):
        return torch.random.fork_rng([device.index or 0], device_type=device.type)
    return torch.random.fork_rng([])


def seeded(seed: int, make: Callable[[], Module]) -> Module:
    """Make a module on the CPU whose initial weights depend only on the seed."""
    with torch.random.fork_rng([]):
        torch.default_generator.manual_seed(seed)
        return make()


def seed_step(seed: int, epoch: int, batch: int, group: ProcessGroup) -> None:
    """Seed what dropout draws in this step; every process draws its own numbers."""
    mixed = seed
    for part in (epoch, batch, group.rank):
        mixed = _mix(mixed ^ _mix(part + 1))
    torch.default_generator.manual_seed(mixed >> 1)
    if group.device.type == "cuda":
        torch.cuda.manual_seed(mixed >> 1)
    elif group.device.type == "mps":
        torch.mps.manual_seed(mixed >> 1)


def _mix(value: int) -> int:
    """SplitMix64's finaliser: neighbouring numbers become unrelated ones."""
    value = (value + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return value ^ value >> 31
