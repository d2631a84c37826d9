"""A convolutional layer that is prepared for inference on images of one size."""

import torch
from torch import Tensor

from verydeep.kernels.conv._conv_call import ConvCall, ConvOptions
from verydeep.kernels.runtime._buffers import thread_scratch
from verydeep.kernels.runtime._threads import Job, run_together


class PlannedConv:
    """The filters of a layer as its kernel needs them, memory for its output, and its kernel calls.

    Args:
        shape: The shape of x.
        weight: The weights of all affine maps.
        bias: Their biases.
        options: What is fixed about the layer besides its sizes.
    """

    def __init__(self, shape: torch.Size, weight: Tensor, bias: Tensor, options: ConvOptions) -> None:
        self._call = ConvCall(shape, weight, options, few=True)
        self._u = torch.empty(self._call.filters.forward_size)
        self._call.filters.write_forward(bias, self._u)
        self._pieces = self._call.forward_pieces()
        self._sizes = torch.tensor(self._call.shared)
        *pixels, outs = self._call.z_shape
        self.y = torch.empty(*pixels, outs // options.affine_maps).movedim(-1, 1)
        self._jobs: list[Job] = []
        self._addresses = 0, 0  # of x and scratch memory in these jobs

    def __call__(self, x: Tensor) -> Tensor:
        """The layer's output, which the next call overwrites; x is float32 with its channels last."""
        scratch = thread_scratch(len(self._pieces) * self._call.scratch_size)
        addresses = x.data_ptr(), scratch.data_ptr()
        if addresses != self._addresses:
            self._addresses, scratches = addresses, self._call.scratches(addresses[1], len(self._pieces))
            self._jobs = self._call.forward_jobs(self._pieces, x, self._u, self.y, None, scratches, self._sizes)
        run_together(self._jobs)
        return self.y
