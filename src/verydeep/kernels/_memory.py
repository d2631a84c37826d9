"""Memory that is used again: what a step keeps for its backward pass, and room to work in."""

import threading
import weakref
from queue import SimpleQueue

import torch
from torch import Tensor

_KEPT = 4  # blocks that wait for the next step; a training loop needs one a stack
_SLACK = 2048  # numbers behind the end: kernels read whole registers of whole rows, and throw away what is not theirs
_free: list[Tensor] = []
_returned: SimpleQueue[Tensor] = SimpleQueue()  # filled by destructors, which may run at any place: no lock
_lock = threading.Lock()
_own = threading.local()


def borrow(numbers: int) -> Tensor:
    """A float32 tensor with any content. Its memory waits for the next borrower when no tensor uses it any more.

    The system would take large blocks back and hand them out again page by page, at a tenth of a deep network's step.
    """
    if numbers == 0:
        return _floats(0)
    block = _take(numbers + _SLACK)
    array = block.numpy()[:numbers]
    weakref.finalize(array, _returned.put, block).atexit = False
    return torch.from_numpy(array)


def _take(numbers: int) -> Tensor:
    with _lock:
        while not _returned.empty():
            _free.append(_returned.get())
        del _free[:-_KEPT]
        fitting = [i for i, block in enumerate(_free) if numbers <= block.numel() <= 2 * numbers]
        if fitting:
            return _free.pop(min(fitting, key=lambda i: _free[i].numel()))
    return _floats(numbers)


def work_space(numbers: int) -> Tensor:
    """Room for one kernel call, a thread's own: the same memory at every call."""
    room: Tensor | None = getattr(_own, "room", None)
    if room is None or room.numel() < numbers + _SLACK:
        room = _own.room = _floats(numbers + _SLACK)
    return room


def _floats(numbers: int) -> Tensor:
    """What kernels write, whatever type and device the user has made torch's defaults."""
    return torch.empty(numbers, dtype=torch.float32, device="cpu")
