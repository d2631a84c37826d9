"""When a fused kernel can stand in for plain torch operations."""

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.utils._python_dispatch import _get_current_dispatch_mode


def suits(*tensors: Tensor) -> bool:
    """Ordinary float32 tensors on the CPU, eagerly, with nobody looking on who needs to see single operations."""
    return not hidden_from() and all(map(_plain, tensors))


def hidden_from() -> bool:
    """Whether someone looks on: a compiler, exporter, tracer, vmap, forward-mode derivatives, autocast, a counter."""
    return (
        torch.compiler.is_compiling()
        or torch._C._get_tracing_state() is not None
        or torch.is_autocast_enabled("cpu")
        or torch._C._functorch.peek_interpreter_stack() is not None
        or forward_ad._current_level >= 0
        or _get_current_dispatch_mode() is not None
    )


def _plain(tensor: Tensor) -> bool:
    ordinary = type(tensor) is Tensor or type(tensor) is nn.Parameter
    return ordinary and tensor.dtype == torch.float32 and tensor.is_cpu and tensor.numel() > 0
