"""A convolutional layer that is prepared for inference on images of one size."""

from collections.abc import Sequence

import torch
from torch import Tensor

from verydeep.kernels.conv._conv_call import ConvOptions, conv_call
from verydeep.kernels.runtime._buffers import thread_scratch
from verydeep.kernels.runtime._threads import Job, run_together

_NUMBER = 4  # bytes


class PlannedConv:
    """The kernel calls of a layer, and memory for its output.

    Filters are transformed at every call, in memory that all layers share: for large layers, reading transformed
    filters, which are up to four times as large, would take longer. So there is no copy that could be out of date.

    Args:
        shape: The shape of x.
        weights: The weights of all affine maps; they must stay where they are in memory.
        biases: Their biases.
        options: What is fixed about the layer besides its sizes.
    """

    def __init__(
        self, shape: torch.Size, weights: Sequence[Tensor], biases: Sequence[Tensor], options: ConvOptions
    ) -> None:
        outs, threads = sum(weight.shape[0] for weight in weights), torch.get_num_threads()
        self._call = conv_call(tuple(shape), outs, weights[0].shape[2], options, threads, few=True)
        self._pieces = self._call.forward_pieces()
        self._size = self._call.filters.forward_size + self._call.all_scratch(len(self._pieces))
        tensors = [tensor.detach() for tensor in (*weights, *biases)]
        self._tensors = [tensor.contiguous() for tensor in tensors]
        self._copied = [pair for pair in zip(self._tensors, tensors, strict=True) if pair[0] is not pair[1]]
        self.y = torch.empty(self._call.y_shape).movedim(-1, 1)
        self._steps: list[list[Job]] = []  # of jobs that run together
        self._addresses = 0, 0  # of x and scratch memory in these jobs

    def __call__(self, x: Tensor) -> Tensor:
        """The layer's output, which the next call overwrites; x is float32 with its channels last."""
        memory = thread_scratch(self._size)
        addresses = x.data_ptr(), memory.data_ptr()
        if addresses != self._addresses:
            self._addresses, self._steps = addresses, self._make_steps(x, memory)
        for contiguous, parameter in self._copied:
            contiguous.copy_(parameter)
        for jobs in self._steps:
            run_together(jobs)
        return self.y

    def _make_steps(self, x: Tensor, memory: Tensor) -> list[list[Job]]:
        call, count = self._call, len(self._tensors) // 2
        u, scratch = memory.data_ptr(), memory.data_ptr() + call.filters.forward_size * _NUMBER
        filters = call.filters.write_forward(self._tensors[:count], self._tensors[count:], u, scratch)
        scratches = call.scratches(scratch, len(self._pieces))
        jobs = call.forward_jobs(self._pieces, x, memory, self.y, None, scratches)
        return [[[*filters, *jobs[0]]]] if len(jobs) == 1 else [[[one] for one in filters], jobs]
