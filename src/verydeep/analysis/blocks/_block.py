"""One block of a network that can be closed exactly, and what it returns when it is closed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

from verydeep.analysis.blocks._trees import Path, leaves, map_leaves, pick

BlockKind = Literal["highway", "residual", "branch", "named"]


@dataclass(frozen=True)
class CarriedLeaf:
    """Marks the place of the carried tensor in a block's output."""


@dataclass(frozen=True)
class InputLeaf:
    """Marks the place of an output that is one of the block's inputs, unchanged.

    Attributes:
        path: The path of the input.
    """

    path: Path


@dataclass(frozen=True)
class SideLeaf:
    """Marks the place of any other tensor in a block's output; a closed block has None there."""


@dataclass(frozen=True)
class Block:
    """A part of a network that can be closed; `find_blocks` finds it.

    Attributes:
        name: The name of the module; of a layer in a `HighwayStack`, the name of the stack and the layer's number.
        kind: `highway` is a highway layer. `residual` is a module that adds to its input: closed, it returns the input.
            `branch` is a module whose output is added to something: closed, it returns zeros. `named` is a module that
            the user named: closed, it returns its input, as if it were not there.
        shape: The shape of the tensor that is carried, in the example.
        carried: The path of this tensor in the module's arguments, `(args, kwargs)`.
        output: What the module returns when it is closed, with marks in the places of tensors.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from verydeep.analysis import find_blocks
        >>> class Residual(nn.Sequential):
        ...     def forward(self, x):
        ...         return x + super().forward(x)
        >>> model = nn.Sequential(nn.Linear(5, 4), Residual(nn.Linear(4, 4), nn.ReLU()), nn.Linear(4, 3))
        >>> find_blocks(model, torch.randn(2, 5))
        (Block(name='1', kind='residual', shape=(2, 4)),)
    """

    name: str
    kind: BlockKind
    shape: tuple[int, ...]
    carried: Path = field(default=(), repr=False)
    output: Any = field(default=CarriedLeaf(), repr=False)

    @property
    def output_path(self) -> Path:
        """Where in the module's output the tensor is that continues the one that is carried."""
        return next(path for path, leaf in leaves(self.output) if isinstance(leaf, CarriedLeaf))

    def closed_output(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401
        """What the module returns when it is closed; never the input itself, which the model may change in place.

        Args:
            args: The positional arguments of the module.
            kwargs: Its keyword arguments.
        """
        inputs = (args, kwargs)
        carried: Tensor = pick(inputs, self.carried)
        # Zero has a sign: x + -0.0 is x, but -0.0 + 0.0 is 0.0.
        value = torch.full_like(carried, -0.0) if self.kind == "branch" else carried.clone()

        def fill(_: Path, leaf: Any) -> Any:  # noqa: ANN401
            match leaf:
                case CarriedLeaf():
                    return value
                case InputLeaf(path):
                    return pick(inputs, path)
                case SideLeaf():
                    return None
            return leaf

        return map_leaves(fill, self.output)
