"""Muon (Jordan et al. 2024): momentum whose matrices are made orthogonal before they are added to the weights.

Gradients are nearly low-rank: a few directions dominate, and the others hardly change. Once a gradient is orthogonal,
all directions of a matrix move at the same speed, and so do all layers, however small their gradients are.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from verydeep.errors import UserError
from verydeep.nn import RecurrentHighway, Stack, parameter_groups

_STEPS, _COEFFICIENTS = 5, (3.4445, -4.7750, 2.0315)  # the authors': singular values end between 0.7 and 1.2

Shape = tuple[int, int, int]


class Muon(torch.optim.Optimizer):
    """Orthogonal updates for matrices and filters, momentum for everything else; weight decay is decoupled.

    This is an ordinary optimiser. It differs from `torch.optim.Muon`, which takes matrices only, and from that of the
    authors in a few points:

    * Parameters of any shape are accepted. A matrix or filter of more than one dimension is one matrix with a row per
      output, `(out, in * height * width)`; 1x1 filters are treated as matrices, too. Parameters of one dimension get
      plain momentum at the same learning rate instead of Adam, so that there is only one rate to choose.
    * `muon_groups` knows parameters that hold several matrices (stacks, attention, recurrent layers), which are made
      orthogonal one by one, and leaves embeddings and the classifier to plain momentum.
    * Updates are computed in the precision of the parameters, not in bfloat16, and matrices of one shape in one batch.
    * The momentum is a sum, as in `torch.optim.SGD`, not an average. Orthogonal updates are the same with both.

    As in the other two, the update of a matrix is multiplied by `max(1, rows / columns) ** 0.5`.

    Args:
        params: Parameters or parameter groups; for a whole model, `muon_groups(model)`. A group with
            `orthogonal=False` gets plain momentum.
        lr: Learning rate: roughly how far each step turns a matrix, whatever the size of its gradient.
        momentum: Momentum of the gradients.
        nesterov: Whether to use Nesterov momentum.
        weight_decay: Decoupled weight decay.

    Example:
        >>> import torch
        >>> from verydeep.models import create_model
        >>> from verydeep.optim import Muon, muon_groups
        >>> model = create_model("highway-mlp", depth=5, width=8, input_shape=(20,), classes=3)
        >>> optimiser = Muon(muon_groups(model), lr=0.015, nesterov=True, weight_decay=0.1)
        >>> x, y = torch.randn(100, 20), torch.randint(3, (100,))
        >>> for _ in range(30):
        ...     loss = torch.nn.functional.cross_entropy(model(x), y)
        ...     optimiser.zero_grad()
        ...     loss.backward()
        ...     optimiser.step()
        >>> loss.item() < 1
        True
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        lr: float = 0.015,
        momentum: float = 0.9,
        nesterov: bool = False,
        weight_decay: float = 0.0,
    ) -> None:
        for name, value in {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}.items():
            if not value >= 0:
                raise UserError(f"{name} must be at least 0, got {value}")
        self._shapes: dict[Tensor, Shape] = {}
        defaults = {"lr": lr, "momentum": momentum, "nesterov": nesterov, "weight_decay": weight_decay}
        super().__init__(params, defaults | {"orthogonal": True})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters, such as those of layers that are unfrozen later.

        Args:
            param_group: The parameters as `params`, and settings for them. `shapes`, which `muon_groups` fills in, maps
                a parameter with several matrices to their number, rows and columns.
        """
        self._shapes |= param_group.get("shapes", {})
        super().add_param_group({key: value for key, value in param_group.items() if key != "shapes"})

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_shapes": self._shapes}

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # noqa: ANN401
        """Update the parameters from their gradients.

        Args:
            closure: Computes the loss and its gradients again, as in other optimisers.

        Returns:
            The result of the closure, if there is one.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            self._update(group)
        return loss

    def _update(self, group: dict[str, Any]) -> None:
        matrices = []
        for parameter in group["params"]:
            if parameter.grad is None:
                continue
            update = self._momentum(parameter, group)
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
            matrices = update.reshape(self._shapes.get(parameter, (1, len(update), -1)))
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


def muon_groups(model: nn.Module, groups: list[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
    """The parameters of a model in groups for `Muon`: hidden matrices and filters, and everything else.

    Only hidden matrices and filters are made orthogonal. Biases, embeddings and the weights of `model.classifier` get
    plain momentum. Parameters that hold several matrices are made orthogonal matrix by matrix: the layers and gates of
    a stack, the projections of `nn.MultiheadAttention`, the gates of recurrent layers.

    Args:
        model: The model.
        groups: Groups of `verydeep.nn.parameter_groups` with their own settings. By default all parameters get those of
            the optimiser, except that biases have no weight decay.

    Example:
        >>> from verydeep.models import create_model
        >>> from verydeep.optim import muon_groups
        >>> groups = muon_groups(create_model("highway-mlp", depth=3, width=4))
        >>> [(group["name"], len(group["params"]), group["orthogonal"]) for group in groups]
        [('weights', 2, True), ('biases', 3, False), ('classifier', 1, False)]
    """
    if groups is None:
        named = [(group["name"], group["params"]) for group in parameter_groups(model, lr=1.0)]
        groups = [
            {"name": name, "params": params} | ({"weight_decay": 0.0} if name == "biases" else {})
            for name, params in named
        ]
    tables = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding | nn.EmbeddingBag)}
    shapes, split = _matrix_shapes(model), []
    for group in groups:
        parts: dict[bool, list[Tensor]] = {True: [], False: []}
        for parameter in group["params"]:
            hidden = group["name"] == "weights" and parameter.dim() > 1 and id(parameter) not in tables
            parts[hidden].append(parameter)
        for hidden, part in parts.items():
            if part:
                several = {parameter: shapes[parameter] for parameter in part if parameter in shapes}
                split.append(group | {"params": part, "orthogonal": hidden, "shapes": several})
    return split


def _matrix_shapes(model: nn.Module) -> dict[Tensor, Shape]:
    """The parameters that hold several matrices, with their number, rows and columns."""
    shapes: dict[Tensor, Shape] = {}
    for module in model.modules():
        if isinstance(module, Stack):
            shapes[module.weight] = (module.depth * module.maps, module.width, module.width)
        elif isinstance(module, RecurrentHighway):
            shapes[module.input.weight] = (module.recurrence.maps, module.hidden_size, module.input_size)
        elif isinstance(module, nn.MultiheadAttention) and module.in_proj_weight is not None:
            shapes[module.in_proj_weight] = (3, module.embed_dim, module.embed_dim)
        elif isinstance(module, nn.RNNBase):
            for name, weight in module.named_parameters():
                if name.startswith(("weight_ih", "weight_hh")):
                    shapes[weight] = (len(weight) // module.hidden_size, module.hidden_size, weight.shape[1])
    return shapes
