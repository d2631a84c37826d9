"""Cross-validation: folds of the training samples."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from PIL import Image
from torch import Tensor

from verydeep.data import DataConfig, load_dataset
from verydeep.data.own import _image_folder
from verydeep.data.own._image_files import ImageFiles
from verydeep.data.prepare._split import hold_out_fold
from verydeep.errors import UserError

labels = st.lists(st.integers(0, 4), min_size=30, max_size=80).map(torch.tensor)


def all_folds(y: Tensor, folds: int, seed: int = 0) -> list[tuple[Tensor, Tensor]]:
    return [hold_out_fold(y, folds, fold, seed) for fold in range(folds)]


@given(labels, st.integers(2, 10), st.integers(0, 2**40))
def test_every_sample_is_held_out_once_except_the_only_one_of_its_class(y: Tensor, folds: int, seed: int) -> None:
    single = [row for row, c in enumerate(y.tolist()) if (y == c).sum() == 1]
    divided = all_folds(y, folds, seed)
    assert sorted([*single, *torch.cat([held for _, held in divided]).tolist()]) == list(range(len(y)))
    for kept, held in divided:
        assert sorted([*kept.tolist(), *held.tolist()]) == list(range(len(y)))
        assert kept.tolist() == sorted(kept.tolist())
        assert held.tolist() == sorted(held.tolist())


@given(labels, st.integers(2, 10), st.integers(0, 2**40))
def test_folds_have_equal_sizes_and_shares_of_each_class_which_all_keep_a_sample(
    y: Tensor, folds: int, seed: int
) -> None:
    divided = all_folds(y, folds, seed)
    counts = torch.stack([torch.bincount(y[held], minlength=5) for _, held in divided])
    assert counts.sum(1).max() - counts.sum(1).min() <= 1
    assert (counts.max(0).values - counts.min(0).values <= 1).all()
    for kept, _ in divided:
        assert set(y[kept].tolist()) == set(y.tolist())


def test_folds_are_the_same_on_every_machine_and_version() -> None:
    y = torch.arange(12) % 3
    assert [held.tolist() for _, held in all_folds(y, 3, seed=7)] == [[0, 5, 6, 10], [1, 2, 4, 9], [3, 7, 8, 11]]


def test_another_seed_gives_other_folds() -> None:
    y = torch.arange(100) % 4
    assert not torch.equal(hold_out_fold(y, 5, 0, seed=0)[1], hold_out_fold(y, 5, 0, seed=1)[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"folds": 1}, "data.folds must be 2 or more, got 1"),
        ({"folds": 5, "fold": 5}, "data.fold must be from 0 to 4 if data.folds is 5, got 5"),
        ({"folds": 5, "fold": -1}, "data.fold must be from 0 to 4"),
        ({"fold": 2}, "data.fold = 2 needs data.folds"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        DataConfig("table.csv", **options)  # type: ignore[arg-type]


def test_fewer_samples_than_folds_are_refused() -> None:
    with pytest.raises(
        UserError, match=r"data\.folds = 9 needs as many training samples, but there are 8; choose fewer"
    ):
        hold_out_fold(torch.zeros(8, dtype=torch.int64), 9, 0, 0)
    y = torch.tensor([0, 0, 0, 1, 2])
    with pytest.raises(UserError, match=r"but there are 3 \(2 more are the only ones of their class, which are never"):
        hold_out_fold(y, 4, 0, 0)
    assert len(hold_out_fold(y, 3, 0, 0)[1]) == 1


def test_a_known_dataset_holds_out_a_fold_and_keeps_its_test_split() -> None:
    whole, folded = load_dataset("digits"), load_dataset("digits", folds=4, fold=3)
    assert folded.valid is not None
    assert (len(folded.train), len(folded.valid)) == (1079, 359)
    assert torch.equal(whole.test.x, folded.test.x)


def test_numbers_and_data_in_memory_are_folded_in_the_same_way_as_files(tmp_path: Path) -> None:
    x, y = np.random.RandomState(0).randn(50, 3), np.linspace(0, 1, 50)
    np.savez(tmp_path / "numbers.npz", x=x, y=y)
    held = []
    for fold in range(4):
        memory = load_dataset((x, y), folds=4, fold=fold)
        file = load_dataset(tmp_path / "numbers.npz", folds=4, fold=fold)
        assert memory.valid is not None
        assert file.valid is not None
        assert memory.task.kind == "regression"
        assert torch.equal(memory.valid.x, file.valid.x)
        held += memory.valid.x[:, 0].tolist()
    assert sorted(held) == sorted([*load_dataset((x, y)).train.x[:, 0].tolist()])


def test_a_table_is_standardised_by_the_rows_that_are_trained_on(tmp_path: Path) -> None:
    rows = [f"{i * i},{'ab'[i % 2]}" for i in range(60)]
    (tmp_path / "table.csv").write_text("\n".join(["size,class", *rows]))
    for fold in range(3):
        data = load_dataset(tmp_path / "table.csv", folds=3, fold=fold)
        assert data.valid is not None
        assert (len(data.train), len(data.valid), len(data.test)) == (32, 16, 12)
        assert data.train.x[:, 0].mean().abs() < 1e-6


def test_images_that_stay_on_disk_are_folded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        file = tmp_path / "images" / "ab"[number % 2] / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (4, 4), 10 * number).save(file)
    in_memory = load_dataset(tmp_path / "images", folds=4, fold=1)
    monkeypatch.setattr(_image_folder, "IN_MEMORY", 0)
    lazy = load_dataset(tmp_path / "images", folds=4, fold=1)
    assert isinstance(lazy.train.x, ImageFiles)
    assert lazy.valid is not None
    assert in_memory.valid is not None
    assert torch.equal(lazy.valid.prepared(lazy.valid.x[:]), in_memory.valid.x)


def test_beside_a_validation_split_the_fold_is_left_out_of_both(tmp_path: Path) -> None:
    x, y = np.random.RandomState(0).randn(20, 2), np.arange(20) % 2
    splits: dict[str, Any] = {
        f"{kind}_{split}": value for split in ("train", "valid", "test") for kind, value in (("x", x), ("y", y))
    }
    np.savez(tmp_path / "splits.npz", **splits)
    for data in (load_dataset(tmp_path / "splits.npz", folds=4), load_dataset((x, y), test=4, folds=4, validation=4)):
        assert data.valid is not None
        assert data.held_out is not None
        assert (len(data.held_out), len(data.train) + len(data.held_out)) in ((5, 20), (4, 12))
        own = {tuple(row.tolist()) for row in data.held_out.x}
        assert not own & {tuple(row.tolist()) for row in data.train.x}
    assert load_dataset((x, y), folds=4).held_out is None
