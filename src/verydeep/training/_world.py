"""One process or several: under torchrun each takes its part of every batch, and gradients are summed once a step."""

import os
from dataclasses import dataclass

import torch
from torch import Tensor, distributed, nn

from verydeep.errors import UserError


@dataclass(frozen=True)
class World:
    """This process among all that train together.

    Attributes:
        rank: Its number; only 0 writes and prints.
        size: How many there are.
        device: Where its tensors are.
    """

    rank: int
    size: int
    device: torch.device

    @classmethod
    def join(cls, device: str) -> "World":
        """Meet the other processes if torchrun started them; otherwise be the only one."""
        size, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
        chosen = _device(device, int(os.environ.get("LOCAL_RANK", "0")))
        if size > 1 and not distributed.is_initialized():
            distributed.init_process_group("nccl" if chosen.type == "cuda" else "gloo")
        return cls(rank, size, chosen)

    def leave(self) -> None:
        """Part from the other processes."""
        if self.size > 1:
            distributed.destroy_process_group()

    def wait(self) -> None:
        """Until all processes are here."""
        if self.size > 1:
            distributed.barrier()

    def total(self, value: Tensor) -> Tensor:
        """The sum of all processes' values, in place."""
        if self.size > 1:
            distributed.all_reduce(value)
        return value

    def agree(self, wish: bool) -> bool:
        """Whether any process wishes it."""
        return bool(self.total(torch.tensor(int(wish), device=self.device)).item()) if self.size > 1 else wish

    def same_buffers(self, model: nn.Module) -> None:
        """Give every process the first one's buffers (the running means of batch normalisation)."""
        if self.size > 1:
            for buffer in model.buffers():
                distributed.broadcast(buffer, 0)


class FlatGradients:
    """All gradients in one buffer, so that one sum over the processes does for all of them."""

    def __init__(self, model: nn.Module, world: World) -> None:
        self.world = world
        parameters = [p for p in model.parameters() if p.requires_grad]
        self.flat = torch.zeros(sum(p.numel() for p in parameters), device=world.device)
        for parameter, part in zip(parameters, self.flat.split([p.numel() for p in parameters]), strict=True):
            parameter.grad = part.view_as(parameter)

    def clear(self) -> None:
        """Before a backward pass."""
        self.flat.zero_()

    def share(self) -> None:
        """After it."""
        self.world.total(self.flat)


def _device(name: str, local_rank: int) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        if device.type == "cuda" and device.index is None:
            device = torch.device("cuda", local_rank)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"device '{name}' cannot be used: {str(error).splitlines()[0]}") from error
    return device
