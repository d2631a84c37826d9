"""Convolutional networks, built from a description."""

import math
from collections import Counter
from collections.abc import Callable, Collection
from functools import partial
from itertools import count, pairwise
from typing import Any

import torch
from torch import Tensor, nn

from verydeep.errors import UserError, unknown
from verydeep.kernels import Backend, check_backend
from verydeep.models._network import Network, run_to_layers, trace_layers
from verydeep.models._spec import Conv, ConvConfig, Dense, Dropout, Highways, Layer, Pool
from verydeep.nn import (
    HighwayConv2d,
    Maxout,
    Trace,
    init_weight,
    run_conv,
    run_dropout,
    run_inference,
    run_max_pool,
    run_steps,
)


class ConvNet(Network):
    """A convolutional network, built from a `ConvConfig`. Layers are named and numbered: conv1, highway2, ... dense10.

    Args:
        config: The description of the network.
        device: Device of the parameters.
        dtype: Data type of the parameters.

    Example:
        >>> import torch
        >>> from verydeep.models import Conv, ConvConfig, ConvNet, Highways, Pool
        >>> layers = (Conv(8), Highways((3, 3)), Pool(2), Conv(16), Highways((3,)), Pool())
        >>> model = ConvNet(ConvConfig(layers, input_shape=(3, 16, 16), classes=5))
        >>> model(torch.randn(2, 3, 16, 16), closed={1}).shape
        torch.Size([2, 5])
        >>> [tuple(trace.t.shape) for trace in model.trace(torch.randn(2, 3, 16, 16))]
        [(2, 8, 16, 16), (2, 8, 16, 16), (2, 16, 8, 8)]
    """

    def __init__(
        self, config: ConvConfig, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        self.config = config
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        build = _Builder(config, factory)
        self.layers = nn.Sequential()
        for layer in config.layers:
            for name, module in build.modules(layer):
                self.layers.add_module(name, module)
        self.recompute = False
        self._backend: Backend = "auto"
        self.classifier = None
        if config.classifier_std is not None:
            self.classifier = nn.Linear(math.prod(build.shape), config.classes, **factory)
            self._reset_classifier()
        elif math.prod(build.shape) != config.classes:
            raise UserError(f"without a classifier the layers must end in {config.classes} values, not {build.shape}")

    def reset_parameters(self) -> None:
        for layer, following in pairwise([*self.layers, None]):
            if isinstance(layer, HighwayConv2d):
                layer.reset_parameters()
            elif isinstance(layer, nn.Conv2d | nn.Linear):
                _init_rectified(layer, following.pieces if isinstance(following, Maxout) else 1, self.config.init)
        self._reset_classifier()

    def _reset_classifier(self) -> None:
        if self.classifier is not None and self.config.classifier_std is not None:
            nn.init.normal_(self.classifier.weight, 0, self.config.classifier_std)
            nn.init.zeros_(self.classifier.bias)

    @property
    def highway_depth(self) -> int:
        return sum(isinstance(layer, HighwayConv2d) for layer in self.layers)

    @property
    def backend(self) -> Backend:
        """Where the convolutions run: "auto", "fused" or "reference"; assigning it sets that of the highway layers."""
        return self._backend

    @backend.setter
    def backend(self, backend: Backend) -> None:
        check_backend(backend)
        self._backend = backend
        for layer in self.layers:
            if isinstance(layer, HighwayConv2d):
                layer.backend = backend

    def checkpoint_activations(self) -> None:
        self.recompute = True

    def trace(self, x: Tensor, closed: Collection[int] = ()) -> tuple[Trace, ...]:
        closed = self._check(x, closed)
        return trace_layers(self.layers, x, closed)

    def features(self, x: Tensor, layer: str) -> Tensor:
        """The feature maps after the layer of this name and its activation."""
        names = [name for name, _ in self.layers.named_children()]
        if layer not in names:
            raise unknown("layer", layer, names)
        end = names.index(layer) + 1
        if end < len(names) and names[end].startswith("activation"):
            end += 1
        return run_steps(list(self.layers)[:end], x, self.recompute)

    def hidden_layers(self) -> list[str]:
        return [name for name, _ in self.layers.named_children()]

    def forward_hidden(self, x: Tensor, layers: Collection[str]) -> tuple[Tensor, dict[str, Tensor]]:
        self._check(x, ())
        x, values = run_to_layers(list(self.layers), self.hidden_layers(), x, layers, self.recompute)
        x = x.flatten(1)
        return x if self.classifier is None else self.classifier(x), values

    def forward(self, x: Tensor, closed: Collection[int] = ()) -> Tensor:
        closed = self._check(x, closed)
        y = None if self.training else run_inference(self, self._open_layers(closed), x, self.backend)
        x = (run_steps(self._steps(closed), x, self.recompute) if y is None else y).flatten(1)
        return x if self.classifier is None else self.classifier(x)

    def _open_layers(self, closed: Collection[int]) -> list[nn.Module]:
        """The layers without the closed ones, which copy their input."""
        numbers = count()
        return [layer for layer in self.layers if not (isinstance(layer, HighwayConv2d) and next(numbers) in closed)]

    def _steps(self, closed: Collection[int]) -> list[Callable[[Tensor], Tensor]]:
        """The layers in order; a convolution and its activation are one step."""
        numbers = count()
        steps: list[Callable[[Tensor], Tensor]] = []
        activation: nn.Module | None = None  # of the convolution before
        for layer, following in pairwise([*self.layers, None]):
            assert layer is not None
            if layer is activation:
                continue
            if isinstance(layer, HighwayConv2d):
                steps.append(partial(layer, closed=next(numbers) in closed))
            elif isinstance(layer, nn.Conv2d) and isinstance(following, nn.ReLU | Maxout):
                steps.append(partial(run_conv, layer, following, backend=self.backend))
                activation = following
            elif isinstance(layer, nn.MaxPool2d | nn.AdaptiveMaxPool2d):
                steps.append(partial(run_max_pool, layer, backend=self.backend))
            elif isinstance(layer, nn.Dropout):
                steps.append(partial(run_dropout, layer, backend=self.backend))
            else:
                steps.append(layer)
        return steps


def _init_rectified(module: nn.Conv2d | nn.Linear, pieces: int, scheme: str) -> None:
    """Initialise a layer that a rectifier follows, or maxout over several pieces."""
    fan_in, fan_out = nn.init._calculate_fan_in_and_fan_out(module.weight)
    if scheme == "auto" and pieces > 1:
        scheme = "scaled_normal"  # a rectifier halves the mean square, hence the 2 in He's variance; maxout does not
    init_weight(module.weight, fan_in, fan_out, "relu" if pieces == 1 else "maxout", scheme)
    assert module.bias is not None
    nn.init.zeros_(module.bias)


class _Builder:
    """Builds modules one after the other and tracks the shape of their output."""

    def __init__(self, config: ConvConfig, factory: dict[str, Any]) -> None:
        self.factory = factory
        self.classes, self.gate_bias, self.init = config.classes, config.gate_bias, config.init
        self.shape = config.input_shape
        self.weighted = 0  # the number of layers with weights so far, as the paper counts them
        self.others: Counter[str] = Counter()

    def modules(self, layer: Layer) -> list[tuple[str, nn.Module]]:
        match layer:
            case Conv():
                return self._conv(layer)
            case Highways(kernels):
                channels = self.shape[0]
                factory = self.factory | {"init": self.init}
                layers = [HighwayConv2d(channels, k, "relu", self.gate_bias, **factory) for k in kernels]
                return [(self._number("highway"), layer) for layer in layers]
            case Pool():
                return [(self._count("pool"), self._pool(layer))]
            case Dropout(p):
                return [(self._count("dropout"), nn.Dropout(p))]
            case Dense():
                return self._dense(layer)

    def _conv(self, layer: Conv) -> list[tuple[str, nn.Module]]:
        channels = self.classes if layer.channels is None else layer.channels
        padding = layer.kernel // 2 if layer.padding is None else layer.padding
        conv = nn.Conv2d(self.shape[0], channels * layer.pieces, layer.kernel, layer.stride, padding, **self.factory)
        height, width = ((side + 2 * padding - layer.kernel) // layer.stride + 1 for side in self.shape[1:])
        self._reach(channels, height, width)
        convolution, activation = self._activated("conv", conv, layer.pieces)
        return [convolution, (activation[0], nn.Identity()) if layer.linear else activation]

    def _dense(self, layer: Dense) -> list[tuple[str, nn.Module]]:
        dense = nn.Linear(math.prod(self.shape), layer.units * layer.pieces, **self.factory)
        flatten = [(self._count("flatten"), nn.Flatten())] if len(self.shape) > 1 else []
        self.shape = (layer.units,)
        return [*flatten, *self._activated("dense", dense, layer.pieces)]

    def _activated(self, name: str, module: nn.Conv2d | nn.Linear, pieces: int) -> list[tuple[str, nn.Module]]:
        _init_rectified(module, pieces, self.init)
        activation = nn.ReLU() if pieces == 1 else Maxout(pieces)
        return [(self._number(name), module), (self._count("activation"), activation)]

    def _pool(self, layer: Pool) -> nn.Module:
        channels, *sides = self.shape
        if layer.size is None:
            self._reach(channels, 1, 1)
            return nn.AdaptiveMaxPool2d(1) if layer.how == "max" else nn.AdaptiveAvgPool2d(1)
        # Rounded up, but without a window that would start beyond the edge.
        height, width = (min(-(-(side - layer.size) // layer.stride), (side - 1) // layer.stride) + 1 for side in sides)
        self._reach(channels, height, width)
        make = nn.MaxPool2d if layer.how == "max" else nn.AvgPool2d
        return make(layer.size, layer.stride, ceil_mode=True)

    def _reach(self, *shape: int) -> None:
        if min(shape) < 1:
            raise UserError(
                f"images of this size are too small for the network: feature maps of {self.shape} would become {shape}"
            )
        self.shape = shape

    def _number(self, name: str) -> str:
        self.weighted += 1
        return f"{name}{self.weighted}"

    def _count(self, name: str) -> str:
        self.others[name] += 1
        return f"{name}{self.others[name]}"
