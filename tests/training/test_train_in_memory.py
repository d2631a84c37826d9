"""Training without a folder is the same training."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from verydeep.data import DataConfig, Dataset, load_dataset
from verydeep.errors import UserError
from verydeep.training import ModelConfig, OptimConfig, ScheduleConfig, TrainConfig, train, train_in_memory

CONFIG = TrainConfig(
    DataConfig("digits", validation=0.2),
    ModelConfig("highway-mlp", depth=3, width=8),
    OptimConfig(lr=0.2),
    ScheduleConfig("constant"),
    epochs=3,
    batch_size=100,
    metric="loss",
    evaluate_test="never",
)


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load_dataset(CONFIG.data)


def test_weights_and_metrics_are_those_of_a_run(digits: Dataset, tmp_path: Path) -> None:
    run = train(CONFIG, tmp_path / "run", dataset=digits, progress=False)
    trained = train_in_memory(CONFIG, digits)
    assert replace(trained.config, threads=None) == replace(run.config, threads=None)
    assert trained.status == "finished"
    assert [replace(line, seconds=0.0) for line in trained.metrics] == [
        replace(line, seconds=0.0) for line in run.metrics
    ]
    saved = run.model.state_dict()
    assert all(torch.equal(value, saved[name]) for name, value in trained.model.state_dict().items())


def test_it_leaves_no_files_and_the_process_as_it_was(
    digits: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    random, threads = torch.get_rng_state(), torch.get_num_threads()
    train_in_memory(replace(CONFIG, epochs=1), digits)
    assert list(tmp_path.iterdir()) == []
    assert torch.equal(torch.get_rng_state(), random)
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("optimiser", ["sgd", "adam", "muon"])
def test_it_continues_where_it_stopped(digits: Dataset, optimiser: str) -> None:
    config = replace(CONFIG, optim=OptimConfig(optimiser, lr=0.01))  # type: ignore[arg-type]
    last = replace(digits, valid=None)
    whole = train_in_memory(config, last)
    half = train_in_memory(replace(config, epochs=1), last)
    rest = train_in_memory(config, last, model=half.model, start=half.state)
    assert half.state.epochs == 1
    assert [line.epoch for line in rest.metrics] == [2, 3]
    expected = whole.model.state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in rest.model.state_dict().items())


def test_patience_stops_it_and_zero_does_not(digits: Dataset) -> None:
    still = replace(CONFIG, optim=OptimConfig(lr=1e-12), epochs=5)
    assert train_in_memory(replace(still, patience=2, metric="accuracy"), digits).status == "stopped early"
    endless = train_in_memory(replace(still, patience=0, metric="accuracy"), digits)
    assert endless.status == "finished"
    assert len(endless.metrics) == 5


def test_divergence_in_the_first_epoch_is_an_error(digits: Dataset) -> None:
    with pytest.raises(UserError, match="use a lower learning rate than 1e\\+20"):
        train_in_memory(replace(CONFIG, optim=OptimConfig(lr=1e20)), digits)
