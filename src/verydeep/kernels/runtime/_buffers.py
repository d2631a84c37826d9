"""Memory that is reused: buffers that a step keeps for its backward pass, and scratch space."""

import threading
import weakref
from queue import SimpleQueue

import torch
from torch import Tensor

_KEPT = 4  # free blocks that wait for the next step; a training loop needs one per stack
_SLACK = 2048  # numbers past the end: kernels read whole registers of whole rows and discard the excess
_free: list[Tensor] = []
_returned: SimpleQueue[Tensor] = SimpleQueue()  # filled by finalizers, which may run anywhere and must not lock
_lock = threading.Lock()
_per_thread = threading.local()


def acquire_buffer(numbers: int) -> Tensor:
    """An uninitialised float32 tensor whose memory is reused once no tensor refers to it any more.

    The operating system would reclaim large blocks and hand them out again page by page, which takes a tenth of the
    step of a deep network.
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


def thread_scratch(numbers: int) -> Tensor:
    """Scratch memory for one kernel call: every thread has its own, the same at every call."""
    scratch: Tensor | None = getattr(_per_thread, "scratch", None)
    if scratch is None or scratch.numel() < numbers + _SLACK:
        scratch = _per_thread.scratch = _floats(numbers + _SLACK)
    return scratch


def _floats(numbers: int) -> Tensor:
    """An uninitialised tensor for kernels, independent of torch's default dtype, device and inference mode."""
    with torch.inference_mode(False):  # memory that is used again must be one that any later call may change
        return torch.empty(numbers, dtype=torch.float32, device="cpu")
