"""The fully connected networks of Section 3.1: a plain input layer, a stack of equal layers, a linear classifier.

Shallow ones end early: depth 1 has no stack, and depth 0 is the classifier alone.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from verydeep import kernels
from verydeep.errors import UserError
from verydeep.models._network import Network
from verydeep.nn import (
    HighwayStack,
    LSTMHighway,
    PlainStack,
    ResidualStack,
    Trace,
    init_weight,
    pieces_of,
    resolve_activation,
    suggest_gate_bias,
)


@dataclass(frozen=True)
class MLPConfig:
    """A fully connected network.

    Attributes:
        kind: The kind of layer after the input layer: highway, plain, residual (y = x + H) or lstm, the LSTM-like block
            of the paper's pilot experiments.
        depth: Number of hidden layers, including the plain input layer; 0 is a linear classifier.
        width: Number of blocks (or units) per hidden layer.
        input_shape: Shape of a sample, which is flattened.
        classes: Number of outputs.
        activation: The activation of every hidden layer.
        gate_bias: Initial bias of the transform gates; None stands for `suggest_gate_bias` of this depth.
        carry: The carry gates of highway layers, coupled or independent.
        init: The initial weights of all layers: "auto", "glorot_normal", "orthogonal", ...; see `HighwayStack`.

    Example:
        >>> from verydeep.models import MLPConfig, build
        >>> model = build(MLPConfig("highway", depth=20, width=16, input_shape=(30,), classes=2))
        >>> model.highway_depth
        19
        >>> build(MLPConfig("highway", depth=0, input_shape=(30,), classes=2)).highway_depth
        0
    """

    kind: Literal["highway", "plain", "residual", "lstm"]
    depth: int = 50
    width: int = 50
    input_shape: tuple[int, ...] = (1, 28, 28)
    classes: int = 10
    activation: str = "tanh"
    gate_bias: float | None = None
    carry: Literal["coupled", "independent"] = "coupled"
    init: str = "auto"

    def __post_init__(self) -> None:
        if self.depth < 0:
            raise UserError(f"depth is the number of hidden layers, and must be at least 0; got {self.depth}")
        if min(self.width, self.classes, *self.input_shape, 1) < 1 or not self.input_shape:
            raise UserError(
                "width, classes and every dimension of input_shape must be at least 1, "
                f"got width {self.width}, classes {self.classes} and input_shape {self.input_shape}"
            )


MLPStack = HighwayStack | PlainStack | ResidualStack | LSTMHighway


def _make_stack(
    config: MLPConfig, device: torch.device | str | None = None, dtype: torch.dtype | None = None
) -> MLPStack:
    """The layers after the input layer."""
    make: dict[str, type[PlainStack | ResidualStack]] = {"plain": PlainStack, "residual": ResidualStack}
    width, depth, activation, init = config.width, config.depth - 1, config.activation, config.init
    if config.kind in make:
        return make[config.kind](width, depth, activation, init=init, device=device, dtype=dtype)
    bias = suggest_gate_bias(config.depth, "linear") if config.gate_bias is None else config.gate_bias
    if config.kind == "lstm":
        return LSTMHighway(width, depth, activation, bias, init=init, device=device, dtype=dtype)
    return HighwayStack(width, depth, activation, bias, config.carry, init=init, device=device, dtype=dtype)


class MLP(Network):
    """A fully connected network: a plain input layer, a stack of equal layers, a linear classifier.

    A sample has the shape `input_shape`, or is already flat. A network of depth 1 has no stack (`stack` is None), and
    the linear model of depth 0 has no input layer either (`input` is None).

    Args:
        config: The description of the network.
        device: Device of the parameters.
        dtype: Data type of the parameters.

    Example:
        >>> import torch
        >>> from verydeep.models import MLP, MLPConfig
        >>> model = MLP(MLPConfig("highway", depth=5, width=8))
        >>> model(torch.randn(2, 1, 28, 28)).shape
        torch.Size([2, 10])
        >>> model(torch.randn(2, 784), closed={0, 3}).shape
        torch.Size([2, 10])
        >>> [tuple(trace.t.shape) for trace in model.trace(torch.randn(2, 784))]
        [(2, 8), (2, 8), (2, 8), (2, 8)]
    """

    classifier: nn.Linear

    def __init__(
        self, config: MLPConfig, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        self.config = config
        linear = partial(nn.Linear, device=device, dtype=dtype)
        inputs, pieces = math.prod(config.input_shape), pieces_of(resolve_activation(config.activation))
        self.input: nn.Linear | None = linear(inputs, pieces * config.width) if config.depth >= 1 else None
        self.stack = None if config.depth < 2 else _make_stack(config, device, dtype)
        self.classifier = linear(inputs if self.input is None else config.width, config.classes)
        self._reset_input_and_classifier()

    def reset_parameters(self) -> None:
        if self.stack is not None:
            self.stack.reset_parameters()
        self._reset_input_and_classifier()

    def _reset_input_and_classifier(self) -> None:
        for layer in (self.input, self.classifier):
            if layer is not None:
                outputs = self.config.width if layer is self.input else layer.out_features
                init_weight(layer.weight, layer.in_features, outputs, self.activation, self.config.init)
                nn.init.zeros_(layer.bias)

    @property
    def activation(self) -> Callable[[Tensor], Tensor]:
        """The activation of every hidden layer."""
        return resolve_activation(self.config.activation) if self.stack is None else self.stack.activation

    @property
    def highway_depth(self) -> int:
        return 0 if self.stack is None else self.stack.highway_depth

    @property
    def closable_depth(self) -> int:
        return 0 if self.stack is None else self.stack.closable_depth

    def checkpoint_activations(self) -> None:
        if isinstance(self.stack, LSTMHighway):
            super().checkpoint_activations()
        elif self.stack is not None:
            self.stack.recompute = True

    def _input_shapes(self) -> tuple[tuple[int, ...], ...]:
        flat = (math.prod(self.input_shape),)
        return (flat,) if self.input_shape == flat else (self.input_shape, flat)

    def forward(self, x: Tensor, closed: Collection[int] = ()) -> Tensor:
        closed = self._check(x, closed)
        x = x.flatten(1)
        if self._can_run_fused(x, closed):
            layers, formula = self._fused_layers(closed)
            return kernels.run_mlp(x, layers, formula, *self._kernel_parameters())
        if self.input is not None:
            x = self.activation(self.input(x))
        if self.stack is not None:
            x = self.stack(x, closed)
        return self.classifier(x)  # type: ignore[no-any-return]

    def hidden_layers(self) -> list[str]:
        depth = min(self.config.depth, 1) if isinstance(self.stack, LSTMHighway) else self.config.depth
        return [f"layer{number}" for number in range(1, depth + 1)]

    def forward_hidden(self, x: Tensor, layers: Collection[str]) -> tuple[Tensor, dict[str, Tensor]]:
        self._check(x, ())
        x, values, wanted = x.flatten(1), {}, sorted(int(name.removeprefix("layer")) for name in layers)
        if self.input is not None:
            x = self.activation(self.input(x))
            done = 1
            for number in [*wanted, self.config.depth]:
                if number > done:
                    x = self._stack_segment(x, done - 1, number - 1)
                    done = number
                if number in wanted:
                    values[f"layer{number}"] = x
        return self.classifier(x), values

    def _stack_segment(self, x: Tensor, first: int, last: int) -> Tensor:
        """The layers of the stack from `first` to `last - 1`, counted from 0."""
        assert self.stack is not None
        return self.stack(x) if isinstance(self.stack, LSTMHighway) else self.stack.segment(x, first, last)

    @torch.no_grad()
    def trace(self, x: Tensor, closed: Collection[int] = ()) -> tuple[Trace, ...]:
        closed = self._check(x, closed)
        if self.input is None or not isinstance(self.stack, HighwayStack | LSTMHighway):
            return ()
        layers = self.stack.trace(self.activation(self.input(x.flatten(1))), closed)
        return tuple(Trace(*values) for values in zip(*layers, strict=True))

    def backward_cross_entropy(self, x: Tensor, y: Tensor, scale: float) -> tuple[Tensor, Tensor]:
        """Backpropagate `scale` times the summed cross-entropy of a batch for classes y: the core of a training step.

        Returns:
            The sum and the logits.
        """
        self._check(x, ())
        if self._can_backpropagate_fused(x):
            return self._backpropagate_fused(x, partial(kernels.cross_entropy_gradient, y=y, scale=scale))
        logits = self(x)
        loss = F.cross_entropy(logits.float(), y, reduction="sum")
        loss.backward(loss.new_tensor(scale))
        return loss.detach(), logits.detach()

    def backward_loss(self, x: Tensor, loss_of: Callable[[Tensor], Tensor], scale: float) -> tuple[Tensor, Tensor]:
        """Backpropagate `scale` times any loss of the outputs for a batch.

        Returns:
            The loss and the outputs.
        """
        self._check(x, ())
        if self._can_backpropagate_fused(x):

            def gradient(outputs: Tensor) -> tuple[Tensor, Tensor]:
                with torch.enable_grad():
                    leaf = outputs.detach().requires_grad_()
                    loss = loss_of(leaf)
                    (d_outputs,) = torch.autograd.grad(loss, leaf, loss.new_tensor(scale))
                return loss.detach(), d_outputs

            return self._backpropagate_fused(x, gradient)
        outputs = self(x)
        loss = loss_of(outputs)
        loss.backward(loss.new_tensor(scale))
        return loss.detach(), outputs.detach()

    def can_train_in_kernels(self, x: Tensor) -> bool:
        """Whether `training_steps` can train this network on samples like x."""
        parameters = tuple(self.parameters())
        if not all(parameter.is_contiguous() for parameter in parameters):
            return False
        if self.stack is not None:
            return self._can_backpropagate_fused(x)
        layers = [layer for layer in (self.input, self.classifier) if layer is not None]
        activations = (self.activation,) if len(layers) > 1 else ()
        return (
            type(self) is MLP
            and not kernels.has_hooks(self)
            and kernels.can_run_layers(activations, x, *layers)
            and kernels.can_set_gradients(parameters)
        )

    def training_steps(
        self, rules: Mapping[nn.Parameter, kernels.UpdateRule], x: Tensor, targets: Tensor, loss: str, batch: int
    ) -> kernels.TrainingSteps:
        """Training steps that run in kernels as a whole.

        Args:
            rules: How each parameter is updated.
            x: All samples, `(n, input)`.
            targets: Their targets; see `TrainingSteps`.
            loss: The name of the loss; see `TrainingSteps`.
            batch: Samples per batch.
        """

        def trained(module: nn.Module) -> kernels.Trained:
            weight, bias = module.weight, module.bias
            assert isinstance(weight, nn.Parameter)
            assert isinstance(bias, nn.Parameter)
            return (weight.detach(), rules[weight]), (bias.detach(), rules[bias])

        layers, formula = kernels.open_layers(0), "tanh" if self.input is None else self.activation.__name__
        if self.stack is not None:
            layers, formula = self._fused_layers()
        stack, input_layer = (None if module is None else trained(module) for module in (self.stack, self.input))
        threads, low = torch.get_num_threads(), kernels.multiplies_bfloat16()
        return kernels.TrainingSteps(
            layers, formula, stack, input_layer, trained(self.classifier), x, targets, loss, batch, threads, low
        )

    def _can_run_fused(self, x: Tensor, closed: Collection[int] = ()) -> bool:
        """Whether kernels can run the whole network; they keep all activations, and need an open layer."""
        stack = self.stack
        if self.input is None or stack is None or isinstance(stack, LSTMHighway):
            return False
        if stack.recompute or len(set(closed)) == stack.depth:
            return False
        return kernels.can_run_mlp(stack.backend, stack.activations, x, self.input, stack, self.classifier)

    def _can_backpropagate_fused(self, x: Tensor) -> bool:
        """Whether kernels can replace autograd: `forward` is not overridden, and no module has hooks."""
        return (
            type(self) is MLP
            and not kernels.has_hooks(self)
            and self._can_run_fused(x.flatten(1))
            and kernels.can_set_gradients(self._kernel_parameters())
        )

    def _backpropagate_fused(
        self, x: Tensor, gradient: Callable[[Tensor], tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, Tensor]:
        """The loss and the outputs; gradients are assigned without autograd, which takes as long as several layers."""
        layers, formula = self._fused_layers()
        parameters = self._kernel_parameters()
        loss, outputs, gradients = kernels.backward_mlp(x.flatten(1), gradient, layers, formula, *parameters)
        for parameter, value in zip(parameters, gradients, strict=True):
            parameter.grad = value
        return loss, outputs

    def _fused_layers(self, closed: Collection[int] = ()) -> tuple[Tensor, str]:
        """The open layers of the stack and their formula, as kernels take them."""
        assert self.stack is not None
        assert not isinstance(self.stack, LSTMHighway)
        return kernels.open_layers(self.stack.depth, closed), self.stack.formula

    def _kernel_parameters(self) -> tuple[Tensor, ...]:
        """All parameters, in the order that kernels take them."""
        assert self.input is not None
        assert self.stack is not None
        modules = self.stack, self.input, self.classifier
        return tuple(parameter for module in modules for parameter in (module.weight, module.bias))
