"""Classification against the formula, and the one evaluation loop."""

import math

import pytest
import torch

from verydeep.errors import UserError
from verydeep.objectives import Classification, evaluate_batches

LOGITS = torch.tensor([[2.0, 0.0, 0.0], [0.0, 1.0, 3.0], [5.0, 0.0, 0.0]], dtype=torch.float64)
Y = torch.tensor([0, 1, 0])


def test_the_loss_is_the_sum_of_cross_entropies() -> None:
    expected = -sum(float(row.softmax(0)[y].log()) for row, y in zip(LOGITS, Y, strict=True))
    assert Classification().loss(LOGITS, Y).item() == pytest.approx(expected, rel=1e-6)


def test_only_the_training_loss_is_smoothed() -> None:
    objective, logs = Classification(label_smoothing=0.3), LOGITS.log_softmax(1)
    expected = -(0.7 * logs.gather(1, Y[:, None]).sum() + 0.3 * logs.mean(1).sum())
    assert objective.training_loss(LOGITS, Y).item() == pytest.approx(expected.item(), rel=1e-6)
    assert objective.loss(LOGITS, Y).equal(Classification().loss(LOGITS, Y))


def test_a_split_is_measured_as_one_batch_is() -> None:
    objective, seen = Classification(), list[int]()
    batches = [(LOGITS[:2].float(), Y[:2]), (LOGITS[2:].float(), Y[2:])]
    totals = evaluate_batches(lambda x: x, batches, objective, observe=lambda _logits, y: seen.append(len(y)))
    assert totals.samples == 3
    assert totals.accuracy == pytest.approx(2 / 3)
    assert totals.error == 1 / 3
    assert totals.loss == pytest.approx(objective.loss(LOGITS, Y).item() / 3)
    assert math.isclose(totals.accuracy + totals.error, 1)
    assert seen == [2, 1]


@pytest.mark.parametrize(
    ("y", "message"),
    [(torch.tensor([3, 0, 0]), "class number 3, but"), (torch.tensor([0, -1, 0]), "class number -1, but"),
     (torch.rand(3), "class numbers of shape")],
)  # fmt: skip
def test_targets_that_are_no_classes_are_refused(y: torch.Tensor, message: str) -> None:
    with pytest.raises(UserError, match=message):
        evaluate_batches(lambda x: x, [(LOGITS, y)], Classification())
