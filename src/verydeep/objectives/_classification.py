"""Classification: one of several classes per sample."""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from verydeep.errors import UserError, unknown
from verydeep.objectives._objective import Objective

ClassificationLoss = Literal["cross-entropy", "squared-hinge"]
_LOSSES = ("cross-entropy", "squared-hinge")


class Classification(Objective):
    """Cross-entropy, or squared hinge loss, of logits `(batch, class)` with class numbers `(batch,)`.

    Args:
        label_smoothing: Fraction of the training target that is spread over all classes; the reported loss is never
            smoothed.
        class_weight: The weight of each class in the training loss, `(class,)`; the reported loss is not weighted. By
            default, all are 1.
        loss: `cross-entropy`, or `squared-hinge`: the squared amounts by which the output of the correct class is below
            1 and those of the others are above -1, summed over the classes (Lee et al. 2015).

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
        >>> Classification(loss="squared-hinge").losses(logits, y)
        tensor([1., 2.])
    """

    def __init__(
        self,
        label_smoothing: float = 0.0,
        class_weight: Tensor | None = None,
        loss: ClassificationLoss = "cross-entropy",
    ) -> None:
        if loss not in _LOSSES:
            raise unknown("loss of a classification", loss, _LOSSES)
        if label_smoothing and loss == "squared-hinge":
            raise UserError("label_smoothing is for cross-entropy; leave it out with loss = 'squared-hinge'")
        self.label_smoothing, self.class_weight, self.kind = label_smoothing, class_weight, loss

    @property
    def is_plain(self) -> bool:
        """Whether the training loss is cross-entropy and nothing else, which kernels compute."""
        return not self.label_smoothing and self.class_weight is None and self.kind == "cross-entropy"

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        if self.kind == "squared-hinge":
            return self.losses(outputs, y).sum()
        return F.cross_entropy(outputs.float(), y, reduction="sum")

    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        if self.kind == "squared-hinge":
            signs = 1 - 2 * F.one_hot(y, outputs.shape[1])  # -1 for the correct class, 1 for the others
            scores = outputs if outputs.dtype == torch.float64 else outputs.float()
            return (1 + signs * scores).clamp(min=0).square().sum(1)
        return F.cross_entropy(outputs.float(), y, reduction="none")

    def training_loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        weight = None if self.class_weight is None else self.class_weight.to(outputs.device)
        if self.kind == "squared-hinge":
            losses = self.losses(outputs, y)
            return losses.sum() if weight is None else (weight[y] * losses).sum()
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

    def guess_loss(self, outputs: int) -> float:
        return float(outputs) if self.kind == "squared-hinge" else super().guess_loss(outputs)
