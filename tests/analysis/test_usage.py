"""How many layers a network uses: one rule, paired over samples, never below the noise, on held-out data."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from verydeep.analysis import (
    DepthUsage,
    GreedyLesion,
    LesionStudy,
    Score,
    depth_usage,
    greedy_lesions,
    lesion_study,
    load_result,
    save_result,
)
from verydeep.analysis.lesions._paired import bootstrap_means
from verydeep.data import Split, Task
from verydeep.models import create_model

from ._models import conv, mlp, residual, shaken, split
from .test_tasks import LABELS, NUMBERS, TASK, X, network


def curve(wrong: np.ndarray, layers: int) -> GreedyLesion:
    """The greedy curve of a network whose wrong predictions after 0, 1, ... closed layers are `(sample, closed)`."""
    rises = wrong - wrong[:, :1]
    error = wrong.mean(0)
    return GreedyLesion(
        tuple(f"stack.{n}" for n in range(layers)),
        "valid",
        len(wrong),
        tuple(range(layers - 1, -1, -1)),
        error,
        error,
        standard_error=rises.std(0) / np.sqrt(len(wrong) - 1),
        draws=bootstrap_means(rises),
    )


def test_one_lost_sample_is_noise_and_ten_are_not() -> None:
    wrong = np.zeros((960, 4))
    wrong[:1, 1] = wrong[:1, 2] = 1
    wrong[:10, 3] = 1
    usage = depth_usage(curve(wrong, 3))
    assert usage.tolerance == 0.001
    assert usage.within == pytest.approx(1 / 960)  # one standard error, more than the tolerance
    assert usage.kept == (0,)
    assert "(one standard error)" in repr(usage)
    assert depth_usage(curve(wrong, 3), 0.02).within == 0.02


def test_differences_are_paired_over_samples() -> None:
    """A hard third of the samples is wrong before and after, which says nothing about the layer."""
    wrong = np.zeros((900, 2))
    wrong[:300] = 1
    wrong[300:310, 1] = 1
    found = curve(wrong, 1)
    assert depth_usage(found).kept == (0,)
    assert found.standard_error is not None
    assert found.standard_error[1] < 0.25 * np.sqrt(1 / 3 * 2 / 3 / 900)


def test_the_interval_is_the_same_rule_over_draws_of_the_samples() -> None:
    random = np.random.default_rng(1)
    risk = np.array([0.05, 0.05, 0.055, 0.06, 0.08, 0.3])
    wrong = (random.uniform(size=(400, 1)) < risk).astype(float)
    usage = depth_usage(curve(wrong, 5))
    assert usage.interval is not None
    counts = []
    rises = wrong - wrong[:, :1]
    for _ in range(500):
        rise = rises[random.integers(0, 400, 400)].mean(0)
        counts.append(5 - int(np.flatnonzero(rise <= usage.allowed + 1e-9).max()))
    assert usage.interval == tuple(np.percentile(counts, (2.5, 97.5), method="inverted_cdf"))
    assert usage.interval[0] < usage.interval[1]


def test_intervals_cover_the_number_of_a_large_sample() -> None:
    """With steps of 3 %, 400 samples rarely mistake the layers that are needed by more than their interval says."""
    random, covered = np.random.default_rng(0), 0
    risk = np.array([0.05, 0.05, 0.05, 0.08, 0.2, 0.5])
    for _ in range(40):
        usage = depth_usage(curve((random.uniform(size=(400, 1)) < risk).astype(float), 5))
        assert usage.interval is not None
        covered += usage.interval[0] <= 3 <= usage.interval[1]
    assert covered >= 36


def test_held_out_data_does_not_choose_the_order() -> None:
    model, train, valid = shaken(mlp), split(90), split(60)
    found = greedy_lesions(model, valid, "valid", train=train)
    assert found.order == greedy_lesions(model, train).order
    assert (found.split, found.selected_on, found.selected_samples) == ("valid", "train", 90)
    assert found.training is not None
    assert (found.training.samples, found.samples) == (90, 60)
    alone = greedy_lesions(model, train, "train")
    np.testing.assert_array_equal(found.training.error, alone.error)  # one search gives both curves
    other = Split(valid.x, (valid.y + 1) % 3)
    assert greedy_lesions(model, other, "valid", train=train).order == found.order


def test_the_training_set_version_stands_beside() -> None:
    usage = depth_usage(greedy_lesions(shaken(mlp), split(60), "valid", train=split(90)), 0.05)
    assert usage.split == "valid"
    assert usage.training is not None
    assert usage.training.split == "train"
    assert usage.greedy.training is not None
    assert usage.training.kept == depth_usage(usage.greedy.training, 0.05).kept
    assert ("on the training samples, as in the paper", usage.training.count_text) in usage._rows()


@pytest.mark.parametrize("make", [mlp, conv, residual])
def test_errors_of_samples_add_up_to_the_error(make: object) -> None:
    model, data = shaken(make), split(40, {mlp: (1, 6, 6), conv: (1, 16, 16), residual: (1, 8, 8)}[make])  # type: ignore[arg-type,index]
    found = greedy_lesions(model, data)
    assert found.draws is not None
    assert found.draws.shape == (1000, len(found.order) + 1)
    np.testing.assert_allclose(found.draws.mean(0), found.error - found.error[0], atol=0.02)


def test_regressions_and_labels_have_paired_differences_too() -> None:
    several = torch.cat([NUMBERS, X[:, 2:3] - X[:, 1:2]], 1)
    task = Task("regression", ("a", "b"), mean=(0.0, 10.0), deviation=(1.0, 2.0))
    for model, data in (
        (network(), Split(X, NUMBERS, task=TASK)),
        (network(2), Split(X, several, task=task)),
        (network(2), Split(X, LABELS, task=Task("multilabel", ("red", "blue")))),
    ):
        found, lesions = greedy_lesions(model, data), lesion_study(model, data)
        assert found.draws is not None
        assert found.standard_error is not None
        np.testing.assert_allclose(found.draws.mean(0), found.error - found.error[0], atol=0.02)
        np.testing.assert_allclose(found.draws.std(0), found.standard_error, rtol=0.15, atol=1e-6)
        assert lesions.standard_error is not None
        first = found.order[0]  # closed alone first on the curve
        assert lesions.standard_error[first] == pytest.approx(found.standard_error[1], rel=1e-3)


def test_differences_are_paired_if_the_order_of_the_data_is_random() -> None:
    model, data = shaken(mlp), split(40)
    expected = greedy_lesions(model, data)
    loader: DataLoader[tuple[Tensor, ...]] = DataLoader(TensorDataset(data.x, data.y), 8, shuffle=True)
    torch.manual_seed(0)
    found = greedy_lesions(model, loader)
    assert found.order == expected.order
    assert found.standard_error is not None
    assert expected.standard_error is not None
    np.testing.assert_allclose(found.standard_error, expected.standard_error, rtol=1e-6)


def test_the_noise_of_a_lesion_is_that_of_the_samples() -> None:
    model, data = shaken(mlp), split(200)
    study = lesion_study(model, data)
    with torch.no_grad():
        before, after = model.eval()(data.x), model(data.x, closed={2})
    rise = (after.argmax(1) != data.y).double() - (before.argmax(1) != data.y).double()
    assert study.standard_error is not None
    assert study.standard_error[2] == pytest.approx(float(rise.std() / 200**0.5))
    loss = [torch.nn.functional.cross_entropy(logits, data.y, reduction="none") for logits in (before, after)]
    assert study.loss_standard_error is not None
    assert study.loss_standard_error[2] == pytest.approx(float((loss[1] - loss[0]).std() / 200**0.5), rel=1e-3)


def test_layers_whose_cost_may_be_noise_are_not_called_important() -> None:
    loss = np.array([0.1001, 0.3, 0.0997, 0.12])
    error = np.array([0.0203, 0.05, 0.0197, 0.02])
    study = LesionStudy(tuple("abcd"), "valid", 1000, Score(0.1, 0.02), loss, error)
    noisy = replace(study, standard_error=np.full(4, 0.001), loss_standard_error=np.full(4, 0.002))
    assert study.most_important == (1, 3, 0)
    assert noisy.most_important == (1, 3)


def test_results_of_0_4_0_have_no_interval(tmp_path: Path) -> None:
    """The files of that version lack what is new, at every level."""
    import json

    usage = depth_usage(greedy_lesions(shaken(mlp), split(60), "valid", train=split(90)))
    save_result(usage, tmp_path / "new.npz")
    with np.load(tmp_path / "new.npz", allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    header = json.loads(str(arrays.pop("verydeep")))
    header.pop("sha256")
    header["result"].pop("interval")
    for name in ("standard_error", "draws", "training", "selected_on", "selected_samples", "key"):
        header["result"]["greedy"].pop(name)
    old = {name: value for name, value in arrays.items() if name in ("greedy.loss", "greedy.error")}
    np.savez(tmp_path / "old.npz", verydeep=np.array(json.dumps(header)), **old)
    found = load_result(tmp_path / "old.npz", DepthUsage)
    assert found.interval is None
    assert found.training is None
    assert found.within == found.tolerance
    assert found.kept == usage.kept
    again = load_result(tmp_path / "new.npz", DepthUsage)
    assert again.interval == usage.interval
    assert again.training is not None
    assert usage.training is not None
    assert again.training.interval == usage.training.interval


def test_a_network_that_explodes_without_a_layer_needs_it() -> None:
    torch.manual_seed(0)
    model = create_model("highway-mlp", depth=3, width=6, classes=1, input_shape=(6,), gate_bias=0.0)
    found = greedy_lesions(model, Split(X, NUMBERS, task=TASK))
    worst = replace(found, error=np.array([0.5, 0.5, np.inf]), draws=bootstrap_means(np.array([[0, 0, np.nan]] * 9)))
    usage = depth_usage(worst)
    assert len(usage.kept) == 1
    assert usage.interval == (1, 1)
