"""Analyses of regression and multi-label networks."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import r2_score  # type: ignore[import-untyped]
from torch.utils.data import DataLoader, TensorDataset

from verydeep.analysis import (
    GreedyLesion,
    LesionStudy,
    Score,
    class_routing,
    depth_usage,
    evaluate_model,
    greedy_lesions,
    lesion_study,
    load_result,
    pair_lesions,
    prune,
    prune_report,
    save_result,
    signal_flow,
)
from verydeep.analysis.activity._routing_groups import _range_names
from verydeep.data import Split, Task
from verydeep.errors import UserError
from verydeep.models import Network, create_model
from verydeep.objectives import MultiLabel, Regression

TASK = Task("regression", ("price",), mean=(200.0,), deviation=(50.0,))
X = torch.randn(120, 6, generator=torch.Generator().manual_seed(0))
NUMBERS = X[:, :1] + 0.5 * X[:, 1:2]
LABELS = torch.cat([X[:, :1] > 0, X[:, 1:2] > 0.5], 1).float()


def network(outputs: int = 1) -> Network:
    torch.manual_seed(0)
    return create_model("highway-mlp", depth=4, width=10, classes=outputs, input_shape=(6,), gate_bias=0.0)


def test_a_regression_is_measured_by_r2() -> None:
    model, split = network(), Split(X, NUMBERS, task=TASK)
    with torch.no_grad():
        expected = r2_score(NUMBERS, model.eval()(X))
    score = evaluate_model(model, split)
    assert score.measure == "r2"
    assert score.accuracy == pytest.approx(expected, rel=1e-5)
    lesions = lesion_study(model, split, "test")
    assert lesions.baseline.error == pytest.approx(score.error)
    with torch.no_grad():
        closed = r2_score(NUMBERS, model(X, closed={1}))
    assert 1 - lesions.error[1] == pytest.approx(closed, rel=1e-5)
    assert "1 − R²" in repr(lesions)
    assert "%" not in repr(lesions)


@pytest.mark.slow
def test_every_analysis_that_closes_layers_takes_a_regression() -> None:
    model, split = network(), Split(X, NUMBERS, task=TASK)
    lesions, pairs = lesion_study(model, split), pair_lesions(model, split)
    assert np.diagonal(pairs.error) == pytest.approx(lesions.error)
    usage = depth_usage(greedy_lesions(model, split, "test"), tolerance=0.05)
    assert usage.greedy.measure == "r2"
    assert usage.greedy.error[0] == pytest.approx(lesions.baseline.error)
    assert "within 0.0500 R²" in repr(usage)
    report = prune_report(model, prune(model, usage), usage, split, split)
    assert report.measure == "r2"
    assert report.test == report.chosen
    for result in (lesions, pairs, usage, report):
        assert "accuracy" not in str(result._rows())
        assert "R²" in str(result._rows())
    assert signal_flow(model, split).gradient.shape == (3,)


def test_several_labels_are_measured_by_the_share_of_correct_ones() -> None:
    model, task = network(2), Task("multilabel", ("red", "blue"))
    split = Split(X, LABELS, task=task)
    with torch.no_grad():
        expected = ((model.eval()(X) > 0) == LABELS.bool()).float().mean()
    assert evaluate_model(model, split).accuracy == pytest.approx(float(expected))
    given = evaluate_model(model, (X, LABELS), objective=MultiLabel())
    assert given == evaluate_model(model, split)


def test_fractions_without_a_task_are_those_of_a_regression() -> None:
    model, column = network(), NUMBERS[:, 0]
    expected = evaluate_model(model, Split(X, NUMBERS, task=TASK))
    batches = DataLoader(TensorDataset(X, column), batch_size=50)
    for data in ((X, column), (X.numpy(), column.numpy()), Split(X, column), batches, (X, NUMBERS)):
        found = evaluate_model(model, data)
        assert found.measure == "r2"
        assert found.error == pytest.approx(expected.error)
    absolute = evaluate_model(model, (X, column), objective=Regression(1, "absolute"))
    assert absolute.loss != pytest.approx(expected.loss)
    with pytest.raises(UserError, match="as many as the model's outputs"):
        evaluate_model(network(3), (X, column))


def test_routing_of_a_regression_is_by_ranges_of_the_target() -> None:
    routing = class_routing(network(), Split(X, NUMBERS, task=TASK))
    assert routing.grouped_by == "range"
    assert routing.counts.tolist() == [24] * 5
    lowest = TASK.restore(NUMBERS).min()
    assert routing.classes[0].startswith("below 1")
    assert lowest < float(routing.classes[0].removeprefix("below "))  # in the units of the target
    assert routing.classes[-1].endswith(" or more")
    assert "5 ranges" in repr(routing)
    batches = DataLoader(TensorDataset(X, NUMBERS[:, 0]), batch_size=50)
    assert class_routing(network(), batches).counts.tolist() == [24] * 5


def test_ranges_of_a_target_with_few_values_have_samples() -> None:
    few = Split(X, (NUMBERS > 1).float(), task=TASK)
    assert class_routing(network(), few).classes == ("below 250", "250 or more")
    equal = Split(X, torch.zeros(120, 1), task=TASK)
    assert class_routing(network(), equal).classes == ("all",)


@pytest.mark.parametrize(
    ("edges", "names"),
    [
        ([71.0, 104.5], ["below 71", "71 to 104", "104 or more"]),
        ([1.0, 1.00001], ["below 1", "1 to 1.00001", "1.00001 or more"]),
        ([-25_000.0, 1_250_000.0], ["below -25,000", "-25,000 to 1,250,000", "1,250,000 or more"]),
        ([1e-9], ["below 1e-09", "1e-09 or more"]),
    ],
)
def test_ranges_are_named_with_as_many_digits_as_they_need(edges: list[float], names: list[str]) -> None:
    assert _range_names(edges) == names


def test_routing_by_label_compares_the_samples_that_have_it_with_all() -> None:
    model = network(2)
    routing = class_routing(model, Split(X, LABELS, task=Task("multilabel", ("red", "blue"))))
    assert routing.grouped_by == "label"
    assert routing.classes == ("red", "blue")
    assert routing.counts.tolist() == LABELS.sum(0).int().tolist()
    for label in range(2):  # as if having the label were one of two classes
        single = class_routing(model, Split(X, LABELS[:, label].long()))
        for layer in range(3):
            assert routing.mean[layer] == pytest.approx(single.mean[layer])
            assert routing.difference[layer][label] == pytest.approx(single.difference[layer][1])
            assert routing.standard_error[layer][label] == pytest.approx(single.standard_error[layer][1])
    with pytest.raises(UserError, match="2 labels, but there are 3 names"):
        class_routing(model, (X, LABELS), ["a", "b", "c"], objective=MultiLabel())


def test_the_standard_error_of_overlapping_groups_is_that_of_random_membership() -> None:
    """Labels drawn at random have differences of about one standard error."""
    random = torch.Generator().manual_seed(3)
    labels = (torch.rand(120, 30, generator=random) < 0.3).float()
    routing = class_routing(network(30), Split(X, labels, task=Task("multilabel", tuple(map(str, range(30))))))
    ratio = np.concatenate([(d / e).ravel() for d, e in zip(routing.difference, routing.standard_error, strict=True)])
    assert 0.8 < ratio.std() < 1.2
    assert routing.significant < 0.05


def test_routing_of_several_targets_has_ranges_of_each() -> None:
    task = Task("regression", ("a", "b"), mean=(0.0, 10.0), deviation=(1.0, 2.0))
    routing = class_routing(network(2), Split(X, torch.cat([NUMBERS, X[:, 2:3]], 1), task=task))
    assert len(routing.classes) == 10
    assert routing.classes[0].startswith("a: below")
    assert routing.classes[9].startswith("b: ")
    assert routing.counts.tolist() == [24] * 10


def test_results_of_earlier_versions_have_accuracies(tmp_path: Path) -> None:
    error = np.array([0.1, 0.2])
    lesions = LesionStudy(("a", "b"), "test", 10, Score(1.0, 0.1), error, error)
    greedy = GreedyLesion(("a", "b"), "test", 10, (0, 1), error, error)
    for result in (lesions, greedy):
        save_result(result, tmp_path / "new.npz")
        with np.load(tmp_path / "new.npz", allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(str(arrays["verydeep"]))
        header.pop("sha256")
        header["result"].pop("measure", None)
        header["result"].get("baseline", {}).pop("measure", None)
        arrays["verydeep"] = np.array(json.dumps(header))
        np.savez(tmp_path / "old.npz", **arrays)
        assert load_result(tmp_path / "old.npz").measure == "accuracy"
    numbers = replace(greedy, measure="r2")
    save_result(numbers, tmp_path / "new.npz")
    assert load_result(tmp_path / "new.npz", GreedyLesion).measure == "r2"
