"""Regression: one or several numbers per sample."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from verydeep.errors import UserError
from verydeep.float64 import as_float64
from verydeep.objectives._objective import Objective

RegressionLoss = Literal["squared", "huber", "absolute"]
_LOSSES: dict[str, Callable[..., Tensor]] = {
    "squared": F.mse_loss,
    "huber": F.huber_loss,  # squared error up to one standard deviation of the target, absolute beyond
    "absolute": F.l1_loss,
}


class Regression(Objective):
    """An error of outputs `(batch, target)` and standardised targets of the same shape, averaged over the targets.

    Targets have mean 0 and standard deviation 1 in the training data, so a blind guess has a squared error of 1. The
    score is R2, the fraction of the variance of the targets that the predictions explain, averaged over the targets.

    Args:
        targets: The number of targets.
        loss: `squared`; `huber`, which is squared up to an error of one standard deviation and absolute beyond; or
            `absolute`.

    Example:
        >>> import torch
        >>> from verydeep.objectives import Regression
        >>> objective, y = Regression(), torch.tensor([[-1.0], [0.0], [1.0]])
        >>> objective.loss(torch.zeros(3, 1), y)
        tensor(2.)
        >>> objective.score(objective.totals(0.5 * y, y), samples=3)
        0.75
    """

    measure = "r2"

    def __init__(self, targets: int = 1, loss: RegressionLoss = "squared") -> None:
        if loss not in _LOSSES:
            raise UserError(f"loss must be one of {', '.join(_LOSSES)}, got {loss!r}")
        self.targets, self.kind = targets, loss
        self.size = 2 + 3 * targets

    def read_output(self, output: Any, samples: int) -> Tensor:  # noqa: ANN401 - whatever the network returns
        """The predictions `(batch, target)`; those of a single target may have the shape `(batch,)`."""
        single = isinstance(output, Tensor) and output.dim() == 1 and self.targets == 1
        return super().read_output(output[:, None] if single else output, samples)

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        return _LOSSES[self.kind](outputs.float(), y, reduction="sum") / self.targets

    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        return _LOSSES[self.kind](outputs.float(), y, reduction="none").mean(1)

    def answer(self, outputs: Tensor) -> Tensor:
        return outputs

    def errors(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The squared error of each target."""
        return (as_float64(outputs.detach()) - as_float64(y)).square()

    def error_weights(self, values: Tensor, samples: int) -> Tensor:
        _, sums, squares = values[2:].cpu().view(3, self.targets)
        variation = squares - sums.square() / samples
        return torch.where(variation > 0, samples / (self.targets * variation), 0.0)  # R2 of a constant never changes

    def check(self, outputs: Tensor, y: Tensor) -> None:
        if y.dim() != 2 or not y.is_floating_point() or y.shape != outputs.shape:
            raise UserError(
                f"y must be numbers of shape (batch, target), as many as the model's outputs {tuple(outputs.shape)}; "
                f"got {y.dtype} of shape {tuple(y.shape)}"
            )

    def sums(self, loss: Tensor, outputs: Tensor, y: Tensor) -> Tensor:
        targets = as_float64(y)
        squared = (as_float64(outputs.detach()) - targets).square()
        score = len(y) - squared.sum() / self.targets  # R2 of a sample, if the mean and variance were those of training
        parts = squared.sum(0), targets.sum(0), targets.square().sum(0)
        return torch.cat([torch.stack([as_float64(loss.detach()), score]), *parts])

    def step_sums(self, losses: Tensor, scores: Tensor, y: Tensor) -> Tensor:
        """The same for one target and the squared error, which is the loss."""
        targets = y[..., 0].double().numpy()
        sums, squares = (torch.from_numpy(np.add.reduce(each, 1)) for each in (targets, targets * targets))
        return torch.stack([losses, y.shape[1] - losses, losses, sums, squares], 1)

    def score(self, values: Tensor, samples: int) -> float:
        squared, sums, squares = values[2:].view(3, self.targets)
        variation = squares - sums.square() / samples
        # Like scikit-learn, for targets that are all equal: 1 if the predictions are exact, else 0.
        constant = (squared == 0).double()
        return float(torch.where(variation > 0, 1 - squared / variation, constant).mean())

    def guess_loss(self, _outputs: int) -> float:
        return 1.0
