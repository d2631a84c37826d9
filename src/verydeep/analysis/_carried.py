"""What is left of closed layers in a module of the user's own."""

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn

from verydeep.nn import Highway, HighwayConv1d, HighwayConv2d, HighwayConv3d, HighwayLayer, HighwayLinear
from verydeep.nn.functional import resize


class Carried(nn.Module):
    """In the place of a closed highway layer: hands on its input, or x-hat where the layer changed the shape."""

    def __init__(self, x_hat: Callable[[Tensor], Tensor] | None = None) -> None:
        super().__init__()
        self.x_hat = x_hat

    def forward(self, x: Tensor, closed: object = False) -> Tensor:
        return (x if self.x_hat is None else self.x_hat(x)).clone()  # what follows may change it in place


class Closed(nn.Module):
    """A highway layer of the user's own kind that stays closed; only it knows which of its parts make x-hat."""

    def __init__(self, layer: HighwayLayer) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, closed: object = True) -> Tensor:
        return self.layer(x, closed=True)  # type: ignore[no-any-return]


def carried(layer: HighwayLayer) -> nn.Module:
    """What does the same as the layer when it is closed."""
    match layer:
        case Highway():
            return Carried(layer.resize)
        case HighwayLinear():
            return Carried(partial(resize, width=layer.out_width))
        case HighwayConv1d() | HighwayConv2d() | HighwayConv3d():
            return Carried(partial(resize, width=layer.out_channels, dim=layer.block_dim, stride=layer.stride))
    return Carried() if type(layer).x_hat is HighwayLayer.x_hat else Closed(layer)
