"""What every objective offers."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from verydeep.errors import UserError
from verydeep.float64 import as_float64
from verydeep.objectives._inputs import Inputs


class Objective:
    """A task: its loss, its predictions and how good they are. Subclasses define all of them.

    Attributes:
        measure: What the score of predictions is called: `accuracy` or `r2`, the coefficient of determination.
        size: How many sums `sums` returns.
        dimensions: How many dimensions the outputs have: two, the samples and the classes or targets; None for any.

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

    measure = "accuracy"
    size = 2
    dimensions: int | None = 2

    def read_batch(self, batch: Any) -> tuple[Inputs, Any]:  # noqa: ANN401 - whatever the user's data yields
        """Split a batch into the inputs of the network and the targets.

        By default, a batch is a pair of both, or a dictionary in which the targets are called `labels`.
        """
        if isinstance(batch, Mapping):
            if "labels" not in batch:
                names = ", ".join(map(str, batch))
                raise UserError(f"expected a pair (x, y), or a dictionary with 'labels'; got dict of {names}")
            return {name: value for name, value in batch.items() if name != "labels"}, batch["labels"]
        if isinstance(batch, tuple | list) and len(batch) == 2:
            return batch[0], batch[1]
        got = f"{len(batch)} values" if isinstance(batch, tuple | list) else type(batch).__name__
        raise UserError(f"expected a pair (x, y), samples and their targets; got {got}")

    def read_output(self, output: Any, samples: int) -> Tensor:  # noqa: ANN401 - whatever the network returns
        """The tensor that losses and predictions are computed from; by default, what the network returns, or `logits`.

        Args:
            output: What the network returned.
            samples: The number of samples of the batch.
        """
        logits = output if isinstance(output, Tensor) else getattr(output, "logits", None)
        dimensions = self.dimensions or (logits.dim() if isinstance(logits, Tensor) else 0)
        if not isinstance(logits, Tensor) or logits.dim() != dimensions or len(logits) != samples:
            got = tuple(logits.shape) if isinstance(logits, Tensor) else type(output).__name__
            wanted = "(batch, classes)" if dimensions == 2 else "(batch, position, token)"
            wanted = "predictions of shape (batch, targets)" if self.measure == "r2" else f"logits of shape {wanted}"
            hint = "An objective of your own can take them from other outputs with read_output"
            if self.dimensions == 2 and isinstance(logits, Tensor) and logits.dim() == 3:
                hint = "A language model needs another objective, such as CausalLanguageModel()"
            raise UserError(f"the model must return {wanted}, ({samples}, ...) here; got {got}. {hint}")
        return logits

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The loss that is reported, summed over the batch."""
        raise _undefined(self, "loss")

    def training_loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The loss that is minimised, summed over the batch; by default, the one that is reported."""
        return self.loss(outputs, y)

    def answer(self, outputs: Tensor) -> Tensor:
        """The network's prediction for each sample."""
        raise _undefined(self, "answer")

    def probabilities(self, outputs: Tensor) -> Tensor | None:
        """The probability of each class or label; None if the task has none."""
        return None

    def count_correct(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The number of correct predictions."""
        return (self._answer_like(y, outputs) == y).sum()

    def losses(self, outputs: Tensor, y: Tensor) -> Tensor | None:
        """The reported loss of each sample, `(batch,)`; None if it is not known."""
        return None

    def errors(self, outputs: Tensor, y: Tensor) -> Tensor:
        """How wrong the prediction for each sample is, float64, `(batch, parts)`; by default, the share that differs.

        The error, 1 minus the score, is the mean over samples of the parts times `error_weights`.
        """
        wrong = as_float64(self._answer_like(y, outputs) != y)
        return wrong.reshape(len(y), -1).mean(1, keepdim=True)

    def _answer_like(self, y: Tensor, outputs: Tensor) -> Tensor:
        """The predictions in the shape of the targets; a row and a column would be compared all to all."""
        answer = self.answer(outputs.detach())
        if answer.shape != y.shape:
            raise UserError(
                f"{type(self).__name__}.answer returns shape {tuple(answer.shape)}, but the targets have shape "
                f"{tuple(y.shape)}; both must agree"
            )
        return answer

    def error_weights(self, values: Tensor, samples: int) -> Tensor:
        """The weight of each part of `errors` in the error, given the sums over all samples; float64, `(parts,)`."""
        return torch.ones(1, dtype=torch.float64)

    def loss_weights(self, values: Tensor, samples: int) -> Tensor:
        """The weight of `losses` in the mean loss, given the sums over all samples; float64, `(1,)`."""
        return torch.ones(1, dtype=torch.float64)

    def count(self, values: Tensor, samples: int) -> float:
        """How many predictions the mean loss and the accuracy are over, given the sums; by default, the samples."""
        return samples

    def check(self, outputs: Tensor, y: Tensor) -> None:
        """Raise a `UserError` if outputs and targets do not belong together."""
        raise _undefined(self, "check")

    def sums(self, loss: Tensor, outputs: Tensor, y: Tensor) -> Tensor:
        """What is added up over batches to know loss and score: float64, `(size,)`.

        Args:
            loss: The loss, summed over the batch; it comes first.
            outputs: The network's outputs.
            y: The targets. The second sum is the score of each sample; divided by the samples it is the score itself,
                or close to it.
        """
        return torch.stack([as_float64(loss.detach()), as_float64(self.count_correct(outputs, y))])

    def step_sums(self, losses: Tensor, scores: Tensor, y: Tensor) -> Tensor:
        """The `sums` of several batches whose losses and scores are known.

        Args:
            losses: The loss of each batch, float64, `(batch,)`.
            scores: Its number of correct predictions, float64, `(batch,)`.
            y: The targets of its samples, `(batch, sample, target)`.
        """
        return torch.stack([losses, scores], 1)

    def totals(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The sums of a batch, with the loss that is reported."""
        return self.sums(self.loss(outputs, y), outputs, y)

    def totals_and_samples(self, outputs: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """`totals`, `errors` and `losses` of a batch; objectives that share work between them compute it once."""
        return self.totals(outputs, y), self.errors(outputs, y), self.losses(outputs, y)

    def score(self, values: Tensor, samples: int) -> float:
        """The score of all samples, from their sums; by default, the fraction of correct predictions."""
        return float(values[1]) / samples

    def guess_loss(self, outputs: int) -> float:
        """The mean loss of a blind guess by a network with this many outputs; much more means divergence."""
        return math.log(max(outputs, 2))


def _undefined(objective: Objective, method: str) -> UserError:
    return UserError(f"the objective {type(objective).__name__} must define the method {method}")
