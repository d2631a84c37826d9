"""Max pooling of a network's layers, in kernels where they can run."""

from torch import Tensor, nn

from verydeep import kernels
from verydeep.kernels import Backend, Windows


def run_max_pool(layer: nn.MaxPool2d | nn.AdaptiveMaxPool2d, x: Tensor, backend: Backend = "auto") -> Tensor:
    """`layer(x)`.

    Args:
        layer: The module; if it has hooks, it is called as usual.
        x: `(batch, channel, height, width)`; the kernels need its channels last.
        backend: "auto", "fused" (the same here) or "reference".
    """
    windows = pooling_windows(layer)
    if windows is None or kernels.has_hooks(layer) or not kernels.can_run_max_pool(backend, windows.side, x):
        y: Tensor = layer(x)
        return y
    return kernels.max_pool(x, windows)


def pooling_windows(layer: nn.Module) -> Windows | None:
    """What the kernels pool; None if they cannot."""
    if type(layer) is nn.AdaptiveMaxPool2d:
        return Windows(0, 1, ceil=False) if layer.output_size in (1, (1, 1)) and not layer.return_indices else None
    if type(layer) is not nn.MaxPool2d or layer.return_indices or layer.padding != 0 or layer.dilation != 1:
        return None
    side, stride = layer.kernel_size, layer.stride
    return Windows(side, stride, layer.ceil_mode) if isinstance(side, int) and isinstance(stride, int) else None
