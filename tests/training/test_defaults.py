"""Settings that are not given: the paper's for its datasets, and for your own data settings that suit its size."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from verydeep.data import DataConfig, Dataset, Split, Task
from verydeep.training import ModelConfig, OptimConfig, ScheduleConfig, TrainConfig, train
from verydeep.training._defaults import choose_settings, paper_settings


def table(rows: int, task: str = "classification", validated: bool = True, shape: tuple[int, ...] = (4,)) -> Dataset:
    """A dataset of any size: its rows are all the same one, so that it takes no memory."""
    names = ("a", "b")
    scale = ((0.0, 0.0), (1.0, 1.0)) if task == "regression" else ((), ())
    y = torch.zeros(1, dtype=torch.int64) if task == "classification" else torch.zeros(1, 2)
    kind: Any = task

    def split(count: int) -> Split:
        return Split(torch.zeros(1, *shape).expand(count, *shape), y.expand(count, *y.shape[1:]))

    classes = names if task == "classification" else ()
    return Dataset(
        "own", split(rows), split(5) if validated else None, split(5), classes, None, Task(kind, names, *scale)
    )


def chosen(rows: int, config: TrainConfig | None = None, **options: Any) -> TrainConfig:
    return choose_settings(config or TrainConfig(DataConfig("own.csv")), table(rows, **options))


@pytest.mark.parametrize(
    ("rows", "batch_size", "epochs", "patience", "lr", "weight_decay"),
    [
        (20, 32, 1000, 333, 0.02, 0.05),
        (150, 32, 200, 67, 0.0245, 0.0133),
        (2000, 32, 28, 9, 0.0894, 0.001),
        (100_000, 333, 33, 11, 0.1, 0.00002),
        (5_000_000, 1000, 2, 1, 0.1, 0.0000004),
    ],
)
def test_training_is_counted_in_updates(
    rows: int, batch_size: int, epochs: int, patience: int, lr: float, weight_decay: float
) -> None:
    config = chosen(rows)
    assert (config.batch_size, config.epochs, config.patience) == (batch_size, epochs, patience)
    assert (config.optim.lr, config.optim.weight_decay) == pytest.approx((lr, weight_decay), rel=0.01)
    assert replace(config.optim, lr=0.1, weight_decay=0.0) == OptimConfig("sgd", lr=0.1, weight_decay=0.0)
    assert config.schedule == ScheduleConfig("one-cycle")
    assert config.model == ModelConfig("highway-mlp", depth=10)
    assert (config.metric, config.evaluate_test) == ("loss", "end")


@pytest.mark.parametrize("rows", [150, 1438, 100_000])
def test_residual_layers_learn_slowly(rows: int) -> None:
    residual = TrainConfig(DataConfig("own.csv"), ModelConfig("residual-mlp"))
    assert chosen(rows, residual).optim.lr == 0.01
    assert chosen(rows, replace(residual, optim=OptimConfig(lr=0.05))).optim.lr == 0.05
    assert choose_settings(replace(residual, data=DataConfig("digits")), table(rows)).optim.lr == 0.01
    assert chosen(rows, replace(residual, optim=OptimConfig("adam"))).optim.lr == 0.002


def test_numbers_need_more_weight_decay_than_classes() -> None:
    decays = {
        task: chosen(1000, task=task).optim.weight_decay for task in ("classification", "multilabel", "regression")
    }
    assert decays == {"classification": 0.002, "multilabel": 0.002, "regression": 0.005}


def test_images_get_a_convolutional_network() -> None:
    config = chosen(500, shape=(3, 8, 8))
    assert config.model == ModelConfig("highway-conv")
    assert config.optim == OptimConfig("muon", lr=0.01, weight_decay=0.1)
    assert chosen(500, replace(config, model=ModelConfig("plain-mlp")), shape=(3, 8, 8)).model.depth == 10


def test_what_is_given_is_kept_and_changes_nothing_else() -> None:
    free = chosen(150)
    for given in (
        {"epochs": 7},
        {"metric": "accuracy"},
        {"evaluate_test": "epoch"},
        {"patience": 0},
        {"model": ModelConfig("highway-mlp", depth=50)},
        {"optim": OptimConfig("sgd", lr=0.3, weight_decay=0.0)},
        {"schedule": ScheduleConfig("constant")},
    ):
        config = TrainConfig(DataConfig("own.csv"), **given)
        assert chosen(150, config) == replace(free, **given)
    larger = chosen(150, TrainConfig(DataConfig("own.csv"), batch_size=75))
    assert (larger.batch_size, larger.epochs, larger.patience) == (75, 500, 167)  # as many updates


@pytest.mark.parametrize(("name", "lr"), [("sgd", 0.02), ("adam", 0.002), ("muon", 0.01)])
def test_every_optimiser_has_its_rate(name: Any, lr: float) -> None:
    assert chosen(50, TrainConfig(DataConfig("own.csv"), optim=OptimConfig(name))).optim.lr == lr


def test_balanced_classes_are_selected_by_balanced_accuracy_and_trained_in_small_steps() -> None:
    balanced = TrainConfig(DataConfig("own.csv"), class_weight=("balanced",))
    assert chosen(10_000, balanced).optim.lr == 0.02
    assert chosen(150, balanced).metric == "balanced_accuracy"
    assert chosen(150, balanced, task="multilabel").metric == "loss"
    assert chosen(150, replace(balanced, metric="f1")).metric == "f1"


def test_without_validation_data_there_is_no_early_stopping() -> None:
    assert chosen(150, validated=False).patience is None


def test_choosing_twice_changes_nothing() -> None:
    assert chosen(150, chosen(150)) == chosen(150)


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "cifar10", "cifar100"])
def test_the_papers_datasets_keep_their_settings(name: str) -> None:
    config = choose_settings(TrainConfig(DataConfig(name)), table(50_000))
    assert config == paper_settings(TrainConfig(DataConfig(name)))
    assert (config.epochs, config.batch_size, config.evaluate_test, config.patience) == (10, 100, "epoch", None)
    assert config.optim == OptimConfig("sgd", lr=0.01, weight_decay=0.0)
    assert config.schedule == ScheduleConfig("constant")


def test_digits_are_a_known_dataset_of_the_size_of_a_table() -> None:
    config = choose_settings(TrainConfig(DataConfig("digits")), table(1438, shape=(1, 8, 8)))
    assert (config.epochs, config.batch_size) == (34, 32)
    assert config.optim.lr == pytest.approx(0.0758, rel=0.01)
    known = paper_settings(TrainConfig(DataConfig("digits")))
    assert (config.model, config.schedule, config.evaluate_test) == (known.model, known.schedule, "epoch")


def test_data_given_in_python_is_your_own_whatever_the_configuration_names() -> None:
    own = choose_settings(TrainConfig(DataConfig("mnist")), table(150), user_supplied=True)
    assert own == replace(chosen(150), data=DataConfig("mnist"))


def test_patience_of_zero_trains_to_the_end(tmp_path: Path, tiny: Dataset, configure: Any) -> None:
    run = train(configure(epochs=3, patience=0, optim=OptimConfig(lr=1e-30)), tmp_path / "run", dataset=tiny)
    assert run.summary is not None
    assert (run.summary.status, run.summary.epochs) == ("finished", 3)
