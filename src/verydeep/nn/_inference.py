"""Networks prepared for inference on few images: what does not depend on the images is computed once.

For single images, deciding layer by layer where to run takes longer than the arithmetic. A plan holds the memory and
the kernel calls of all layers, for one shape of x. The calls read the parameters where they are, so changed values need
not be noticed. The plan is made again when the shape of x, a layer, the place of a parameter in memory or the number of
threads has changed.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from verydeep import kernels
from verydeep.kernels import Backend, ConvOptions, PlannedChain, PlannedConv, PlannedLayer, PlannedPool
from verydeep.nn._activations import activation_name
from verydeep.nn._conv_layer import activation_kind
from verydeep.nn._highway_conv import HighwayConv2d
from verydeep.nn._max_pool import pooling_windows
from verydeep.nn._maxout import Maxout


class _Conv(NamedTuple):
    """A convolutional layer that kernels can run."""

    layers: tuple[nn.Module, ...]  # the highway layer, or a convolution and its activation
    maps: tuple[nn.Module, ...]  # the convolutions
    options: ConvOptions


class _Plan:
    """The steps for one shape of x: chains of planned layers, and other modules as they are."""

    def __init__(self, layers: list[nn.Module], x: Tensor) -> None:
        self.layers, self.shape, self.threads = layers, x.shape, torch.get_num_threads()
        self.lock = threading.Lock()  # a plan has one set of buffers
        described = _describe(layers)
        self.maps = [module for layer in described if isinstance(layer, _Conv) for module in layer.maps]
        self.modules = [*layers, *self.maps]
        self.highways = [(layer, _state(layer)) for layer in layers if isinstance(layer, HighwayConv2d)]
        self.steps: list[Callable[[Tensor], Tensor]] = []
        chain: list[PlannedLayer] = []
        start = x  # the memory of the input of the chain
        for layer in [*described, None]:
            if isinstance(layer, nn.Dropout):  # does nothing in evaluation mode
                continue
            memory = chain[-1].y if chain else kernels.empty_images(x.shape) if x.dim() == 4 else x
            start = start if chain else memory
            planned = None if layer is None else _planned(layer, memory)
            if planned is not None:
                chain.append(planned)
                continue
            if chain:
                x = self._append(PlannedChain(start, chain), x)
                chain = []
            if isinstance(layer, nn.Module):
                x = self._append(layer, x)
        self.parameters = _present(self.maps, "weight") + _present(self.maps, "bias")
        self.places = [_place(parameter) for parameter in self.parameters]

    def _append(self, step: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        self.steps.append(step)
        return step(x)

    def is_current(self, layers: list[nn.Module], x: Tensor) -> bool:
        """Whether the plan computes what the layers do now; the sizes of a convolution are taken as fixed."""
        return (
            x.shape == self.shape
            and torch.get_num_threads() == self.threads
            and layers == self.layers
            and all(_state(layer) == state for layer, state in self.highways)
            and self._has_parameters(_parameters(self.maps, "weight") + _parameters(self.maps, "bias"))
        )

    def _has_parameters(self, parameters: Sequence[Tensor | None]) -> bool:
        """Whether these are the parameters that the plan reads, and still where they were."""
        if len(parameters) != len(self.parameters):
            return False
        same = all(map(operator.is_, parameters, self.parameters))
        return same and [_place(parameter) for parameter in self.parameters] == self.places

    def __call__(self, x: Tensor) -> Tensor:
        for step in self.steps:
            x = step(x)
        return x.clone() if type(self.steps[-1]) is PlannedChain else x


_plans: WeakKeyDictionary[nn.Module, _Plan] = WeakKeyDictionary()


def run_inference(owner: nn.Module, layers: list[nn.Module], x: Tensor, backend: Backend) -> Tensor | None:
    """The output of layers that are applied one after the other, from a plan; None if the kernels cannot run.

    Args:
        owner: The network, with which its plan is forgotten.
        layers: The layers; they must be in evaluation mode.
        x: `(batch, channel, height, width)`.
        backend: That of the plain convolutions; highway layers have their own.
    """
    if not kernels.can_plan_inference(backend, x):
        return None
    plan = _plans.get(owner)
    if plan is None or not plan.is_current(layers, x):
        if kernels.has_hooks(*layers):
            return None  # making a plan calls modules, whose hooks would notice
        plan = _plans[owner] = _Plan(layers, x)
    if not plan.maps or kernels.has_hooks(*plan.modules) or not plan.lock.acquire(blocking=False):
        return None
    try:
        return plan(x)
    finally:
        plan.lock.release()


def _planned(layer: nn.Module | _Conv, x: Tensor) -> PlannedLayer | None:
    """A layer as kernel calls that read x; None if it has none."""
    if isinstance(layer, _Conv):
        return PlannedConv(x, _present(layer.maps, "weight"), _present(layer.maps, "bias"), layer.options)
    windows = pooling_windows(layer)
    return PlannedPool(x, windows) if windows and kernels.can_run_max_pool("auto", windows.side, x) else None


def _describe(layers: Sequence[nn.Module]) -> list[nn.Module | _Conv]:
    """The layers; those that kernels can run are described as convolutions."""
    described: list[nn.Module | _Conv] = []
    used: nn.Module | None = None  # an activation that belongs to the convolution before it
    for layer, following in pairwise([*layers, None]):
        assert layer is not None
        if layer is used:
            continue
        conv = _highway(layer) if isinstance(layer, HighwayConv2d) else _plain(layer, following)
        described.append(conv or layer)
        used = following if conv is not None and following in conv.layers else None
    return described


def _highway(layer: HighwayConv2d) -> _Conv | None:
    maps = tuple(layer.maps())
    plain = layer.backend != "reference" and layer.stride == 1 and layer.channels == layer.out_channels
    if not plain or not kernels.can_plan_conv((layer.activation, layer.gate_activation), *maps):
        return None
    options = ConvOptions(layer.kernel_size // 2, 1, f"highway_{activation_name(layer.activation)}", len(maps))
    return _Conv((layer,), maps, options)


def _state(layer: HighwayConv2d) -> tuple[object, ...]:
    """What may be assigned to a highway layer after it was made, besides its parameters."""
    return layer.backend, layer.activation, layer.gate_activation, *layer.maps()


def _plain(layer: nn.Module, following: nn.Module | None) -> _Conv | None:
    kind = activation_kind(following)
    if following is None or kind is None or not kernels.can_plan_conv((torch.relu,), layer):
        return None
    pieces = following.pieces if isinstance(following, Maxout) else 1
    return _Conv((layer, following), (layer,), ConvOptions(layer.padding[0], 1, kind, pieces))  # type: ignore[index, arg-type]


def _parameters(maps: Sequence[nn.Module], name: str) -> list[Tensor | None]:
    """The weights or biases; None for one that was replaced, e.g. by a parametrization."""
    return [module._parameters.get(name) for module in maps]


def _present(maps: Sequence[nn.Module], name: str) -> list[Tensor]:
    return [parameter for parameter in _parameters(maps, name) if parameter is not None]


def _place(parameter: Tensor) -> tuple[int, bool]:
    """Where a parameter is in memory, and whether it is in its usual order there."""
    return parameter.data_ptr(), parameter.is_contiguous()
