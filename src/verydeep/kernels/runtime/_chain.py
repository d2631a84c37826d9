"""Layers that are prepared for inference on images of one size, one after the other, in as few calls as possible."""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from verydeep.kernels.runtime._buffers import thread_scratch
from verydeep.kernels.runtime._pool import pool_kernels
from verydeep.kernels.runtime._table import Job, Table, make_table
from verydeep.kernels.runtime._threads import run_together


class PlannedLayer(Protocol):
    """A prepared layer.

    Attributes:
        y: Memory for its output, with the channels last.
        scratch_size: The numbers of scratch memory that it needs.
    """

    y: Tensor
    scratch_size: int

    def prepare(self) -> None:
        """What torch does before each call."""

    def steps(self, memory: Tensor) -> list[list[Job]]:
        """The kernel calls, with this scratch memory: jobs that run together, one list after the other."""


class PlannedChain:
    """Prepared layers, each of which reads the output of the one before.

    Args:
        x: Memory for the input of the first layer.
        layers: The layers, at least one.
    """

    def __init__(self, x: Tensor, layers: Sequence[PlannedLayer]) -> None:
        self._x, self._layers = x, list(layers)
        self._size = max(layer.scratch_size for layer in layers)
        self._address = 0  # of scratch memory in what follows
        self._steps: list[list[Job]] = []
        self._table: Table | None = None  # all calls, if there is nothing to share among threads

    def __call__(self, x: Tensor) -> Tensor:
        """The output of the last layer, which the next call overwrites."""
        memory = thread_scratch(self._size)
        if memory.data_ptr() != self._address:
            self._make_calls(memory)
        self._x.copy_(x)
        for layer in self._layers:
            layer.prepare()
        if self._table is not None:
            self._table[0] = 0
            pool_kernels().serve(self._table.ctypes.data)
        else:
            for jobs in self._steps:
                run_together(jobs)
        return self._layers[-1].y

    def _make_calls(self, memory: Tensor) -> None:
        self._address = memory.data_ptr()
        self._steps = [jobs for layer in self._layers for jobs in layer.steps(memory)]
        alone = all(len(jobs) == 1 for jobs in self._steps)
        self._table = make_table([[call for (job,) in self._steps for call in job]]) if alone else None


def empty_images(shape: Sequence[int]) -> Tensor:
    """Uninitialised images `(batch, channel, height, width)` with their channels last."""
    batch, channels, height, width = shape
    return torch.empty(batch, height, width, channels, dtype=torch.float32, device="cpu").movedim(-1, 1)
