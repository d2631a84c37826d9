"""Language models: one token per position of a sequence."""

import math
from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from verydeep.errors import UserError
from verydeep.float64 import as_float64
from verydeep.objectives._inputs import Inputs
from verydeep.objectives._objective import Objective

IGNORED = -100  # the target of positions that are not predicted, as in transformers


class LanguageModel(Objective):
    """Cross-entropy of logits `(batch, position, token)` with token numbers `(batch, position)`; -100 is not predicted.

    Loss and accuracy are means over all tokens that are predicted; the perplexity is `exp(loss)`. Standard errors are
    over sequences, because tokens of one sequence are not independent.
    """

    measure = "token_accuracy"
    size = 3  # loss, correct tokens, tokens
    dimensions = 3

    def align(self, outputs: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The logits and targets of the same positions."""
        return outputs, y

    def token_losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The loss of each token, 0 where none is predicted, `(batch, position)`."""
        logits, targets = self.align(outputs, y)
        rows = logits.float().flatten(0, 1)  # several times faster than with the tokens in the second dimension
        return F.cross_entropy(rows, targets.flatten(), reduction="none", ignore_index=IGNORED).view(targets.shape)

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        return self.token_losses(outputs, y).sum()

    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The loss of each sequence, summed over its tokens."""
        return as_float64(self.token_losses(outputs, y)).sum(1)

    def answer(self, outputs: Tensor) -> Tensor:
        return outputs.argmax(-1)

    def count_correct(self, outputs: Tensor, y: Tensor) -> Tensor:
        logits, targets = self.align(outputs.detach(), y)
        return (self.answer(logits) == targets).sum()

    def errors(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The number of wrong tokens of each sequence."""
        logits, targets = self.align(outputs.detach(), y)
        wrong = (self.answer(logits) != targets) & (targets != IGNORED)
        return as_float64(wrong).sum(1, keepdim=True)

    def totals_and_samples(self, outputs: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        logits, targets = self.align(outputs.detach(), y)
        losses, correct, predicted = self.token_losses(outputs, y), self.answer(logits) == targets, targets != IGNORED
        totals = torch.stack([as_float64(part.sum()) for part in (losses, correct, predicted)])
        wrong = as_float64(~correct & predicted).sum(1, keepdim=True)
        return totals, wrong, as_float64(losses).sum(1)

    def error_weights(self, values: Tensor, samples: int) -> Tensor:
        return torch.tensor([samples / max(float(values[2]), 1)], dtype=torch.float64)

    def loss_weights(self, values: Tensor, samples: int) -> Tensor:
        return self.error_weights(values, samples)

    def check(self, outputs: Tensor, y: Tensor) -> None:
        if y.shape != outputs.shape[:2] or y.is_floating_point():
            raise UserError(
                f"the targets must be token numbers, one per position of the model's logits {tuple(outputs.shape)}; "
                f"got {y.dtype} of shape {tuple(y.shape)}"
            )
        predicted = y[y != IGNORED]
        if predicted.numel() and not 0 <= int(predicted.min()) <= int(predicted.max()) < outputs.shape[2]:
            raise UserError(
                f"the data has token numbers {int(predicted.min())} to {int(predicted.max())}, "
                f"but the model only has tokens 0 to {outputs.shape[2] - 1}"
            )

    def sums(self, loss: Tensor, outputs: Tensor, y: Tensor) -> Tensor:
        _, targets = self.align(outputs, y)
        tokens = (targets != IGNORED).sum()
        return torch.stack([as_float64(part) for part in (loss.detach(), self.count_correct(outputs, y), tokens)])

    def count(self, values: Tensor, _samples: int) -> float:
        """The number of tokens that were predicted."""
        if not values[2]:
            raise UserError("the data has no token to predict")
        return float(values[2])

    def score(self, values: Tensor, samples: int) -> float:
        return float(values[1]) / self.count(values, samples)

    def guess_loss(self, outputs: int) -> float:
        return math.log(outputs)


class CausalLanguageModel(LanguageModel):
    """Predicts each token from those before it, as GPT-2 and Llama do.

    A batch is a tensor of token numbers `(batch, position)`, or a dictionary with `input_ids` and, if sequences are
    padded, `attention_mask`. `labels` are used if there are any.

    Example:
        >>> import torch
        >>> from verydeep.objectives import CausalLanguageModel
        >>> objective, tokens = CausalLanguageModel(), torch.tensor([[2, 0, 1]])
        >>> inputs, y = objective.read_batch(tokens)
        >>> values = objective.totals(torch.zeros(1, 3, 4), y)  # every token has the same probability
        >>> round(float(values[0] / values[2]), 4), objective.count(values, 1)  # the loss is log(4), of two tokens
        (1.3863, 2.0)
    """

    def align(self, outputs: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return outputs[:, :-1], y[:, 1:]

    def read_batch(self, batch: Any) -> tuple[Inputs, Tensor]:  # noqa: ANN401
        """Split a batch into the inputs of the network and the tokens to predict."""
        if isinstance(batch, tuple | list):
            return super().read_batch(batch)
        inputs, tokens = _tokens(batch)
        return inputs, torch.as_tensor(batch["labels"]) if isinstance(batch, Mapping) and "labels" in batch else tokens


class MaskedLanguageModel(LanguageModel):
    """Predicts tokens that are masked, as BERT does.

    A batch is a dictionary with `input_ids` and `labels`, -100 wherever nothing is predicted. From tokens alone, or a
    dictionary without `labels`, some tokens are masked; the same tokens every time.

    Args:
        mask_token: The number of the token that takes the place of others.
        share: The fraction of tokens that are masked.
        seed: It determines which.

    Example:
        >>> import torch
        >>> from verydeep.objectives import MaskedLanguageModel
        >>> inputs, y = MaskedLanguageModel(mask_token=3, share=0.5).read_batch(torch.tensor([[2, 0, 1, 1]]))
        >>> bool(((y == -100) == (inputs["input_ids"] != 3)).all())
        True
    """

    def __init__(self, mask_token: int | None = None, share: float = 0.15, seed: int = 0) -> None:
        self.mask_token, self.share, self.seed = mask_token, share, seed

    def read_batch(self, batch: Any) -> tuple[Inputs, Tensor]:  # noqa: ANN401
        """Split a batch into the inputs of the network and the tokens to predict."""
        if isinstance(batch, tuple | list) or (isinstance(batch, Mapping) and "labels" in batch):
            return super().read_batch(batch)
        if self.mask_token is None:
            raise UserError("a batch has no 'labels'; give them, or say which token masks: MaskedLanguageModel(103)")
        inputs, tokens = _tokens(batch)
        generator = torch.Generator().manual_seed(self.seed + int(tokens[tokens != IGNORED].sum()))
        masked = (torch.rand(tokens.shape, generator=generator) < self.share).to(tokens.device) & (tokens != IGNORED)
        inputs["input_ids"] = inputs["input_ids"].masked_fill(masked, self.mask_token)
        return inputs, tokens.masked_fill(~masked, IGNORED)


def _tokens(batch: Any) -> tuple[dict[str, Any], Tensor]:  # noqa: ANN401
    """The inputs of a language model, and the tokens of a batch without those of padding."""
    given = batch if isinstance(batch, Mapping) else {"input_ids": batch}
    inputs = {name: torch.as_tensor(value) for name, value in given.items() if name != "labels"}
    tokens = inputs.get("input_ids")
    if tokens is None or tokens.dim() != 2 or tokens.is_floating_point():
        got = ", ".join(given) if isinstance(batch, Mapping) else type(batch).__name__
        raise UserError(f"expected token numbers of shape (batch, position), or a dictionary with input_ids; got {got}")
    mask = inputs.get("attention_mask")
    tokens = tokens.long()
    return inputs, tokens if mask is None else tokens.masked_fill(mask == 0, IGNORED)
