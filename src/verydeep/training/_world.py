"""One process or several: under torchrun each takes its part of every batch, and gradients are summed once a step."""

import atexit
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module

import torch
from torch import Tensor, distributed, nn
from torch.distributed import ReduceOp

from verydeep.errors import UserError


@dataclass(frozen=True)
class ProcessGroup:
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
    def join(cls, device: str) -> "ProcessGroup":
        """Meet the other processes if torchrun started them; otherwise be the only one."""
        chosen = _device(device, int(os.environ.get("LOCAL_RANK", "0")))
        if distributed.is_available() and distributed.is_initialized():
            return cls(distributed.get_rank(), distributed.get_world_size(), chosen)
        if int(os.environ.get("WORLD_SIZE", "1")) == 1:
            return cls(0, 1, chosen)
        # torch imports this with its optimisers; after the meeting, it would hold the group and its threads for ever
        import_module("torch.distributed.nn")
        try:
            if chosen.type == "cuda":
                distributed.init_process_group("nccl", device_id=chosen)
            else:
                distributed.init_process_group("gloo")
        except (RuntimeError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise UserError(f"the {os.environ['WORLD_SIZE']} processes cannot meet ({reason}); use torchrun") from error
        atexit.register(distributed.destroy_process_group)  # and not earlier: processes that part cannot meet again
        return cls(distributed.get_rank(), distributed.get_world_size(), chosen)

    @contextmanager
    def agreed(self) -> Iterator[None]:
        """What must succeed in every process before any goes on; if it fails, all end and the first says why."""
        problem: UserError | None = None
        try:
            yield
        except UserError as error:
            problem = error
        first = self._most(self.size if problem is None else self.rank, ReduceOp.MIN)
        if problem is not None and first == self.rank:
            raise problem
        if first < self.size:
            raise SystemExit(2)

    def wait(self) -> None:
        """Until all processes are here."""
        self._all(distributed.barrier)

    def total(self, value: Tensor) -> Tensor:
        """The sum of all processes' values, in place."""
        self._all(distributed.all_reduce, value)
        return value

    def agree(self, wish: bool) -> bool:
        """Whether any process wishes it."""
        return bool(self._most(int(wish), ReduceOp.MAX))

    def first(self, number: int) -> int:
        """The first process's number, in all of them."""
        return self._most(number if self.rank == 0 else -1, ReduceOp.MAX)

    def same(self, number: int) -> bool:
        """Whether all processes have the same number."""
        return self._most(number, ReduceOp.MAX) == self._most(number, ReduceOp.MIN)

    def same_start(self, model: nn.Module) -> None:
        """Give every process the first one's weights and buffers; a module of the user's own may differ."""
        for tensor in (*model.parameters(), *model.buffers()):
            self._all(distributed.broadcast, tensor.detach(), 0)

    def mean_buffers(self, model: nn.Module) -> None:
        """Average what each process has seen: the running statistics of batch normalisation."""
        for buffer in model.buffers():
            if buffer.is_floating_point():
                self.total(buffer).div_(self.size)

    def _most(self, number: int, operation: ReduceOp.RedOpType) -> int:
        if self.size == 1:
            return number
        value = torch.tensor(number, device=self.device)
        self._all(distributed.all_reduce, value, operation)
        return int(value.item())

    def _all(self, operation: Callable[..., object], *arguments: object) -> None:
        if self.size == 1:
            return
        try:
            operation(*arguments)
        except RuntimeError as error:  # what gloo and nccl raise when the other end is gone
            raise UserError(
                f"process {self.rank} lost the others of this training; the one that failed first says why. "
                "Continue with torchrun ... -m verydeep train --resume RUN"
            ) from error


class FlatGradients:
    """All gradients in one buffer, so that one sum over the processes does for all of them; a single one needs none."""

    def __init__(self, model: nn.Module, world: ProcessGroup) -> None:
        self.world, self.parameters = world, list(model.parameters())
        if world.size == 1:
            return
        parameters = [p for p in self.parameters if p.requires_grad]
        if any(p.dtype != torch.float32 for p in parameters):
            raise UserError("several processes train float32 parameters only; precision = 'bfloat16' keeps those")
        sizes = [p.numel() for p in parameters]
        self.flat = torch.zeros(sum(sizes) + 1, device=world.device)  # the last place carries a wish to stop
        for parameter, part in zip(parameters, self.flat[:-1].split(sizes), strict=True):
            parameter.grad = part.view_as(parameter)

    def clear(self) -> None:
        """Before a backward pass."""
        if self.world.size == 1:
            for parameter in self.parameters:
                parameter.grad = None
        else:
            self.flat.zero_()

    def share(self, stop: bool, look: bool) -> bool:
        """Sum over the processes after a backward pass.

        Args:
            stop: Whether this process was asked to stop.
            look: Whether to wait for a GPU's answer; without it, only processes on CPUs get one.

        Returns:
            Whether any process was asked to stop, the same in all of them.
        """
        if self.world.size == 1:
            return stop
        self.flat[-1] = stop
        self.world.total(self.flat)
        return (look or self.flat.device.type == "cpu") and bool(self.flat[-1] > 0)


def _device(name: str, local_rank: int) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        if device.type == "cuda":
            device = torch.device("cuda", local_rank if device.index is None else device.index)
            torch.cuda.set_device(device)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, AttributeError) as error:  # what torch raises depends on its build
        raise UserError(f"device '{name}' cannot be used: {str(error).splitlines()[0]}") from error
    return device
