"""What `find_blocks` returns: the blocks that can be closed, and those that cannot, with the reason."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from verydeep.analysis.blocks._block import Block
from verydeep.errors import UserError
from verydeep.words import plural

RefusalReason = Literal[
    "shape", "shared", "side output", "post-norm", "clamp", "changed input", "parts", "unused", "recurrent"
]
_REASONS: dict[RefusalReason, str] = {
    "shape": "the output has another shape than the input",
    "shared": "applied more than once",
    "side output": "the network uses a further output",
    "post-norm": "the sum is normalised; name such layers to leave them out",
    "clamp": "a ReLU or clamp after the addition changes the input",
    "changed input": "the output is not the unchanged input plus something",
    "parts": "no module returns what is added",
    "unused": "the example does not reach them",
    "recurrent": "the layers are applied at every step",
}
_LISTED = 3  # names in a line


@dataclass(frozen=True)
class RefusedBlock:
    """A module that looks like a block but cannot be closed exactly.

    Attributes:
        name: The name of the module.
        reason: `shape`: its output has another shape than its input. `shared`: it is applied more than once. `side
            output`: the network uses a further output. `post-norm`: it normalises the sum; named in `blocks=`, it can
            be left out. `clamp`: a ReLU or clamp after the addition changes the input. `changed input`: it computes
            something other than its unchanged input plus something. `parts`: with `level="sublayer"`, no module
            returns what it adds. `unused`: the example does not reach it. `recurrent`: a `RecurrentHighway`.
        message: The same in a sentence.

    Example:
        >>> import torch
        >>> from verydeep.analysis import find_blocks
        >>> from verydeep.models import create_model
        >>> model = create_model("resnet-110", blocks=2, widths=[4, 8, 8], stem=4, input_shape=(1, 8, 8))
        >>> for refused in find_blocks(model, torch.randn(2, 1, 8, 8)).refused:
        ...     print(refused.message)
        'blocks.2' cannot be closed: it turns (2, 4, 8, 8) into (2, 8, 4, 4)
        'blocks.4' cannot be closed: it turns (2, 8, 4, 4) into (2, 8, 2, 2)
    """

    name: str
    reason: RefusalReason
    message: str


class FoundBlocks(tuple[Block, ...]):
    """The blocks that can be closed, in the order in which the data reaches them; a tuple.

    Args:
        blocks: The blocks that can be closed.
        refused: The modules that look like blocks but cannot be closed exactly, each with the reason.

    Example:
        >>> import torch
        >>> from verydeep.analysis import find_blocks
        >>> from verydeep.models import create_model
        >>> model = create_model("resnet-110", blocks=2, widths=[4, 8, 8], stem=4, input_shape=(1, 8, 8))
        >>> blocks = find_blocks(model, torch.randn(2, 1, 8, 8))
        >>> len(blocks), [(each.name, each.reason) for each in blocks.refused]
        (4, [('blocks.2', 'shape'), ('blocks.4', 'shape')])
    """

    refused: tuple[RefusedBlock, ...]

    def __new__(cls, blocks: Iterable[Block] = (), refused: Iterable[RefusedBlock] = ()) -> "FoundBlocks":
        """Combine both."""
        found = super().__new__(cls, blocks)
        found.refused = tuple(refused)
        return found


class NoBlocksError(UserError):
    """Nothing in a network can be closed.

    Args:
        message: Why, and what to do.
        refused: The modules that look like blocks.
    """

    def __init__(self, message: str, refused: Sequence[RefusedBlock] = ()) -> None:
        super().__init__(message)
        self.refused = tuple(refused)


def refusal_lines(refused: Sequence[RefusedBlock]) -> list[str]:
    """Say which blocks were refused: one line per reason, with their number and the first names."""
    lines = []
    for reason, text in _REASONS.items():
        names = [each.name for each in refused if each.reason == reason]
        if names:
            more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
            blocks = plural(len(names), "block")
            lines.append(f"{blocks} cannot be closed ({text}): {', '.join(names[:_LISTED])}{more}")
    return lines
