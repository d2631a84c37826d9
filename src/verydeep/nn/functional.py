"""The paper's operations as functions of tensors."""

import torch
from torch import Tensor

__all__ = ["highway", "resize"]


def highway(x: Tensor, h: Tensor, t: Tensor, c: Tensor | None = None) -> Tensor:
    """The Highway operation, `y = h * t + x * c` (Equation 2), with `c = 1 - t` when no c is given (Equation 3).

    `torch.lerp(x, h, t)` is Equation 3 in one pass over memory. Its derivatives are those of the paper's appendix,
    `dh = t * dy`, `dt = (h - x) * dy`, `dx = (1 - t) * dy`, and it is exact at both ends: t = 0 gives x, t = 1 gives h.

    Args:
        x: The input of the layer.
        h: Block state, H(x).
        t: Transform gate output, T(x), between 0 and 1; may broadcast (one gate per sample, feature map, ...).
        c: Carry gate output, C(x), if it is independent of t.

    Example:
        >>> import torch
        >>> from verydeep.nn.functional import highway
        >>> x, h = torch.tensor([1.0, 1.0, 1.0]), torch.tensor([5.0, 5.0, 5.0])
        >>> highway(x, h, t=torch.tensor([0.0, 0.25, 1.0]))
        tensor([1., 2., 5.])
    """
    if c is not None:
        return h * t + x * c
    dtype = torch.promote_types(x.dtype, torch.promote_types(h.dtype, t.dtype))  # under autocast x may be wider
    return torch.lerp(x.to(dtype), h.to(dtype), t.to(dtype))


def resize(x: Tensor, width: int, dim: int = -1, stride: int = 1) -> Tensor:
    """The paper's x-hat (Section 2.1): x with another width and sub-sampled positions, without any parameters.

    A larger width appends zeros; a smaller one keeps evenly spaced blocks. Every dimension after `dim` (rows and
    columns of feature maps) keeps every `stride`-th position.

    Args:
        x: The input.
        width: The new size of dimension `dim`.
        dim: The dimension of blocks or feature maps.
        stride: Distance between the positions that are kept.

    Example:
        >>> import torch
        >>> from verydeep.nn.functional import resize
        >>> resize(torch.tensor([1, 2, 3, 4]), width=6)
        tensor([1, 2, 3, 4, 0, 0])
        >>> resize(torch.tensor([1, 2, 3, 4]), width=2)
        tensor([1, 3])
        >>> resize(torch.zeros(8, 16, 32, 32), width=24, dim=1, stride=2).shape
        torch.Size([8, 24, 16, 16])
    """
    dim = dim % x.dim()
    if stride > 1:
        x = x[(...,) + (slice(None, None, stride),) * (x.dim() - dim - 1)]
    have = x.shape[dim]
    if width > have:
        zeros = x.new_zeros(*x.shape[:dim], width - have, *x.shape[dim + 1 :])
        return torch.cat([x, zeros], dim)
    if width < have:
        return x.index_select(dim, torch.arange(width, device=x.device) * have // width)
    return x
