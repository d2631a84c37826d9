"""Loss and accuracy over a whole split."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from verydeep.data import Batches, Split
from verydeep.training._world import ProcessGroup

_BATCH = 1000


@dataclass(frozen=True)
class Evaluation:
    """Mean cross-entropy and share of samples classified right."""

    loss: float
    accuracy: float


def evaluate(
    model: nn.Module, split: Split, world: ProcessGroup, forward: Callable[[Tensor], Tensor] | None = None
) -> Evaluation:
    """Measure a model in evaluation mode; processes share the work.

    Args:
        model: Put into evaluation mode, and back into its mode afterwards.
        split: On any device; batches are moved to the world's.
        world: Who shares the work.
        forward: Computes the logits in place of the model itself (compiled, in another precision).
    """
    forward = model if forward is None else forward  # a compiled module cannot be asked whether it is true
    training = model.training
    model.eval()
    totals = torch.zeros(2, dtype=torch.float64, device=world.device)
    try:
        with torch.inference_mode():
            for x, y in Batches(_part(split, world), _BATCH, seed=0, shuffle=False).epoch(0):
                totals += pair(*losses(forward(x.to(world.device)), y.to(world.device)))
    finally:
        model.train(training)
    loss, correct = world.total(totals).tolist()
    return Evaluation(loss / len(split), correct / len(split))


def losses(logits: Tensor, y: Tensor, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
    """Sum of the cross-entropies, and how many samples are classified right."""
    loss = F.cross_entropy(logits.float(), y, reduction="sum", label_smoothing=smoothing)
    return loss, count_right(logits, y)


def count_right(logits: Tensor, y: Tensor) -> Tensor:
    """How many samples are classified right."""
    return (logits.detach().argmax(1) == y).sum()


def pair(loss: Tensor, right: Tensor) -> Tensor:
    """Both, to be added up over batches: float64, `(2,)`."""
    return torch.stack([loss.detach().double(), right.double()])


def _part(split: Split, world: ProcessGroup) -> Split:
    """The rows of a split that this process measures."""
    first, end = (len(split) * number // world.size for number in (world.rank, world.rank + 1))
    return replace(split, x=split.x[first:end], y=split.y[first:end])
