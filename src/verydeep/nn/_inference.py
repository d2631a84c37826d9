"""Networks prepared for inference on few images: what does not depend on the images is computed once.

For single images, transforming the filters and deciding layer by layer where to run takes longer than the arithmetic. A
plan holds the transformed filters, the memory and the kernel calls of all layers, for one shape of x. It is made again
when the shape, a layer, a parameter or the number of threads has changed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from verydeep import kernels
from verydeep.kernels import Backend, ConvOptions, PlannedConv
from verydeep.nn._activations import activation_name
from verydeep.nn._conv_layer import activation_kind
from verydeep.nn._highway_conv import HighwayConv2d
from verydeep.nn._maxout import Maxout


class _Conv(NamedTuple):
    """What a plan depends on in a convolutional layer, besides the values of its parameters."""

    layers: tuple[nn.Module, ...]  # the highway layer, or a convolution and its activation
    maps: tuple[nn.Module, ...]  # the convolutions
    options: ConvOptions

    def parameters(self) -> list[Tensor]:
        """The weights, then the biases."""
        return [module._parameters[name] for name in ("weight", "bias") for module in self.maps]  # type: ignore[misc]


class _Plan:
    """The steps for one shape of x: planned convolutions, and other modules as they are."""

    def __init__(self, layers: Sequence[nn.Module | _Conv], x: Tensor) -> None:
        self.layers, self.shape, self.threads = layers, x.shape, torch.get_num_threads()
        self.lock = threading.Lock()  # a plan has one set of buffers
        self.steps: list[Callable[[Tensor], Tensor]] = []
        for layer in layers:
            if isinstance(layer, _Conv):
                parameters, count = layer.parameters(), len(layer.maps)
                self.steps.append(PlannedConv(x.shape, parameters[:count], parameters[count:], layer.options))
                x = _channels_last(x)
            else:
                self.steps.append(layer)
            x = self.steps[-1](x)

    def is_current(self, layers: Sequence[nn.Module | _Conv], x: Tensor) -> bool:
        """Whether the plan computes what the layers do now."""
        same = x.shape == self.shape and torch.get_num_threads() == self.threads and layers == self.layers
        return same and all(
            step.is_current(layer.parameters())
            for layer, step in zip(layers, self.steps, strict=True)
            if isinstance(layer, _Conv) and isinstance(step, PlannedConv)
        )

    def __call__(self, x: Tensor) -> Tensor:
        for step in self.steps:
            x = step(_channels_last(x)) if type(step) is PlannedConv else step(x)
        return x.clone() if type(self.steps[-1]) is PlannedConv else x


_plans: WeakKeyDictionary[nn.Module, _Plan] = WeakKeyDictionary()


def run_inference(owner: nn.Module, layers: Sequence[nn.Module], x: Tensor, backend: Backend) -> Tensor | None:
    """The output of layers that are applied one after the other, from a plan; None if the kernels cannot run.

    Args:
        owner: The network, with which its plan is forgotten.
        layers: The layers; they must be in evaluation mode.
        x: `(batch, channel, height, width)`.
        backend: That of the plain convolutions; highway layers have their own.
    """
    if not kernels.can_plan_inference(backend, x):
        return None
    described = _describe(layers)
    if described is None:
        return None
    plan = _plans.get(owner)
    if plan is None or not plan.is_current(described, x):
        plan = _plans[owner] = _Plan(described, x)
    if not plan.lock.acquire(blocking=False):
        return None
    try:
        return plan(x)
    finally:
        plan.lock.release()


def _describe(layers: Sequence[nn.Module]) -> list[nn.Module | _Conv] | None:
    """The layers, with convolutions that kernels can run described as such; None if any layer has hooks."""
    described: list[nn.Module | _Conv] = []
    modules = [*layers]
    used: nn.Module | None = None
    for layer, following in pairwise([*layers, None]):
        assert layer is not None
        if layer is used:
            continue
        conv = _highway(layer) if isinstance(layer, HighwayConv2d) else _plain(layer, following)
        described.append(conv or layer)
        if conv is not None:
            modules += conv.maps
            used = conv.layers[-1]
    return None if kernels.has_hooks(*modules) else described


def _highway(layer: HighwayConv2d) -> _Conv | None:
    maps = tuple(layer.maps())
    plain = layer.backend != "reference" and layer.stride == 1 and layer.channels == layer.out_channels
    if not plain or not kernels.can_plan_conv((layer.activation, layer.gate_activation), *maps):
        return None
    options = ConvOptions(layer.kernel_size // 2, 1, f"highway_{activation_name(layer.activation)}", len(maps))
    return _Conv((layer,), maps, options)


def _plain(layer: nn.Module, following: nn.Module | None) -> _Conv | None:
    kind = activation_kind(following)
    if following is None or kind is None or not kernels.can_plan_conv((torch.relu,), layer):
        return None
    pieces = following.pieces if isinstance(following, Maxout) else 1
    return _Conv((layer, following), (layer,), ConvOptions(layer.padding[0], 1, kind, pieces))  # type: ignore[index, arg-type]


def _channels_last(x: Tensor) -> Tensor:
    return x if x.shape[0] == 1 and x.stride()[1:] == _strides(x) else x.movedim(1, -1).contiguous().movedim(-1, 1)


def _strides(x: Tensor) -> tuple[int, int, int]:
    """The strides of an image with its channels last."""
    return 1, x.shape[1] * x.shape[3], x.shape[1]
