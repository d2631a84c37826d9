"""Random numbers of a step, as a function of where it stands."""

import torch

from verydeep.training._world import ProcessGroup


def seed_step(seed: int, epoch: int, batch: int, world: ProcessGroup) -> None:
    """Seed what dropout draws in this step; every process draws its own."""
    mixed = seed
    for part in (epoch, batch, world.rank):
        mixed = _mix(mixed ^ _mix(part + 1))
    torch.default_generator.manual_seed(mixed >> 1)
    if world.device.type == "cuda":
        torch.cuda.manual_seed(mixed >> 1)


def _mix(value: int) -> int:
    """SplitMix64's finaliser: neighbouring numbers become unrelated ones."""
    value = (value + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return value ^ value >> 31
