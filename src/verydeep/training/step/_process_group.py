"""One process or several: under torchrun each takes its part of every batch, and gradients are summed once per step."""

import atexit
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import Any
from uuid import uuid4

import torch
from torch import Tensor, distributed, nn
from torch.distributed import ReduceOp
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from verydeep.errors import OtherProcessError, UserError
from verydeep.training._torchrun import local_rank, world_size

# How long a process waits for the others. A process that ends is noticed at once; these limits are for one that hangs
# or whose machine is out of reach. While data is read, one process may have to download it and the others not.
_LIMIT = timedelta(minutes=10)
_LIMIT_FOR_DATA = timedelta(hours=2)
_POLL_EVERY = 0.02  # seconds
_patient: distributed.ProcessGroup | None = None  # all processes, with the second limit


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
        chosen = find_device(device, local_rank())
        if not (distributed.is_available() and distributed.is_initialized()):
            if world_size() == 1:
                return cls(0, 1, chosen)
            _connect(chosen)
        return cls(distributed.get_rank(), distributed.get_world_size(), chosen)

    @contextmanager
    def raise_together(self) -> Iterator[None]:
        """If the block raises a `UserError` in any process, all raise: the lowest such rank says why.

        The block may read data, so processes that have finished it wait longer than elsewhere.
        """
        problem: UserError | None = None
        try:
            yield
        except UserError as error:
            problem = error
        first = self.reduce_int(self.size if problem is None else self.rank, ReduceOp.MIN, _patient)
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

    def reduce_int(
        self, number: int, operation: ReduceOp.RedOpType, group: distributed.ProcessGroup | None = None
    ) -> int:
        """Reduce a number over the processes, with the time limit of this group of all of them."""
        if self.size == 1:
            return number
        value = torch.tensor(number, device=self.device if group is None else "cpu")
        self._call(distributed.all_reduce, value, operation, group)
        return int(value.item())

    def _call(self, operation: Callable[..., object], *arguments: object) -> None:
        """Run a collective operation, if there is anybody to run it with."""
        if self.size == 1:
            return
        try:
            operation(*arguments)
        except RuntimeError as error:  # what gloo and nccl raise when the other end is gone
            raise UserError(f"process {self.rank} {_describe(error)}") from error


def _describe(error: RuntimeError) -> str:
    """What happened to a process that waited for another one."""
    if waited := re.search(r"Timed out waiting (\d+)ms", str(error)):
        minutes = int(waited[1]) / 60_000
        return f"waited {minutes:g} minutes for another process, which hangs or whose machine is out of reach"
    return "lost its connection to another process, which failed or was killed"


def _connect(device: torch.device) -> None:
    """Meet the other processes that torchrun started; they part when Python ends."""
    global _patient  # noqa: PLW0603
    # torch imports this with its optimisers; later, it would keep the group and its threads alive for ever
    import_module("torch.distributed.nn")
    try:
        store, rank, size = next(rendezvous("env://", timeout=_LIMIT))
        options: dict[str, Any] = {
            "store": _private_store(store, rank, size),
            "rank": rank,
            "world_size": size,
            "timeout": _LIMIT,
        }
        if device.type == "cuda":
            distributed.init_process_group("nccl", **options, device_id=device)
        else:
            distributed.init_process_group("gloo", **options)
        atexit.register(_disconnect)  # and not earlier: a group cannot be joined twice
        _patient = distributed.new_group(timeout=_LIMIT_FOR_DATA, backend="gloo")
    except (RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(
            f"the {world_size()} processes cannot connect to each other ({reason}); use torchrun"
        ) from error


def _private_store(store: Store, rank: int, size: int) -> Store:
    """The part of torchrun's store that belongs to the processes that are alive now.

    When torchrun restarts the processes, its store still holds the addresses of those that were killed, and gloo would
    wait for them for ever (https://github.com/pytorch/pytorch/issues/135712). So each process writes a question that
    nobody has asked before, and the first one answers with the name of a part that nobody has used before.
    """
    name = uuid4().hex
    if rank > 0:
        store.set(f"verydeep/question/{rank}", name)
        name = store.get(f"verydeep/answer/{name}").decode()  # waits for it
        store.set(f"verydeep/{name}/{rank}", "")
    for other in range(1, size if rank == 0 else 1):
        while not store.check([f"verydeep/{name}/{other}"]):
            question = store.get(f"verydeep/question/{other}").decode()  # perhaps still that of a killed process
            store.set(f"verydeep/answer/{question}", name)
            time.sleep(_POLL_EVERY)
    return PrefixStore(f"verydeep/{name}", store)


def _disconnect() -> None:
    global _patient  # noqa: PLW0603
    _patient = None
    if distributed.is_initialized():
        distributed.destroy_process_group()


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


def find_device(name: str, local_rank: int) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:  # its message lists devices that hardly anyone has
        raise UserError(f"there is no device '{name}'; give cpu, cuda, or auto for a GPU if there is one") from None
    if device.type == "meta":
        raise UserError(f"device '{name}' cannot be used: it holds no values; give cpu or auto")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise UserError(f"device '{name}' cannot be used: PyTorch finds no GPU of Apple's; give cpu or auto")
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
