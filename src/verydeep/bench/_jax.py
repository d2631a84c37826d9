"""The competitor in JAX: one jitted step with a scan over stacked layers and donated parameters."""

import time
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from torch import Tensor, nn

from verydeep.bench._competitors import LR, MOMENTUM, NaiveLayer, SingleSteps
from verydeep.bench._tasks import Case

Parameters = Any  # a tree of arrays


class JaxCompetitor(SingleSteps):
    """The same network with equal weights, in JAX."""

    def __init__(self, case: Case, model: nn.Sequential, x: Tensor, y: Tensor) -> None:
        self.parameters = _parameters(model)
        self.velocity = jax.tree.map(jnp.zeros_like, self.parameters)
        self._infer = jax.jit(_network(case))
        network = _network(case)

        def loss(parameters: Parameters, x: Any, y: Any) -> Any:  # noqa: ANN401 - arrays of JAX
            logits = jax.nn.log_softmax(network(parameters, x))
            return -jnp.take_along_axis(logits, y[:, None], 1).mean()

        def step(parameters: Parameters, velocity: Parameters, x: Any, y: Any) -> tuple[Any, Any]:  # noqa: ANN401
            gradient = jax.grad(loss)(parameters, x, y)
            velocity = jax.tree.map(lambda v, g: MOMENTUM * v + g, velocity, gradient)
            return jax.tree.map(lambda p, v: p - LR * v, parameters, velocity), velocity

        self._loss, self._step = jax.jit(loss), jax.jit(step, donate_argnums=(0, 1))
        start = time.perf_counter()
        copies = [jax.tree.map(jnp.copy, tree) for tree in (self.parameters, self.velocity)]
        jax.block_until_ready(self._step(*copies, *_arrays(x, y)) if case.mode == "train" else self._forward(x))
        self.compile_seconds = time.perf_counter() - start

    def train(self, x: Tensor, y: Tensor) -> None:
        self.parameters, self.velocity = self._step(self.parameters, self.velocity, *_arrays(x, y))
        jax.block_until_ready(self.parameters)

    def infer(self, x: Tensor) -> None:
        jax.block_until_ready(self._forward(x))

    def loss(self, x: Tensor, y: Tensor) -> float:
        return float(self._loss(self.parameters, *_arrays(x, y)))

    def _forward(self, x: Tensor) -> Any:  # noqa: ANN401
        return self._infer(self.parameters, _array(x))


def _array(tensor: Tensor) -> Any:  # noqa: ANN401
    return jnp.asarray(tensor.detach().numpy())


def _arrays(x: Tensor, y: Tensor) -> tuple[Any, Any]:
    return _array(x), _array(y)


def _parameters(model: nn.Sequential) -> Parameters:
    """The parameters of the first layer, of the stacked highway or plain layers, and of the classifier."""
    layers = [layer for layer in model if isinstance(layer, NaiveLayer)]
    affine = [layer for layer in model if isinstance(layer, nn.Linear | nn.Conv2d)]
    first, *middle, last = affine
    rows = [[layer.block, layer.gate] for layer in layers] or [[layer] for layer in middle]
    stacked = tuple(
        tuple(jnp.stack([_array(getattr(row[i], part)) for row in rows]) for part in ("weight", "bias"))
        for i in range(len(rows[0]))
    )
    ends = [tuple(_array(getattr(layer, part)) for part in ("weight", "bias")) for layer in (first, last)]
    return ends[0], stacked, ends[1]


def _network(case: Case) -> Any:  # noqa: ANN401 - a function of arrays
    conv = case.kind == "conv"
    affine, activation = (_conv, jax.nn.relu) if conv else (_linear, jnp.tanh)

    def layer(x: Any, maps: Any) -> tuple[Any, None]:  # noqa: ANN401
        h = activation(affine(x, *maps[0]))
        if len(maps) == 1:
            return h, None
        t = jax.nn.sigmoid(affine(x, *maps[1]))
        return h * t + x * (1 - t), None

    def network(parameters: Parameters, x: Any) -> Any:  # noqa: ANN401
        first, stacked, last = parameters
        x = activation(affine(x.transpose(0, 2, 3, 1) if conv else x.reshape(len(x), -1), *first))
        if conv:  # inside a loop, XLA's convolutions are a hundred times slower
            for n in range(case.depth):
                x, _ = layer(x, jax.tree.map(lambda stack, n=n: stack[n], stacked))
        else:
            x, _ = lax.scan(layer, x, stacked)
        return _linear(x.mean((1, 2)) if conv else x, *last)

    return network


def _linear(x: Any, weight: Any, bias: Any) -> Any:  # noqa: ANN401
    return x @ weight.T + bias


def _conv(x: Any, weight: Any, bias: Any) -> Any:  # noqa: ANN401
    order = ("NHWC", "OIHW", "NHWC")  # XLA's convolutions are fast only with channels last
    return lax.conv_general_dilated(x, weight, (1, 1), "SAME", dimension_numbers=order) + bias
