"""Muon (Jordan et al. 2024): momentum whose every matrix is made orthogonal before it is added to the weights.

A gradient is nearly of low rank: a few directions are large and the rest wait. Made orthogonal, all directions of a
matrix move at one speed, and so do all layers, however small their gradients.

Its authors leave what is no hidden matrix to Adam. Here biases, embeddings and the weights of `model.classifier` get
plain momentum at the same learning rate, so that there is one rate to choose.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from verydeep.nn import RecurrentHighway, Stack

_STEPS, _COEFFICIENTS = 5, (3.4445, -4.7750, 2.0315)  # the authors': singular values end between 0.7 and 1.2

Shape = tuple[int, int, int]


class Muon(torch.optim.Optimizer):
    """Orthogonal updates in groups marked `orthogonal`, momentum in the others; weight decay is decoupled in both.

    Args:
        groups: As `matrices_apart` makes them.
        lr: Learning rate: about how far each step turns a matrix, whatever its gradient's size.
        momentum: Of the gradients.
        nesterov: Whether momentum is Nesterov's.
        shapes: Parameters that hold several matrices, by `id`: how many, their rows and their columns. Others are one
            matrix each, with a row for every output.
    """

    def __init__(
        self, groups: list[dict[str, Any]], lr: float, momentum: float, nesterov: bool, shapes: Mapping[int, Shape]
    ) -> None:
        defaults = {"lr": lr, "momentum": momentum, "nesterov": nesterov, "weight_decay": 0.0, "orthogonal": False}
        super().__init__(groups, defaults)
        self.shapes = shapes

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """One update from the gradients."""
        for group in self.param_groups:
            moves = [(p, self._momentum(p, group)) for p in group["params"] if p.grad is not None]
            for parameter, _ in moves:
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
            if group["orthogonal"]:
                self._add_orthogonal(moves, group["lr"])
            else:
                for parameter, move in moves:
                    parameter.add_(move, alpha=-group["lr"])

    def _momentum(self, parameter: Tensor, group: dict[str, Any]) -> Tensor:
        gradient, state, momentum = parameter.grad, self.state[parameter], group["momentum"]
        assert gradient is not None
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(parameter)
        velocity: Tensor = state["momentum_buffer"].mul_(momentum).add_(gradient)
        return gradient.add(velocity, alpha=momentum) if group["nesterov"] else velocity

    def _add_orthogonal(self, moves: list[tuple[Tensor, Tensor]], lr: float) -> None:
        """Matrices of one shape are made orthogonal together."""
        alike: dict[tuple[int, int], list[tuple[Tensor, Tensor]]] = defaultdict(list)
        for parameter, move in moves:
            matrices = move.reshape(self.shapes.get(id(parameter), (1, len(move), -1)))
            alike[matrices.shape[1], matrices.shape[2]].append((parameter, matrices))
        for (rows, columns), pairs in alike.items():
            updates = orthogonal(torch.cat([matrices for _, matrices in pairs]))
            speed = lr * max(1.0, rows / columns) ** 0.5
            for (parameter, _), update in zip(pairs, updates.split([len(m) for _, m in pairs]), strict=True):
                parameter.add_(update.reshape(parameter.shape), alpha=-speed)


def orthogonal(matrices: Tensor) -> Tensor:
    """The nearest orthogonal matrices, roughly: a polynomial brings all singular values near 1 (Newton-Schulz)."""
    if matrices.shape[-2] > matrices.shape[-1]:
        return orthogonal(matrices.mT).mT
    first, third, fifth = _COEFFICIENTS
    x: Tensor = matrices / matrices.norm(dim=(-2, -1), keepdim=True).clamp(min=torch.finfo(matrices.dtype).tiny)
    for _ in range(_STEPS):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=third, alpha=fifth), x, beta=first)
    return x


def matrices_apart(groups: list[dict[str, Any]], model: nn.Module) -> list[dict[str, Any]]:
    """The paper's groups with the matrices and filters of all layers but the classifier in one of their own."""
    tables = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding | nn.EmbeddingBag)}
    found = []
    for group in groups:
        parts: dict[bool, list[Tensor]] = {True: [], False: []}
        for parameter in group["params"]:
            hidden = group["name"] == "weights" and parameter.dim() > 1 and id(parameter) not in tables
            parts[hidden].append(parameter)
        found += [group | {"params": part, "orthogonal": hidden} for hidden, part in parts.items() if part]
    return found


def matrix_shapes(model: nn.Module) -> dict[int, Shape]:
    """The parameters that hold several matrices: those of every layer, gate or projection that is computed at once."""
    shapes: dict[int, Shape] = {}
    for module in model.modules():
        if isinstance(module, Stack):
            shapes[id(module.weight)] = (module.depth * module.maps, module.width, module.width)
        elif isinstance(module, RecurrentHighway):
            shapes[id(module.input.weight)] = (module.recurrence.maps, module.hidden_size, module.input_size)
        elif isinstance(module, nn.MultiheadAttention) and module.in_proj_weight is not None:
            shapes[id(module.in_proj_weight)] = (3, module.embed_dim, module.embed_dim)
        elif isinstance(module, nn.RNNBase):
            for name, weight in module.named_parameters():
                if name.startswith(("weight_ih", "weight_hh")):
                    shapes[id(weight)] = (len(weight) // module.hidden_size, module.hidden_size, weight.shape[1])
    return shapes
