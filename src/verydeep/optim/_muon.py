"""Muon (Jordan et al. 2024): momentum whose matrices are made orthogonal before they are added to the weights.

A gradient has nearly low rank: a few directions are large and the others hardly move. Once it is orthogonal, all
directions of a matrix move at the same speed, and so do all layers, however small their gradients are.

The authors leave everything that is not a hidden matrix to Adam. Here biases, embeddings and the weights of
`model.classifier` get plain momentum at the same learning rate, so that there is only one rate to choose.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from verydeep.nn import HighwayStack, LSTMHighway, PlainStack, RecurrentHighway

_STEPS, _COEFFICIENTS = 5, (3.4445, -4.7750, 2.0315)  # the authors': singular values end between 0.7 and 1.2

Shape = tuple[int, int, int]


class Muon(torch.optim.Optimizer):
    """Orthogonal updates for matrices and filters, momentum for everything else; weight decay is decoupled.

    Args:
        params: Parameters or parameter groups. A group with `orthogonal=False` gets plain momentum; `muon_groups` marks
            groups this way. By default all parameters with more than one dimension are made orthogonal.
        lr: Learning rate: roughly how far each step turns a matrix, whatever the size of its gradient.
        momentum: Momentum of the gradients.
        nesterov: Whether to use Nesterov momentum.
        weight_decay: Decoupled weight decay, per group.
        shapes: Parameters that hold several matrices, by `id`: their number, rows and columns, as `matrix_shapes` finds
            them. Any other parameter is one matrix with a row per output.

    Example:
        >>> from verydeep.models import create_model
        >>> from verydeep.optim import Muon, matrix_shapes
        >>> model = create_model("highway-mlp", depth=3, width=4)
        >>> optimiser = Muon(model.parameters(), lr=0.015, weight_decay=0.1, shapes=matrix_shapes(model))
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        lr: float = 0.015,
        momentum: float = 0.9,
        nesterov: bool = False,
        weight_decay: float = 0.0,
        shapes: Mapping[int, Shape] | None = None,
    ) -> None:
        defaults = {"lr": lr, "momentum": momentum, "nesterov": nesterov, "weight_decay": weight_decay}
        super().__init__(params, defaults | {"orthogonal": True})
        self.shapes = {} if shapes is None else shapes

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update the parameters from their gradients."""
        for group in self.param_groups:
            updates = [(p, self._momentum(p, group)) for p in group["params"] if p.grad is not None]
            matrices = []
            for parameter, update in updates:
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                if group["orthogonal"] and parameter.dim() > 1:
                    matrices.append((parameter, update))
                else:
                    parameter.add_(update, alpha=-group["lr"])
            self._add_orthogonal(matrices, group["lr"])

    def _momentum(self, parameter: Tensor, group: dict[str, Any]) -> Tensor:
        gradient, state, momentum = parameter.grad, self.state[parameter], group["momentum"]
        assert gradient is not None
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(parameter)
        velocity: Tensor = state["momentum_buffer"].mul_(momentum).add_(gradient)
        return gradient.add(velocity, alpha=momentum) if group["nesterov"] else velocity

    def _add_orthogonal(self, updates: list[tuple[Tensor, Tensor]], lr: float) -> None:
        """Make all matrices of one shape orthogonal in one batch, then add them."""
        by_shape: dict[tuple[int, int], list[tuple[Tensor, Tensor]]] = defaultdict(list)
        for parameter, update in updates:
            matrices = update.reshape(self.shapes.get(id(parameter), (1, len(update), -1)))
            by_shape[matrices.shape[1], matrices.shape[2]].append((parameter, matrices))
        for (rows, columns), pairs in by_shape.items():
            batch = orthogonal(torch.cat([matrices for _, matrices in pairs]))
            speed = lr * max(1.0, rows / columns) ** 0.5
            for (parameter, _), matrices in zip(pairs, batch.split([len(m) for _, m in pairs]), strict=True):
                parameter.add_(matrices.reshape(parameter.shape), alpha=-speed)


def orthogonal(matrices: Tensor) -> Tensor:
    """Approximate the nearest orthogonal matrices: a polynomial brings singular values near 1 (Newton-Schulz)."""
    if matrices.shape[-2] > matrices.shape[-1]:
        return orthogonal(matrices.mT).mT
    first, third, fifth = _COEFFICIENTS
    x: Tensor = matrices / matrices.norm(dim=(-2, -1), keepdim=True).clamp(min=torch.finfo(matrices.dtype).tiny)
    for _ in range(_STEPS):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=third, alpha=fifth), x, beta=first)
    return x


def muon_groups(groups: list[dict[str, Any]], model: nn.Module) -> list[dict[str, Any]]:
    """Split the groups of `verydeep.nn.parameter_groups` into hidden matrices and filters, and everything else.

    Only the matrices are marked `orthogonal`; embeddings and the classifier are not among them.
    """
    tables = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding | nn.EmbeddingBag)}
    split = []
    for group in groups:
        parts: dict[bool, list[Tensor]] = {True: [], False: []}
        for parameter in group["params"]:
            hidden = group["name"] == "weights" and parameter.dim() > 1 and id(parameter) not in tables
            parts[hidden].append(parameter)
        split += [group | {"params": part, "orthogonal": hidden} for hidden, part in parts.items() if part]
    return split


def matrix_shapes(model: nn.Module) -> dict[int, Shape]:
    """The parameters that hold several matrices: of all layers of a stack, all gates, or all attention projections."""
    shapes: dict[int, Shape] = {}
    for module in model.modules():
        if isinstance(module, HighwayStack | PlainStack | LSTMHighway):
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
