"""Networks to look into, small and untrained, with gates that are open enough for every layer to matter."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from verydeep.data import Split
from verydeep.models import MLP, MLPConfig, Network, create_model
from verydeep.nn import Highway, HighwayConv2d, HighwayLinear, HighwayStack, LSTMHighway, functional


def split(samples: int = 60, shape: tuple[int, ...] = (1, 6, 6), classes: int = 3) -> Split:
    y = torch.arange(samples) % classes
    return Split(torch.randn(samples, *shape) + y.view(-1, *[1] * len(shape)), y)


def mlp() -> MLP:
    return MLP(MLPConfig("highway", depth=6, width=7, input_shape=(1, 6, 6), classes=3, gate_bias=-0.5))


def conv() -> Network:
    return create_model("highway-mnist-16", input_shape=(1, 16, 16), classes=3, gate_bias=-0.5)


def residual() -> Network:
    return create_model("highway-110", blocks=2, widths=[4, 6, 8], stem=4, input_shape=(1, 8, 8), classes=3)


class Own(nn.Module):
    """A user's: layers registered in another order than they are reached, tensors changed in place, other modules."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(5, 3)
        self.stack = HighwayStack(8, 3, gate_bias=-0.5)
        self.first = HighwayLinear(8, gate_bias=-0.5)
        self.stem = nn.Sequential(nn.Flatten(), nn.Linear(36, 8), nn.BatchNorm1d(8))
        self.relu = nn.ReLU(inplace=True)
        gate = nn.Sequential(nn.Linear(8, 8), nn.Sigmoid())
        self.any = nn.ModuleList([Highway(nn.Sequential(nn.Linear(8, 8), self.relu), gate, gate_bias=-0.5)])
        self.dropout = nn.Dropout(0.5)
        self.narrow = HighwayLinear(8, gate_bias=-0.5, out_width=5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        skip = self.first(x)
        x = self.relu(x)
        x += skip
        for layer in self.any:
            x = layer(x)
        x = self.stack(self.dropout(x))
        x += skip
        return self.head(self.relu(self.narrow(x)))  # type: ignore[no-any-return]


class Images(nn.Module):
    """A user's with feature maps: a convolutional layer, any modules with a projection, and LSTM blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = HighwayConv2d(1, gate_bias=-0.5, out_channels=4, stride=2)
        block = nn.Conv2d(4, 6, 3, padding=1)
        gate = nn.Sequential(nn.Conv2d(4, 6, 3, padding=1), nn.Sigmoid())
        self.wider = Highway(block, gate, gate_bias=-0.5, resize=nn.Conv2d(4, 6, 1))
        self.lstm = LSTMHighway(6, 3, gate_bias=-0.5)
        self.head = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.lstm(self.wider(self.conv(x)).mean((2, 3))))  # type: ignore[no-any-return]


class Resized(nn.Module):
    """One gate for each sample, and x-hat by a function."""

    def __init__(self) -> None:
        super().__init__()
        gate = nn.Sequential(nn.Linear(36, 1), nn.Sigmoid())
        x_hat = partial(functional.resize, width=3)
        self.layer = Highway(nn.Linear(36, 3), gate, resize=x_hat)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x.flatten(1))  # type: ignore[no-any-return]


Make = Callable[[], nn.Module]
SHAPES: dict[Make, tuple[int, ...]] = {
    mlp: (1, 6, 6),
    conv: (1, 16, 16),
    residual: (1, 8, 8),
    Own: (1, 6, 6),
    Images: (1, 6, 6),
    Resized: (1, 6, 6),
}


def shaken(make: Make) -> nn.Module:
    """A model whose batch normalisation has seen something and whose gate biases differ."""
    torch.manual_seed(1)
    model = make()
    model.train()(torch.randn(8, *SHAPES[make]))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model.eval()
