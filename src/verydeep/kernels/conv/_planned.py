"""A convolutional layer that is prepared for inference on images of one size."""

from collections.abc import Sequence

import torch
from torch import Tensor

from verydeep.kernels.conv._conv_call import ConvOptions, conv_call
from verydeep.kernels.runtime._table import Job

_NUMBER = 4  # bytes


class PlannedConv:
    """The kernel calls of a layer, and memory for its output.

    Filters are transformed at every call, in memory that all layers share. Transformed filters are up to four times as
    large and would have to be read from memory instead. So there is no copy that could be out of date.

    Args:
        x: The memory of its input.
        weights: The weights of all affine maps; they must stay where they are in memory.
        biases: Their biases.
        options: What is fixed about the layer besides its sizes.
    """

    def __init__(self, x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], options: ConvOptions) -> None:
        outs, threads = sum(weight.shape[0] for weight in weights), torch.get_num_threads()
        self._x = x
        self._call = conv_call(tuple(x.shape), outs, weights[0].shape[2], options, threads, few=True)
        self._pieces = self._call.forward_pieces()
        self.scratch_size = self._call.filters.forward_size + self._call.all_scratch(len(self._pieces))
        tensors = [tensor.detach() for tensor in (*weights, *biases)]
        self._tensors = [tensor.contiguous() for tensor in tensors]
        self._copied = [pair for pair in zip(self._tensors, tensors, strict=True) if pair[0] is not pair[1]]
        self.y = torch.empty(self._call.y_shape).movedim(-1, 1)

    def prepare(self) -> None:
        """Copy parameters that are not contiguous, as the kernels need them."""
        for contiguous, parameter in self._copied:
            contiguous.copy_(parameter)

    def steps(self, memory: Tensor) -> list[list[Job]]:
        """The kernel calls: those that transform the filters, then those of the layer."""
        call, count = self._call, len(self._tensors) // 2
        u, scratch = memory.data_ptr(), memory.data_ptr() + call.filters.forward_size * _NUMBER
        filters = call.filters.write_forward(self._tensors[:count], self._tensors[count:], u, scratch)
        scratches = call.scratches(scratch, len(self._pieces))
        jobs = call.forward_jobs(self._pieces, self._x, memory, self.y, None, scratches)
        return [[filters], jobs] if len(jobs) == 1 else [[[one] for one in filters], jobs]
