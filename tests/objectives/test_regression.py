"""R2 and losses of a regression are those of scikit-learn and of the formulas, however samples are batched."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from sklearn.metrics import r2_score  # type: ignore[import-untyped]
from torch import Tensor

from verydeep.errors import UserError
from verydeep.objectives import Regression, Totals, evaluate_batches


def numbers(samples: int, targets: int, seed: int) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    y = torch.randn(samples, targets, generator=random)
    return y + 0.5 * torch.randn(samples, targets, generator=random), y


@given(samples=st.integers(2, 40), targets=st.integers(1, 3), batch=st.integers(1, 40), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_the_score_is_scikit_learns_r2_however_samples_are_batched(
    samples: int, targets: int, batch: int, seed: int
) -> None:
    outputs, y = numbers(samples, targets, seed)
    batches = zip(outputs.split(batch), y.split(batch), strict=True)
    totals = evaluate_batches(lambda x: x, batches, Regression(targets))
    assert totals.score == pytest.approx(r2_score(y.double().numpy(), outputs.double().numpy()), abs=1e-9)
    assert totals.error == pytest.approx(1 - totals.score)
    assert totals.loss == pytest.approx(float((outputs - y).square().mean()), rel=1e-5)


@pytest.mark.parametrize(
    ("loss", "expected"),
    [("squared", (0.25 + 9) / 2), ("absolute", (0.5 + 3) / 2), ("huber", (0.125 + 2.5) / 2)],
)
def test_losses_are_means_over_the_targets(loss: str, expected: float) -> None:
    objective = Regression(2, loss)  # type: ignore[arg-type]
    assert objective.loss(torch.tensor([[0.5, 3.0]]), torch.zeros(1, 2)).item() == pytest.approx(expected)


def test_targets_that_are_all_equal_score_like_in_scikit_learn() -> None:
    objective, y = Regression(), torch.full((3, 1), 0.5)
    exact, wrong = (objective.totals(outputs, y) for outputs in (y, y + 1))
    assert (Totals(exact, 3, objective).score, Totals(wrong, 3, objective).score) == (1.0, 0.0)
    assert r2_score(np.full(3, 0.5), np.full(3, 1.5)) == 0.0


def test_a_blind_guess_has_a_score_of_nothing() -> None:
    _, y = numbers(200, 1, 0)
    y = (y - y.mean()) / y.std(correction=0)
    totals = evaluate_batches(torch.zeros_like, [(y, y)], Regression())
    assert totals.score == pytest.approx(0, abs=1e-6)
    assert totals.loss == pytest.approx(Regression().guess_loss(1), rel=1e-5)
    assert "R²" in repr(totals)


@pytest.mark.parametrize("y", [torch.zeros(2), torch.zeros(2, 2), torch.zeros(2, 1, dtype=torch.int64)])
def test_targets_that_do_not_fit_are_refused(y: Tensor) -> None:
    with pytest.raises(UserError, match="y must be numbers of shape"):
        Regression().check(torch.zeros(2, 1), y)


def test_an_unknown_loss_is_refused() -> None:
    with pytest.raises(UserError, match="loss must be one of squared, huber, absolute, got 'cubed'"):
        Regression(1, "cubed")  # type: ignore[arg-type]


def test_predictions_of_a_single_target_may_have_one_dimension() -> None:
    outputs = torch.tensor([1.0, 2.0])
    assert torch.equal(Regression().read_output(outputs, 2), outputs[:, None])
    with pytest.raises(
        UserError, match=r"must return predictions of shape \(batch, targets\), \(2, ...\) here; got \(2,\)"
    ):
        Regression(2).read_output(outputs, 2)
