"""Every task is trained, measured, selected by any metric, and resumed to the same bits."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.training.conftest import Configure
from torch import Tensor

from verydeep.data import DataConfig, Dataset, Split, Task
from verydeep.errors import UserError
from verydeep.objectives import Metric, Objective
from verydeep.training import (
    ModelConfig,
    OptimConfig,
    Run,
    ScheduleConfig,
    TrainConfig,
    TrainingProgress,
    evaluate,
    resume,
    train,
)


@pytest.fixture
def configure() -> Configure:
    """A configuration that trains in a moment, with some fields changed; what is not given is chosen for the data."""

    def make(**changes: Any) -> TrainConfig:
        model, optim = ModelConfig("highway-mlp", depth=3, width=6), OptimConfig("sgd", lr=0.1, weight_decay=0.0)
        plain = TrainConfig(DataConfig("own"), model, optim, ScheduleConfig("constant"), epochs=2, batch_size=10)
        return replace(plain, **{"patience": 0, "threads": 1, "checkpoint_every": 0.0, **changes})

    return make


TASKS = {
    "regression": Task("regression", ("price", "area"), (100.0, 5.0), (20.0, 1.0)),
    "multilabel": Task("multilabel", ("red", "big", "old")),
    "classification": Task("classification", ("a", "b", "c")),
}


def data_for(kind: str) -> Dataset:
    random = torch.Generator().manual_seed(0)
    task = TASKS[kind]
    mix = torch.randn(6, task.outputs, generator=random)

    def split(samples: int) -> Split:
        x = torch.randn(samples, 6, generator=random)
        signal = (x @ mix).tanh() + 0.1 * torch.randn(samples, task.outputs, generator=random)
        y = {"regression": signal, "multilabel": (signal > 0).float(), "classification": signal.argmax(1)}[kind]
        return Split(x, y, task=task)

    classes = task.names if kind == "classification" else ()
    return Dataset(kind, split(200), split(60), split(60), classes, task=task)


class Stop(TrainingProgress):
    def __init__(self, after: int) -> None:
        self.left = after

    def step(self, *_: object) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def outcome(run: Run) -> list[Any]:
    lines = [replace(line, seconds=0.0) for line in run.metrics]
    summary = run.summary
    assert summary is not None
    assert summary.best is not None
    weights = {name: value.tolist() for name, value in run.model.state_dict().items()}
    return [lines, replace(summary.best, seconds=0.0), weights]


@pytest.mark.parametrize("kind", list(TASKS))
def test_a_task_is_learnt_and_resumed_to_the_same_bits(kind: str, configure: Configure, tmp_path: Path) -> None:
    data = data_for(kind)
    config = configure(epochs=6, evaluate_test="end", metric="loss")
    whole = train(config, tmp_path / "whole", dataset=data)
    measured, first = whole.measured, whole.metrics[0]
    assert measured is not None
    score = f"valid_{whole.measure}"
    assert whole.measure == ("r2" if kind == "regression" else "accuracy")
    assert (measured.get(score) or 0) > max(first.get(score) or 0, 0.5)
    assert measured.get(f"test_{whole.measure}") == evaluate(whole.model, data.test).score
    assert first.get(f"test_{whole.measure}") is None  # only at the end
    assert whole.model(data.test.x).shape == (60, data.task.outputs)
    for after in (7, 33):
        path = tmp_path / f"stopped-{after}"
        with pytest.raises(KeyboardInterrupt):
            train(config, path, dataset=data, progress=Stop(after))
        assert outcome(resume(path, dataset=data)) == outcome(whole)


def test_the_test_at_the_end_is_measured_without_validation_data(configure: Configure, tmp_path: Path) -> None:
    data = replace(data_for("regression"), valid=None)
    run = train(configure(evaluate_test="end"), tmp_path / "run", dataset=data)
    assert run.measured is not None
    assert run.measured.get("test_r2") == evaluate(run.model, data.test).score


def test_a_run_that_diverges_is_tested_with_its_best_weights(configure: Configure, tmp_path: Path) -> None:
    data = data_for("classification")

    class Explode(TrainingProgress):
        """Spoils the network before its last epoch."""

        def epoch(self, metrics: Any) -> None:
            if metrics.epoch == 1:
                with torch.no_grad():
                    for parameter in network.parameters():
                        parameter.mul_(1e6)

    network = torch.nn.Sequential(torch.nn.Linear(data.train.x.shape[1], data.task.outputs))
    run = train(configure(evaluate_test="end"), tmp_path / "run", model=network, dataset=data, progress=Explode())
    assert run.summary is not None
    assert run.summary.status == "diverged"
    assert run.measured is not None
    assert run.measured.epoch == 1
    assert run.measured.test_accuracy is not None


@pytest.mark.parametrize("loss", ["squared", "huber", "absolute"])
def test_losses_of_a_regression(loss: Any, configure: Configure, tmp_path: Path) -> None:
    data = data_for("regression")
    run = train(configure(loss=loss), tmp_path / "run", dataset=data)
    with torch.no_grad():
        outputs = run.model(data.test.x)
    functions: dict[str, Any] = {"squared": F.mse_loss, "huber": F.huber_loss, "absolute": F.l1_loss}
    assert run.measured is not None
    assert run.measured.test_loss == pytest.approx(float(functions[loss](outputs, data.test.y)), rel=1e-5)


@pytest.mark.parametrize("kind", ["regression", "multilabel"])
def test_the_fused_step_gives_the_bits_of_autograd(
    kind: str, configure: Configure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verydeep.training._trainer.make_kernel_steps", lambda *_: None)
    fused = train(configure(), tmp_path / "fused", dataset=data_for(kind))
    monkeypatch.setattr("verydeep.models.MLP._can_backpropagate_fused", lambda *_: False)
    plain = train(configure(), tmp_path / "plain", dataset=data_for(kind))
    assert [(line.loss, line.extra) for line in fused.metrics] == [(line.loss, line.extra) for line in plain.metrics]


@pytest.mark.parametrize(
    ("kind", "metric", "higher"),
    [
        ("classification", "balanced_accuracy", True),
        ("classification", "log_loss", False),
        ("multilabel", "roc_auc", True),
        ("regression", "mae", False),
        ("regression", "r2", True),
        ("classification", "loss", False),
    ],
)
def test_any_metric_selects_the_best_epoch(
    kind: str, metric: str, higher: bool, configure: Configure, tmp_path: Path
) -> None:
    run = train(configure(epochs=5, metric=metric), tmp_path / "run", dataset=data_for(kind))
    values = [line.get(f"valid_{metric}") for line in run.metrics]
    assert all(value is not None for value in values)
    best = int((np.argmax if higher else np.argmin)(np.array(values, float))) + 1
    assert run.summary is not None
    assert run.summary.best is not None
    assert run.summary.best.epoch == best
    assert Run.load(run.path).selection.metric == metric


def test_patience_follows_the_metric(configure: Configure, tmp_path: Path) -> None:
    config = configure(epochs=50, patience=3, metric="mae")
    run = train(config, tmp_path / "run", dataset=data_for("regression"))
    values = [line.get("valid_mae") for line in run.metrics]
    assert run.summary is not None
    assert run.summary.status == "stopped early" or len(values) == 50
    if run.summary.status == "stopped early":
        assert len(values) - (int(np.argmin(np.array(values, float))) + 1) == 3


class Cubic(Objective):
    """Somebody's own objective."""

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        return (outputs - y).abs().pow(3).sum()

    def answer(self, outputs: Tensor) -> Tensor:
        return outputs

    def count_correct(self, outputs: Tensor, y: Tensor) -> Tensor:
        return ((outputs - y).abs() < 0.5).all(1).sum()

    def check(self, outputs: Tensor, y: Tensor) -> None:
        assert outputs.shape == y.shape


