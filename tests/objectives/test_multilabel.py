"""Labels are independent: binary cross-entropy, probabilities that need not sum to one, and a share of right labels."""

import pytest
import torch
import torch.nn.functional as F

from verydeep.errors import UserError
from verydeep.objectives import MultiLabel, evaluate_batches

LOGITS = torch.tensor([[2.0, -1.0, 0.5], [-3.0, 0.1, 1.0]])
Y = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])


def test_loss_and_score_are_means_over_labels() -> None:
    totals = evaluate_batches(lambda x: x, [(LOGITS[:1], Y[:1]), (LOGITS[1:], Y[1:])], MultiLabel())
    assert totals.loss == pytest.approx(float(F.binary_cross_entropy_with_logits(LOGITS, Y)), rel=1e-6)
    assert totals.score == pytest.approx(5 / 6)
    assert MultiLabel().probabilities(LOGITS).equal(LOGITS.sigmoid())


def test_weights_of_ones_concern_training_only() -> None:
    weighted = MultiLabel(torch.tensor([3.0, 1.0, 1.0]))
    assert weighted.loss(LOGITS, Y).equal(MultiLabel().loss(LOGITS, Y))
    extra = F.softplus(-LOGITS[0, 0]) * 2 / 3  # the only one of the first label counts three times
    assert weighted.training_loss(LOGITS, Y).item() == pytest.approx(float(MultiLabel().loss(LOGITS, Y) + extra))


def test_other_targets_than_zeros_and_ones_are_refused() -> None:
    with pytest.raises(UserError, match="zeros and ones"):
        MultiLabel().check(LOGITS, Y + 0.5)
    with pytest.raises(UserError, match="as many as the model's outputs"):
        MultiLabel().check(LOGITS, Y[:, :2])
