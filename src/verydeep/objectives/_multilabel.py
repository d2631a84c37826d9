"""Multi-label classification: each sample has any number of labels."""

import math

import torch.nn.functional as F
from torch import Tensor

from verydeep.errors import UserError
from verydeep.float64 import as_float64
from verydeep.objectives._objective import Objective


class MultiLabel(Objective):
    """Binary cross-entropy of logits `(batch, label)` with targets 0 or 1 of the same shape, averaged over the labels.

    The score is the fraction of labels that are predicted correctly.

    Args:
        positive_weight: The weight of the ones of each label in the training loss, `(label,)`; the reported loss is not
            weighted. By default, 1.

    Example:
        >>> import torch
        >>> from verydeep.objectives import MultiLabel
        >>> objective, y = MultiLabel(), torch.tensor([[1.0, 0.0], [1.0, 1.0]])
        >>> logits = torch.tensor([[2.0, -1.0], [0.5, -0.5]])
        >>> objective.answer(logits)
        tensor([[1., 0.],
                [1., 0.]])
        >>> objective.score(objective.totals(logits, y), samples=2)
        0.75
    """

    def __init__(self, positive_weight: Tensor | None = None) -> None:
        self.positive_weight = positive_weight

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(outputs.float(), y, reduction="sum") / y.shape[1]

    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(outputs.float(), y, reduction="none").mean(1)

    def training_loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        weight = None if self.positive_weight is None else self.positive_weight.to(outputs.device)
        loss = F.binary_cross_entropy_with_logits(outputs.float(), y, reduction="sum", pos_weight=weight)
        return loss / y.shape[1]

    def answer(self, outputs: Tensor) -> Tensor:
        return (outputs > 0).float()

    def probabilities(self, outputs: Tensor) -> Tensor:
        return outputs.float().sigmoid()

    def count_correct(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The number of correct labels, divided by the number of labels per sample."""
        return as_float64((self.answer(outputs.detach()) == y).sum()) / y.shape[1]

    def check(self, outputs: Tensor, y: Tensor) -> None:
        if y.dim() != 2 or not y.is_floating_point() or y.shape != outputs.shape:
            raise UserError(
                f"y must be zeros and ones of shape (batch, label), as many as the model's outputs "
                f"{tuple(outputs.shape)}; got {y.dtype} of shape {tuple(y.shape)}"
            )
        if not ((y == 0) | (y == 1)).all():
            raise UserError("y must be zeros and ones, one per label")

    def guess_loss(self, _outputs: int) -> float:
        return math.log(2)
