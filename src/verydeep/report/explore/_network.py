"""A network as steps that the page can run: every step with its shapes, and one array with all weights."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from verydeep.errors import UserError
from verydeep.models import MLP, ConvNet, Network
from verydeep.nn import HighwayConv2d, HighwayStack, Maxout, PlainStack, ResidualStack, activation_name

Step = dict[str, Any]
# What the page computes; tests compare each with torch.
_ACTIVATIONS = frozenset(
    {
        *("elu", "gelu", "hardsigmoid", "identity", "leaky_relu", "lwta", "maxout"),
        *("mish", "relu", "relu6", "sigmoid", "silu", "softplus", "tanh"),
    }
)


@dataclass(frozen=True)
class ExportedNetwork:
    """A network in the form that the page runs.

    Attributes:
        steps: The steps from input to output. Each has `op`, its `name`, the shapes `in` and `out` of a sample, the
            number `layer` of the layer that can be closed (None for others), and the positions of its parameters in
            `weights`.
        weights: All parameters, float32.
    """

    steps: list[Step]
    weights: NDArray[np.float32]


def describe_network(model: Network) -> ExportedNetwork:
    """Describe a network for the page.

    Args:
        model: A fully connected network of highway, plain or residual layers, or a convolutional one.

    Raises:
        UserError: If the page cannot run the network, with the reason.
    """
    writer = _Writer()
    if type(model) is MLP:
        steps = list(_mlp_steps(model, writer))
    elif type(model) is ConvNet:
        steps = list(_conv_steps(model, writer))
    else:
        raise _refused(f"it cannot run a {type(model).__name__}")
    return ExportedNetwork(steps, np.concatenate(writer.values))


def _refused(reason: str) -> UserError:
    return UserError(
        f"the page cannot show this network: {reason}; it runs networks of fully connected highway, plain and residual "
        "layers, and convolutional networks without batch normalisation"
    )


class _Writer:
    """Collects parameters in one array."""

    def __init__(self) -> None:
        self.values: list[NDArray[np.float32]] = []
        self.length = 0

    def add(self, tensor: Tensor) -> int:
        """Append a parameter; its position."""
        position, values = self.length, tensor.detach().cpu().to(torch.float32).contiguous().numpy().ravel()
        self.values.append(values)
        self.length += values.size
        return position

    def activation(self, name: str) -> str:
        if name not in _ACTIVATIONS:
            raise _refused(f"it does not know the activation {name}")
        return name


def _affine(writer: _Writer, name: str, layer: nn.Linear, activation: str, pieces: int = 1) -> Step:
    return {
        "op": "affine",
        "name": name,
        "layer": None,
        "in": [layer.in_features],
        "out": [layer.out_features // pieces],
        "activation": writer.activation(activation),
        "pieces": pieces,
        "weight": writer.add(layer.weight),
        "bias": writer.add(layer.bias),
    }


def _mlp_steps(model: MLP, writer: _Writer) -> Iterator[Step]:
    activation, stack = activation_name(model.activation), model.stack
    pieces = 2 if activation == "maxout" else 1
    if model.input is not None:
        yield _affine(writer, "layer1", model.input, activation, pieces)
    if stack is not None:
        if not isinstance(stack, HighwayStack | PlainStack | ResidualStack):
            raise _refused(f"it cannot run a {type(stack).__name__}")
        yield from _stack_steps(stack, activation, writer)
    yield _affine(writer, "classifier", model.classifier, "identity")


def _stack_steps(stack: HighwayStack | PlainStack | ResidualStack, activation: str, writer: _Writer) -> Iterator[Step]:
    op = {HighwayStack: "highway", PlainStack: "affine", ResidualStack: "residual"}[type(stack)]
    if isinstance(stack, HighwayStack) and activation_name(stack.gate_activation) != "sigmoid":
        raise _refused(f"its gates are {activation_name(stack.gate_activation)} units, not sigmoid ones")
    for number, (weight, bias) in enumerate(stack.layer_parameters()):
        yield {
            "op": op,
            "name": f"layer{number + 2}",
            "layer": None if op == "affine" else number,
            "in": [stack.width],
            "out": [stack.width],
            "activation": writer.activation(activation),
            "pieces": stack.pieces,
            "weight": writer.add(weight),
            "bias": writer.add(bias),
            **({"carry": stack.carry} if isinstance(stack, HighwayStack) else {}),
        }


def _conv_steps(model: ConvNet, writer: _Writer) -> Iterator[Step]:
    """The steps; a convolution and its activation are one, and layers that do nothing in evaluation are left out."""
    named = [each for each in model.layers.named_children() if not isinstance(each[1], nn.Dropout | nn.Flatten)]
    shape, closable = list(model.input_shape), 0
    skip = False
    for place, (name, layer) in enumerate(named):
        if skip:
            skip = False
            continue
        following = named[place + 1][1] if place + 1 < len(named) else None
        skip = isinstance(layer, nn.Conv2d | nn.Linear) and isinstance(following, nn.ReLU | Maxout | nn.Identity)
        step = _conv_step(name, layer, following if skip else None, shape, writer)
        if step["op"] == "highway-conv":
            step["layer"] = closable
            closable += 1
        yield step
        shape = step["out"]
    if model.classifier is not None:
        yield _affine(writer, "classifier", model.classifier, "identity")


def _conv_step(name: str, layer: nn.Module, activation: nn.Module | None, shape: list[int], writer: _Writer) -> Step:
    start: Step = {"op": "", "name": name, "layer": None, "in": shape, "out": shape}
    match layer:
        case HighwayConv2d():
            maps = {"weight": writer.add(layer.joint_weight()), "bias": writer.add(layer.joint_bias())}
            carry = "coupled" if layer.carry is None else "independent"
            chosen = writer.activation(activation_name(layer.activation))
            kernel = {"kernel": layer.kernel_size, "stride": 1, "padding": layer.kernel_size // 2}
            return start | {"op": "highway-conv", "activation": chosen, "carry": carry, "pieces": 1} | kernel | maps
        case nn.Conv2d():
            assert isinstance(layer.padding, tuple)
            kernel = {"kernel": layer.kernel_size[0], "stride": layer.stride[0], "padding": layer.padding[0]}
            chosen, pieces = _activation_of(activation)
            sides = [(side + 2 * layer.padding[0] - layer.kernel_size[0]) // layer.stride[0] + 1 for side in shape[1:]]
            out = {"out": [layer.out_channels // pieces, *sides]}
            assert layer.bias is not None
            maps = {"weight": writer.add(layer.weight), "bias": writer.add(layer.bias)}
            return start | {"op": "conv", "activation": chosen, "pieces": pieces} | kernel | maps | out
        case nn.Linear():
            return _affine(writer, name, layer, *_activation_of(activation))
        case _:
            return start | _pool_step(layer, shape)


def _activation_of(module: nn.Module | None) -> tuple[str, int]:
    """The name of an activation, and how many pieces it takes the maximum of."""
    if isinstance(module, Maxout):
        return "maxout", module.pieces
    return "relu" if isinstance(module, nn.ReLU) else "identity", 1


def _pool_step(layer: nn.Module, shape: list[int]) -> Step:
    how = "max" if isinstance(layer, nn.MaxPool2d | nn.AdaptiveMaxPool2d) else "mean"
    channels, *sides = shape
    if isinstance(layer, nn.AdaptiveMaxPool2d | nn.AdaptiveAvgPool2d):
        return {"op": "pool", "how": how, "size": sides, "stride": sides, "out": [channels, 1, 1]}
    assert isinstance(layer, nn.MaxPool2d | nn.AvgPool2d)
    out = layer(torch.zeros(1, *shape)).shape[1:]
    return {"op": "pool", "how": how, "size": [layer.kernel_size] * 2, "stride": [layer.stride] * 2, "out": list(out)}
