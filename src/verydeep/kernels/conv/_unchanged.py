"""Whether parameters still have the values that they had when something was computed from them."""

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from verydeep.kernels.runtime._compile import Function


@cache
def _kernel() -> "Function":
    from verydeep.kernels.conv._compare import count_differences
    from verydeep.kernels.runtime._compile import compile_kernels

    return compile_kernels("compare", [count_differences])[0]


class Snapshot:
    """Copies of tensors, to be compared with the tensors later.

    torch counts the changes of a tensor, except those through `.data` or a NumPy view, so all values are compared as
    well. NaN differs from itself, so a tensor with NaN counts as changed.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._tensors = list(tensors)
        self._aliases = [tensor.detach() for tensor in tensors]  # so that no other tensor gets their memory
        self._copies = [alias.clone() for alias in self._aliases]  # in the same memory format
        self._addresses = [tensor.data_ptr() for tensor in tensors]
        self._versions = [tensor._version for tensor in tensors]
        rows = [(a.data_ptr(), b.data_ptr(), a.numel()) for a, b in zip(self._aliases, self._copies, strict=True)]
        self._table, self._differences = torch.tensor(rows, dtype=torch.int64), ctypes.c_float()

    def is_current(self, tensors: Sequence[Tensor | None]) -> bool:
        """Whether these are the same tensors, with the same values."""
        if len(tensors) != len(self._tensors) or any(a is not b for a, b in zip(tensors, self._tensors, strict=True)):
            return False
        if [tensor.data_ptr() for tensor in self._tensors] != self._addresses:
            return False
        if [tensor._version for tensor in self._tensors] != self._versions:
            return False
        _kernel()(self._table.data_ptr(), len(self._tensors), ctypes.addressof(self._differences))
        return self._differences.value == 0
