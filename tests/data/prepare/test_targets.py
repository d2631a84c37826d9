"""Which task a target is, and how it is encoded; what is wrong with it is said with its place."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from verydeep.data import Task, load_dataset
from verydeep.errors import UserError

RANDOM = np.random.default_rng(0)


def table(folder: Path, **targets: Any) -> Path:
    """A CSV file with two features and these columns."""
    rows = len(next(iter(targets.values())))
    columns = {"a": RANDOM.normal(size=rows).round(3), "b": RANDOM.normal(size=rows).round(3), **targets}
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path = folder / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["yes", "no"] * 20, "classification"),
        ([1, 2, 3, 4] * 10, "classification"),
        ([0.5, 1.5, 2.0, 7.25] * 10, "regression"),
        (list(range(100, 140)), "regression"),  # whole numbers, but many
        (list(range(20)) * 2, "classification"),
        (list(range(21)) * 2, "regression"),
        ([1.0, 2.0] * 20, "classification"),
    ],
)
def test_the_task_is_recognised_from_one_column(values: list[Any], kind: str, tmp_path: Path) -> None:
    task = load_dataset(table(tmp_path, y=values)).task
    assert (task.kind, task.target) == (kind, ("y",))


def test_several_columns_are_labels_or_numbers(tmp_path: Path) -> None:
    path = table(tmp_path, p=[0, 1, 1, 0] * 10, q=[1, 1, 0, 0] * 10, r=[0.5, 1, 2, 3] * 10)
    labels = load_dataset(path, target=("p", "q"), ignore=("r",))
    assert (labels.task.kind, labels.task.names, labels.classes) == ("multilabel", ("p", "q"), ())
    assert labels.train.y.dtype == torch.float32
    assert set(labels.train.y.unique().tolist()) == {0.0, 1.0}
    numbers = load_dataset(path, target=("p", "r"), ignore=("q",))
    assert (numbers.task.kind, numbers.task.names) == ("regression", ("p", "r"))


def test_the_task_can_be_given(tmp_path: Path) -> None:
    path = table(tmp_path, y=[1, 2, 3, 4] * 10)
    assert load_dataset(path, task="regression").task.kind == "regression"
    path = table(tmp_path, y=[0.5, 1.5] * 20)
    assert load_dataset(path, task="classification").classes == ("0.5", "1.5")


@pytest.mark.parametrize(
    ("y", "kind"),
    [
        (np.arange(200) % 100, "classification"),  # numbers of classes, as image datasets have them
        (np.arange(200) % 100 + 7, "regression"),
        (np.arange(200) / 7, "regression"),
        (np.arange(400).reshape(200, 2) % 2, "multilabel"),
        (np.arange(400).reshape(200, 2) / 3, "regression"),
    ],
)
def test_the_task_of_an_array(y: np.ndarray, kind: str) -> None:
    task = load_dataset((RANDOM.normal(size=(200, 3)), y)).task
    assert (task.kind, task.target) == (kind, ())


def test_numbers_are_standardised_by_the_training_rows_and_restored(tmp_path: Path) -> None:
    values = RANDOM.normal(1000, 50, 200).round(2)
    data = load_dataset(table(tmp_path, y=values), validation=0.2)
    y = data.train.y.double()
    assert y.mean().abs() < 1e-6
    assert (y.std(correction=0) - 1).abs() < 1e-6
    found = torch.cat([data.task.restore(s.y) for s in (data.train, data.valid, data.test) if s is not None])
    assert np.allclose(np.sort(found[:, 0].numpy()), np.sort(values), rtol=1e-6)


@pytest.mark.parametrize(
    ("targets", "options", "words"),
    [
        ({"y": [1.5, "", 2.5] * 9}, {}, "table.csv: row 3, column 'y': the target is missing (and in 8 more rows)"),
        ({"y": [3.0] * 20 + [3.0]}, {"task": "regression"}, "the target 'y' is 3 in all training rows"),
        ({"y": [1.5, "x", 2.5] * 9}, {"task": "regression"}, "row 3, column 'y': the target 'x' is not a number"),
        ({"y": [1, 2] * 9, "z": [0, 1] * 9}, {"target": ("y", "z"), "task": "multilabel"}, "neither 0 nor 1"),
        ({"y": ["u", "v"] * 9, "z": [0, 1] * 9}, {"target": ("y", "z")}, "several targets must be numbers, but 'y'"),
        ({"y": [0, 1] * 9, "z": [0, 1] * 9}, {"target": ("y", "z"), "task": "classification"}, "takes one target"),
        ({"y": [1e39, 2.5] * 9}, {}, "is not a finite number"),
        ({"y": ["x" * 1000] * 9}, {}, f"table.csv: only one class, '{'x' * 60}'; a classifier needs at least two"),
        ({"y": [1, 2, "inf"] * 9}, {}, "row 4, column 'y': the target inf is not a finite number"),
    ],
)
def test_targets_that_cannot_be_learnt_are_refused_with_their_place(
    targets: dict[str, Any], options: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as error:
        load_dataset(table(tmp_path, **targets), **options)
    assert words in str(error.value)


def test_a_target_may_have_commas_in_its_name(tmp_path: Path) -> None:
    path = tmp_path / "houses.csv"
    path.write_text('size,"price, USD"\n' + "".join(f"{i % 13},{i}.5\n" for i in range(40)))
    assert load_dataset(path, target="price, USD").task.names == ("price, USD",)
    assert load_dataset(path, target=("price", " USD")).task.names == ("price, USD",)  # as split by a command line


def test_a_task_needs_its_means() -> None:
    with pytest.raises(UserError, match="needs 1 means and deviations"):
        Task("regression", ("price",))


def test_more_classes_than_a_classifier_is_made_for_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.zeros((10_001, 1)), y=[f"id{i}" for i in range(10_001)])
    with pytest.raises(UserError, match=r"10,001 classes, and there may be 10,000; is the target an identifier\?"):
        load_dataset(tmp_path / "a.npz")
