"""What every objective offers."""

import torch
from torch import Tensor


class Objective:
    """A task: its loss, its predictions and how many of them are correct. Subclasses define all of them.

    Example:
        >>> import torch
        >>> from verydeep.objectives import Objective
        >>> class SignOf(Objective):
        ...     def loss(self, outputs, y):
        ...         return torch.nn.functional.softplus(-y * outputs[:, 0]).sum()
        ...     def answer(self, outputs):
        ...         return outputs[:, 0].sign()
        ...     def check(self, outputs, y):
        ...         assert len(outputs) == len(y)
        >>> SignOf().totals(torch.tensor([[3.0], [-1.0]]), torch.tensor([1.0, 1.0]))
        tensor([1.3618, 1.0000], dtype=torch.float64)
    """

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The loss that is reported, summed over the batch."""
        raise NotImplementedError

    def training_loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The loss that is minimised, summed over the batch; by default, the one that is reported."""
        return self.loss(outputs, y)

    def answer(self, outputs: Tensor) -> Tensor:
        """The network's prediction for each sample."""
        raise NotImplementedError

    def count_correct(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The number of correct predictions."""
        return (self.answer(outputs.detach()) == y).sum()

    def check(self, outputs: Tensor, y: Tensor) -> None:
        """Raise a `UserError` if outputs and targets do not belong together."""
        raise NotImplementedError

    def totals(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Loss and number of correct predictions of a batch: float64, `(2,)`, to be added up over batches."""
        return loss_and_correct(self.loss(outputs, y), self.count_correct(outputs, y))


def loss_and_correct(loss: Tensor, correct: Tensor) -> Tensor:
    """Both in one tensor, float64, `(2,)`, so that one addition per batch sums them."""
    return torch.stack([loss.detach().double(), correct.double()])
