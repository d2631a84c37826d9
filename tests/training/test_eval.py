import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from verydeep.cli import main
from verydeep.data import DataConfig, Dataset, load_dataset
from verydeep.errors import UserError
from verydeep.training import Confusion, Interrupted, Run, TrainConfig, TrainingProgress, confusion, load_data, train

Configure = Callable[..., TrainConfig]


@pytest.fixture
def digits(tmp_path: Path, configure: Configure) -> Run:
    """A run on the embedded digits."""
    return train(configure(data=DataConfig("digits", validation=0.1)), tmp_path / "digits")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two classes of flowers; the columns must be standardised, and one has categories."""
    rows = [
        f"{100 + i % 7 + 10 * (i % 2)},{'red' if i % 3 else 'blue'},{'rose' if i % 2 else 'tulip'}" for i in range(60)
    ]
    path = tmp_path / "flowers.csv"
    path.write_text("size,colour,label\n" + "\n".join(rows) + "\n")
    return path


def evaluated(*arguments: str | Path, folder: Path) -> dict[str, Any]:
    assert main(["eval", *map(str, arguments), "--out", str(folder)]) == 0
    return dict(json.loads((folder / "evaluation.json").read_text()))


def test_the_confusion_matrix_counts_every_sample_by_its_class_and_its_answer(tiny: Dataset) -> None:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
    found = confusion(model, tiny.test, tiny.classes)
    logits = model(tiny.test.x)
    expected = torch.zeros(3, 3, dtype=torch.int64)
    for y, answer in zip(tiny.test.y, logits.argmax(1), strict=True):
        expected[y, answer] += 1
    assert torch.equal(found.counts, expected)
    assert found.loss == pytest.approx(F.cross_entropy(logits, tiny.test.y).item(), rel=1e-6)
    assert found.accuracy == pytest.approx((logits.argmax(1) == tiny.test.y).double().mean().item())


def test_mistakes_are_sorted_by_how_often_they_are_made() -> None:
    counts = torch.tensor([[5, 1, 0], [4, 9, 2], [0, 0, 7]])
    found = Confusion(("a", "b", "c"), counts, 0.0)
    assert found.mistakes() == [("b", "a", 4), ("b", "c", 2), ("a", "b", 1)]
    assert found.class_accuracy == [5 / 6, 9 / 15, 1.0]


@pytest.mark.parametrize("split", ["test", "valid"])
def test_eval_measures_what_training_measured(digits: Run, tmp_path: Path, split: str) -> None:
    result = evaluated(digits.path, "--split", split, folder=tmp_path / "out")
    assert result["loss"] == pytest.approx(getattr(digits.measured, f"{split}_loss"), rel=1e-6)
    assert result["accuracy"] == getattr(digits.measured, f"{split}_accuracy")
    assert sum(map(sum, result["confusion"])) == result["samples"]


def test_eval_writes_pictures_into_the_run_and_prints_every_class(
    digits: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", str(digits.path)]) == 0
    folder = digits.path / "eval" / "digits-test"
    figures = {f"{name}.{suffix}" for name in ("confusion", "calibration") for suffix in ("png", "svg")}
    assert {path.name for path in folder.iterdir()} == {"evaluation.json", *figures}
    printed = capsys.readouterr().out
    assert "359 samples of digits (test set): loss" in printed
    table, _, metrics = printed.partition("metric")
    assert table.count("%") == 10
    assert "balanced accuracy" in metrics
    assert "would be correct for 10.31%" in metrics


def test_eval_prints_json_when_asked(digits: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", str(digits.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["samples"] == 359


@pytest.mark.slow
def test_the_same_set_by_name_gives_the_same_answers(digits: Run, tmp_path: Path) -> None:
    own = evaluated(digits.path, folder=tmp_path / "own")
    named = evaluated(digits.path, "--data", "digits", folder=tmp_path / "named")
    assert own["confusion"] == named["confusion"]


def test_other_tables_are_prepared_as_the_training_table_was(table: Path, tmp_path: Path, configure: Configure) -> None:
    run = train(configure(data=DataConfig(str(table), validation=0)), tmp_path / "run")
    header, *rows = table.read_text().splitlines()
    wanted = load_dataset(str(table)).preparation
    few = tmp_path / "few.csv"
    few.write_text("\n".join([header, *rows[:3]]) + "\n")  # their own mean is another one
    x = load_data(run, str(few)).x
    mean, deviation = (getattr(wanted.numbers[0], name) for name in ("mean", "deviation"))  # type: ignore[union-attr]
    sizes = torch.tensor([float(row.split(",")[0]) for row in rows[:3]])
    torch.testing.assert_close(x[:, 0], ((sizes.double() - mean) / deviation).float())


def test_a_column_without_a_name_is_no_concern_of_other_tables(
    table: Path, tmp_path: Path, configure: Configure
) -> None:
    header, *rows = table.read_text().splitlines()
    numbered = tmp_path / "numbered.csv"
    numbered.write_text("\n".join([f",{header}", *(f"{i},{row}" for i, row in enumerate(rows))]) + "\n")
    with_it = train(configure(data=DataConfig(str(numbered), ignore=("",))), tmp_path / "with")
    without = train(configure(data=DataConfig(str(table))), tmp_path / "without")
    assert torch.equal(load_data(with_it, str(table)).x, load_data(without, str(numbered)).x)


@pytest.mark.slow
def test_other_data_never_takes_the_place_of_the_runs_own_result(
    table: Path, tmp_path: Path, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = train(configure(data=DataConfig(str(table), validation=0)), tmp_path / "run")
    for folder in ("new", "newer"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "flowers.csv").write_text(table.read_text())
    parted = tmp_path / "split"
    parted.mkdir()
    for role in ("train", "test"):
        (parted / f"{role}.csv").write_text(table.read_text())
    monkeypatch.chdir(parted)
    for data in ((), *(("--data", str(path)) for path in ("../new/flowers.csv", "../newer/flowers.csv", "."))):
        assert main(["eval", str(run.path), *data]) == 0
    results = [json.loads(file.read_text()) for file in run.path.glob("eval/*/evaluation.json")]
    found = sorted((result["data"], result["split"] or "", result["samples"]) for result in results)
    assert found == [("flowers", "test", 12), ("flowers.csv", "", 60), ("flowers.csv", "", 60), ("split/", "test", 60)]
    assert json.loads((run.path / "eval/flowers-test/evaluation.json").read_text())["samples"] == 12


def test_classes_are_matched_by_name(table: Path, tmp_path: Path, configure: Configure) -> None:
    run = train(configure(data=DataConfig(str(table), validation=0)), tmp_path / "run")
    only = tmp_path / "tulips.csv"
    only.write_text("label,size,colour\ntulip,104,blue\ntulip,101,red\n")
    assert load_data(run, str(only)).y.tolist() == [1, 1]  # by itself it would be class 0


def test_other_images_are_prepared_with_the_mean_of_the_training_images(tmp_path: Path, configure: Configure) -> None:
    random = np.random.default_rng(0)
    x = random.integers(0, 255, (20, 8, 8, 3), dtype=np.uint8)
    np.savez(tmp_path / "train.npz", x=x, y=np.arange(20) % 2)
    np.savez(tmp_path / "new.npz", x=x[:5], y=np.arange(5) % 2)
    run = train(configure(data=DataConfig(str(tmp_path / "train.npz"))), tmp_path / "run")
    trained = load_dataset(run.config.data)
    new = load_data(run, str(tmp_path / "new.npz")).x
    every = torch.cat([trained.train.x, trained.test.x])
    assert all(any(torch.equal(sample, other) for other in every) for sample in new)


def test_a_split_that_the_other_data_has_is_used(digits: Run, tmp_path: Path) -> None:
    raw = np.zeros((6, 8, 8), dtype=np.uint8)
    np.savez(tmp_path / "new.npz", x_train=raw, y_train=np.arange(6), x_test=raw[:2], y_test=np.arange(2))
    assert len(load_data(digits, str(tmp_path / "new.npz"))) == 2
    assert len(load_data(digits, str(tmp_path / "new.npz"), "train")) == 6
    with pytest.raises(UserError, match="has no valid split, only train, test"):
        load_data(digits, str(tmp_path / "new.npz"), "valid")


def test_what_does_not_fit_is_refused_in_one_line(
    digits: Run, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "large.npz", x=np.zeros((4, 9, 9), dtype=np.uint8), y=np.arange(4))
    np.savez(tmp_path / "classes.npz", x=np.zeros((4, 8, 8), dtype=np.uint8), y=np.arange(4) + 8)
    cases = {
        "large.npz": "samples have shape (1, 9, 9), the training data has (1, 8, 8)",
        "classes.npz": "class '10' does not occur in the training data",
        "flowers.csv": "is a table, but the network was trained on samples of shape (1, 8, 8)",
        "nothing.npz": "no such file or folder",
    }
    for name, message in cases.items():
        assert main(["eval", str(digits.path), "--data", str(tmp_path / name)]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
    assert not (digits.path / "eval").exists()


def test_a_table_is_asked_for_when_a_table_was_trained_on(table: Path, tmp_path: Path, configure: Configure) -> None:
    run = train(configure(data=DataConfig(str(table), validation=0)), tmp_path / "run")
    np.savez(tmp_path / "a.npz", x=np.zeros((4, 3)), y=np.arange(4))
    with pytest.raises(UserError, match="is not a table; the network was trained on a table with the columns 'size'"):
        load_data(run, str(tmp_path / "a.npz"))


def test_runs_that_are_not_there_or_have_no_weights_are_refused(
    tmp_path: Path, configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", str(tmp_path / "none")]) == 2
    assert "there is no run" in capsys.readouterr().err

    class Stop(TrainingProgress):
        def step(self, *_: object) -> None:
            raise KeyboardInterrupt

    with pytest.raises((KeyboardInterrupt, Interrupted)):
        train(configure(), tmp_path / "early", progress=Stop())
    assert main(["eval", str(tmp_path / "early")]) == 2
    error = capsys.readouterr().err
    assert "has no weights yet: no epoch is complete" in error
    assert error.count("\n") == 1


def test_data_that_has_changed_since_training_is_noticed(table: Path, tmp_path: Path, configure: Configure) -> None:
    run = train(configure(data=DataConfig(str(table), validation=0)), tmp_path / "run")
    table.write_text(table.read_text() + "104,red,rose\n" * 10)
    with pytest.raises(UserError, match=r"has changed since .* \(train 48, now 56"):
        load_data(run)
    assert len(load_data(run, str(table))) == 70


def test_data_given_in_python_must_be_named(tiny: Dataset, tmp_path: Path, configure: Configure) -> None:
    run = train(configure(), tmp_path / "run", dataset=tiny)
    with pytest.raises(UserError, match="was trained on data given in Python"):
        load_data(run)
    with pytest.raises(UserError, match="it cannot prepare digits"):
        load_data(run, "digits")


@pytest.mark.slow
def test_data_whose_name_is_not_utf8_is_trained_on_listed_and_evaluated(
    table: Path, tmp_path: Path, configure: Configure, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = table.rename(table.with_name(os.fsdecode(b"caf\xe9.csv")))
    train(configure(data=DataConfig(str(path))), tmp_path / "run")
    for command, shown in ((["runs", "."], b"caf\xe9"), (["eval", "run", "--data", str(path)], b"caf?.csv")):
        done = subprocess.run(
            [sys.executable, "-m", "verydeep", *command], cwd=tmp_path, capture_output=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert shown in done.stdout
    assert main(["eval", str(tmp_path / "run")]) == 0
    assert json.loads(next(tmp_path.glob("run/eval/*-test/evaluation.json")).read_text())["data"] == path.stem
    assert main(["report", str(tmp_path / "run")]) == 0
    capsysbinary.readouterr()  # left there, the name would break what pytest's processes tell each other