def test_an_objective_and_metrics_of_ones_own(configure: Configure, tmp_path: Path) -> None:
    data = data_for("regression")
    worst = Metric("worst", lambda y, p: float(np.abs(y - p).max()), higher_is_better=False)
    config = configure(epochs=4, metric="worst")
    run = train(config, tmp_path / "run", dataset=data, objective=Cubic(), metrics=[worst])
    values = [line.get("valid_worst") for line in run.metrics]
    assert run.summary is not None
    assert run.summary.best is not None
    assert run.summary.best.epoch == int(np.argmin(np.array(values, float))) + 1
    assert not Run.load(run.path).selection.higher_is_better
    with pytest.raises(UserError, match="with an objective given in Python"):
        resume(run.path, epochs=5, dataset=data)
    again = resume(run.path, epochs=5, dataset=data, objective=Cubic(), metrics=[worst])
    assert len(again.metrics) == 5


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        ("classification", {"loss": "huber"}, "loss is for regression, but this is a classification task"),
        ("regression", {"label_smoothing": 0.1}, "label_smoothing is for classification"),
        ("regression", {"class_weight": ("balanced",)}, "class_weight is for classes and labels"),
        ("regression", {"metric": "f1"}, "unknown metric for regression 'f1'"),
        ("classification", {"class_weight": ("a=1", "b=2")}, "class_weight has no weight for 'c'"),
        ("classification", {"class_weight": ("d=1",)}, "'d' is not one of 'a', 'b', 'c'"),
        ("classification", {"class_weight": ("a=-1",)}, "neither 'balanced' nor a class and its weight"),
        ("regression", {"model": ModelConfig("resnet-110")}, "takes images"),
    ],
)
def test_settings_that_do_not_suit_the_task_are_refused(
    kind: str, changes: dict[str, Any], words: str, configure: Configure, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as error:
        train(configure(**changes), tmp_path / "run", dataset=data_for(kind))
    assert words in str(error.value)
    assert not (tmp_path / "run").exists()


def test_weights_of_classes_change_training_but_not_what_is_reported(configure: Configure, tmp_path: Path) -> None:
    data = data_for("classification")
    given = train(configure(class_weight={"a": 1, "b": 1.0, "c": 1}), tmp_path / "ones", dataset=data)
    plain = train(configure(), tmp_path / "plain", dataset=data)
    heavy = train(configure(class_weight="balanced"), tmp_path / "balanced", dataset=data)
    assert [line.valid_loss for line in given.metrics] == pytest.approx([line.valid_loss for line in plain.metrics])
    assert heavy.metrics[-1].valid_loss != plain.metrics[-1].valid_loss
    assert heavy.measured is not None
    assert heavy.measured.valid_loss == pytest.approx(evaluate(heavy.model, data.valid or data.test).loss)


def test_a_run_without_a_task_is_classification(configure: Configure, tmp_path: Path) -> None:
    run = train(configure(), tmp_path / "run", dataset=data_for("classification"))
    saved = json.loads((run.path / "data.json").read_text())
    del saved["task"]
    (run.path / "data.json").write_text(json.dumps(saved))
    config = json.loads((run.path / "config.json").read_text())
    del config["measure"], config["lower_is_better"], config["chosen"], config["training"]["metric"]
    (run.path / "config.json").write_text(json.dumps(config))
    old = Run.load(run.path)
    assert (old.measure, old.selection.metric, old.selection.higher_is_better) == ("accuracy", "accuracy", True)
    assert isinstance(old.config, TrainConfig)
