"""A convolutional layer that is prepared for inference on images of one size."""

import ctypes
from collections.abc import Sequence

import torch
from torch import Tensor

from verydeep.kernels.conv._conv_call import ConvCall, ConvOptions
from verydeep.kernels.runtime._buffers import _SLACK
from verydeep.kernels.runtime._threads import Job, run_together

_compare = ctypes.CDLL(None).memcmp
_compare.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


class PlannedConv:
    """The filters of a layer as its kernel needs them, memory for its output, and its kernel calls.

    It keeps copies of the parameters. `is_current` compares them with the parameters themselves, because torch does not
    count changes through `.data` or a NumPy view.

    Args:
        shape: The shape of x.
        weights: The weights of the affine maps.
        biases: Their biases.
        options: What is fixed about the layer besides its sizes.
    """

    def __init__(
        self, shape: torch.Size, weights: Sequence[Tensor], biases: Sequence[Tensor], options: ConvOptions
    ) -> None:
        self._call = ConvCall(shape, torch.cat(tuple(weights)), options)
        self._copies = [parameter.detach().clone().contiguous() for parameter in (*weights, *biases)]
        self._u = torch.empty(self._call.filters.forward_size)
        self._call.filters.write_forward(torch.cat(tuple(biases)), self._u)
        self._pieces = self._call.forward_pieces()
        self._scratch = torch.empty(len(self._pieces) * self._call.scratch_size + _SLACK)
        self._sizes = torch.tensor(self._call.shared)
        self.y = torch.empty(self._call.y_shape).movedim(-1, 1)
        self._jobs: list[Job] = []
        self._x = 0

    def is_current(self, parameters: Sequence[Tensor]) -> bool:
        """Whether the parameters still have the values they had: weights, then biases."""
        for copy, parameter in zip(self._copies, parameters, strict=True):
            if parameter.shape != copy.shape or not parameter.is_contiguous() or parameter.dtype != torch.float32:
                return False
            if _compare(parameter.data_ptr(), copy.data_ptr(), copy.nbytes):
                return False
        return True

    def __call__(self, x: Tensor) -> Tensor:
        """The layer's output, which the next call overwrites; x is float32 with its channels last."""
        if x.data_ptr() != self._x:
            self._x = x.data_ptr()
            scratches = self._call.scratches(self._scratch.data_ptr(), len(self._pieces))
            self._jobs = self._call.forward_jobs(self._pieces, x, self._u, self.y, None, scratches, self._sizes)
        run_together(self._jobs)
        return self.y
