"""Classification: one of several classes per sample."""

import torch.nn.functional as F
from torch import Tensor

from verydeep.errors import UserError
from verydeep.objectives._objective import Objective


class Classification(Objective):
    """Cross-entropy of logits `(batch, class)` with class numbers `(batch,)`.

    Args:
        label_smoothing: Fraction of the training target that is spread over all classes; the reported loss is never
            smoothed.

    Example:
        >>> import torch
        >>> from verydeep.objectives import Classification
        >>> objective, logits, y = Classification(), torch.tensor([[2.0, 0.0], [0.0, 0.0]]), torch.tensor([0, 1])
        >>> objective.loss(logits, y)
        tensor(0.8201)
        >>> objective.answer(logits)
        tensor([0, 0])
        >>> objective.count_correct(logits, y)
        tensor(1)
    """

    def __init__(self, label_smoothing: float = 0.0) -> None:
        self.label_smoothing = label_smoothing

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(outputs.float(), y, reduction="sum")

    def training_loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(outputs.float(), y, reduction="sum", label_smoothing=self.label_smoothing)

    def answer(self, outputs: Tensor) -> Tensor:
        return outputs.argmax(1)

    def check(self, outputs: Tensor, y: Tensor) -> None:
        if y.dim() != 1 or y.is_floating_point():
            raise UserError(f"y must be class numbers of shape (batch,), got {y.dtype} of shape {tuple(y.shape)}")
        low, high = (int(value) for value in y.aminmax())
        if low < 0 or high >= outputs.shape[1]:
            wrong = low if low < 0 else high
            raise UserError(
                f"the data has class number {wrong}, but the model only has classes 0 to {outputs.shape[1] - 1}"
            )
