"""Cross-validation: each seed of a group holds out its own fold."""

from dataclasses import replace
from pathlib import Path

import pytest

from verydeep.cli import main
from verydeep.data import DataConfig
from verydeep.errors import UserError
from verydeep.studies import Group, Seeds, start_study, train_seeds, work
from verydeep.training import ModelConfig, OptimConfig, Run, TrainConfig, complete_config, hold_out_validation, train

CONFIG = TrainConfig(
    DataConfig("digits", folds=3),
    ModelConfig(depth=2, width=4),
    OptimConfig(lr=0.1),
    epochs=1,
    batch_size=200,
    threads=1,
)


def weights(path: Path) -> bytes:
    return (path / "model.safetensors").read_bytes()


def test_each_seed_holds_out_its_own_fold_with_the_bits_of_a_single_run(tmp_path: Path) -> None:
    study = start_study(tmp_path / "study", [Group("", CONFIG, seeds=(2, 3, 4))])
    assert study.metric == "valid_accuracy"
    assert work(study)
    folds = {seed: Run.load(tmp_path / "study" / f"seed-{seed}").config.data.fold for seed in (2, 3, 4)}
    assert folds == {2: 2, 3: 0, 4: 1}
    train(replace(CONFIG, seed=4, data=replace(CONFIG.data, fold=1)), tmp_path / "alone")
    assert weights(tmp_path / "study" / "seed-4") == weights(tmp_path / "alone")


def test_a_study_without_folds_trains_every_seed_on_the_same_samples(tmp_path: Path) -> None:
    config = replace(CONFIG, data=DataConfig("digits", validation=0.2))
    study = start_study(tmp_path / "study", [Group("", config, seeds=(0, 1))])
    assert work(study)
    assert {Run.load(tmp_path / "study" / f"seed-{seed}").config.data for seed in (0, 1)} == {config.data}


def test_a_cross_validation_of_a_table_is_summarised_by_its_folds_and_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{i % 7},{i % 5},{'ab'[i % 2]}" for i in range(60)]
    Path("table.csv").write_text("\n".join(["size,age,class", *rows]))
    command = ["train", "table.csv", "--folds", "2", "--seeds", "2", "--epochs", "1", "--folder", "runs/two", "--quiet"]
    assert main([*command, "--jobs", "1"]) == 0
    seeds = Seeds.load("runs/two")
    assert seeds.summary is not None
    assert seeds.summary["measure"] == "valid_accuracy"
    assert "over 2 runs, each with one of 2 folds held out; everything is in runs/two" in seeds.describe()
    assert main([*command, "--continue"]) == 0
    assert main(["train", "--resume", "runs/two", "--epochs", "2", "--jobs", "1", "--quiet"]) == 0
    assert [run.summary.epochs for run in seeds.runs.values() if run.summary] == [2, 2]
    assert [run.config.data.fold for run in seeds.runs.values()] == [0, 1]
    capsys.readouterr()
    assert main([*command[:3], "3", *command[4:], "--continue"]) == 2
    assert "data.folds" in capsys.readouterr().err


def test_seeds_choose_their_fold_themselves(tmp_path: Path) -> None:
    config = replace(CONFIG, data=replace(CONFIG.data, fold=1))
    with pytest.raises(UserError, match="each holds out its own fold"):
        train_seeds(config, 3, tmp_path / "seeds")
    assert not (tmp_path / "seeds").exists()


def test_folds_are_validation_data_wherever_one_asks_for_it() -> None:
    data = DataConfig("table.csv", folds=5)
    assert hold_out_validation(data) == data
    assert data.names_validation
    assert complete_config(CONFIG).data == CONFIG.data
    assert not DataConfig("digits", validation=0).names_validation
