"""One process or several: under torchrun each takes its part of every batch, and gradients are summed once per step."""

import atexit
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module

import torch
from torch import Tensor, distributed, nn
from torch.distributed import ReduceOp

from verydeep.errors import OtherProcessError, UserError


@dataclass(frozen=True)
class ProcessGroup:
    """This process among all that train together.

    Attributes:
        rank: Its number; only rank 0 writes files and prints.
        size: How many processes there are.
        device: Where its tensors are.
    """

    rank: int
    size: int
    device: torch.device

    @classmethod
    def join(cls, device: str) -> "ProcessGroup":
        """Connect to the other processes if torchrun started any; otherwise the group has one process."""
        chosen = _find_device(device, int(os.environ.get("LOCAL_RANK", "0")))
        if distributed.is_available() and distributed.is_initialized():
            return cls(distributed.get_rank(), distributed.get_world_size(), chosen)
        if int(os.environ.get("WORLD_SIZE", "1")) == 1:
            return cls(0, 1, chosen)
        # torch imports this with its optimisers; later, it would keep the group and its threads alive for ever
        import_module("torch.distributed.nn")
        try:
            if chosen.type == "cuda":
                distributed.init_process_group("nccl", device_id=chosen)
            else:
                distributed.init_process_group("gloo")
        except (RuntimeError, ValueError) as error:
            reason, size = str(error).splitlines()[0], os.environ["WORLD_SIZE"]
            raise UserError(f"the {size} processes cannot connect to each other ({reason}); use torchrun") from error
        atexit.register(distributed.destroy_process_group)  # and not earlier: a group cannot be joined twice
        return cls(distributed.get_rank(), distributed.get_world_size(), chosen)

    @contextmanager
    def raise_together(self) -> Iterator[None]:
        """If the block raises a `UserError` in any process, all raise: the lowest such rank says why."""
        problem: UserError | None = None
        try:
            yield
        except UserError as error:
            problem = error
        first = self.reduce_int(self.size if problem is None else self.rank, ReduceOp.MIN)
        if problem is not None and first == self.rank:
            raise problem
        if first < self.size:
            raise OtherProcessError(f"process {first} failed; see its message")

    def barrier(self) -> None:
        """Wait until all processes are here."""
        self._call(distributed.barrier)

    def sum(self, value: Tensor) -> Tensor:
        """Sum a tensor over the processes, in place."""
        self._call(distributed.all_reduce, value)
        return value

    def any_rank(self, condition: bool) -> bool:
        """Whether the condition holds in any process."""
        return bool(self.reduce_int(int(condition), ReduceOp.MAX))

    def from_rank0(self, number: int) -> int:
        """The number of rank 0, in all processes."""
        return self.reduce_int(number if self.rank == 0 else -1, ReduceOp.MAX)

    def all_equal(self, number: int) -> bool:
        """Whether all processes have the same number."""
        return self.reduce_int(number, ReduceOp.MAX) == self.reduce_int(number, ReduceOp.MIN)

    def broadcast_model(self, model: nn.Module) -> None:
        """Give every process the weights and buffers of rank 0."""
        for tensor in (*model.parameters(), *model.buffers()):
            self._call(distributed.broadcast, tensor.detach(), 0)

    def average_buffers(self, model: nn.Module) -> None:
        """Average floating-point buffers over the processes: the running statistics of batch normalisation."""
        for buffer in model.buffers():
            if buffer.is_floating_point():
                self.sum(buffer).div_(self.size)

    def reduce_int(self, number: int, operation: ReduceOp.RedOpType) -> int:
        """Reduce a number over the processes."""
        if self.size == 1:
            return number
        value = torch.tensor(number, device=self.device)
        self._call(distributed.all_reduce, value, operation)
        return int(value.item())

    def _call(self, operation: Callable[..., object], *arguments: object) -> None:
        """Run a collective operation, if there is anybody to run it with."""
        if self.size == 1:
            return
        try:
            operation(*arguments)
        except RuntimeError as error:  # what gloo and nccl raise when the other end is gone
            raise UserError(
                f"process {self.rank} lost its connection to the others; see the message of the one that failed first. "
                "The run is saved and can be resumed with torchrun"
            ) from error


class FlatGradients:
    """All gradients in one buffer, so that a single all-reduce sums them; a single process needs no buffer."""

    def __init__(self, model: nn.Module, group: ProcessGroup) -> None:
        self.group, self.parameters = group, list(model.parameters())
        if group.size == 1:
            return
        parameters = [p for p in self.parameters if p.requires_grad]
        if any(p.dtype != torch.float32 for p in parameters):
            raise UserError(
                "training with several processes needs float32 parameters; instead of converting the model, set "
                "precision = 'bfloat16'"
            )
        sizes = [p.numel() for p in parameters]
        self.flat = torch.zeros(sum(sizes) + 1, device=group.device)  # the last element carries a request to stop
        for parameter, part in zip(parameters, self.flat[:-1].split(sizes), strict=True):
            parameter.grad = part.view_as(parameter)

    def zero(self) -> None:
        """Prepare for a backward pass."""
        if self.group.size == 1:
            for parameter in self.parameters:
                parameter.grad = None
        else:
            self.flat.zero_()

    def all_reduce(self, stop_requested: bool, sync: bool) -> bool:
        """Sum the gradients over the processes after a backward pass.

        Args:
            stop_requested: Whether this process was asked to stop.
            sync: Whether to wait for a GPU; otherwise only processes on CPUs learn of a request to stop.

        Returns:
            Whether any process was asked to stop; the result is the same in all of them.
        """
        if self.group.size == 1:
            return stop_requested
        self.flat[-1] = stop_requested
        self.group.sum(self.flat)
        return (sync or self.flat.device.type == "cpu") and bool(self.flat[-1] > 0)


def _find_device(name: str, local_rank: int) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:  # its message lists devices that hardly anyone has
        raise UserError(f"there is no device '{name}'; give cpu, cuda, or auto for a GPU if there is one") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UserError(f"device '{name}' cannot be used: PyTorch finds no GPU; give cpu or auto")
    try:
        if device.type == "cuda":
            device = torch.device("cuda", local_rank if device.index is None else device.index)
            torch.cuda.set_device(device)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, AttributeError) as error:  # what torch raises depends on its build
        raise UserError(f"device '{name}' cannot be used: {str(error).splitlines()[0]}") from error
    return device
