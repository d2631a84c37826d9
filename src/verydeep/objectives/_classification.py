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
        class_weight: The weight of each class in the training loss, `(class,)`; the reported loss is not weighted. By
            default, all are 1.

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

    def __init__(self, label_smoothing: float = 0.0, class_weight: Tensor | None = None) -> None:
        self.label_smoothing, self.class_weight = label_smoothing, class_weight

    @property
    def is_plain(self) -> bool:
        """Whether the training loss is cross-entropy and nothing else, which kernels compute."""
        return not self.label_smoothing and self.class_weight is None

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(outputs.float(), y, reduction="sum")

    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(outputs.float(), y, reduction="none")

    def training_loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        weight = None if self.class_weight is None else self.class_weight.to(outputs.device)
        return F.cross_entropy(outputs.float(), y, weight=weight, reduction="sum", label_smoothing=self.label_smoothing)

    def answer(self, outputs: Tensor) -> Tensor:
        return outputs.argmax(1)

    def probabilities(self, outputs: Tensor) -> Tensor:
        return outputs.float().softmax(1)

    def check(self, outputs: Tensor, y: Tensor) -> None:
        if y.dim() != 1 or y.is_floating_point():
            raise UserError(f"y must be class numbers of shape (batch,), got {y.dtype} of shape {tuple(y.shape)}")
        low, high = (int(value) for value in y.aminmax())
        if low < 0 or high >= outputs.shape[1]:
            wrong = low if low < 0 else high
            raise UserError(
                f"the data has class number {wrong}, but the model only has classes 0 to {outputs.shape[1] - 1}"
            )
