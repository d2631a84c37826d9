"""Image folders that do not fit into memory: decoded batch by batch, to the same bits."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from verydeep.analysis import gate_statistics, some_samples
from verydeep.data import Augment, Batches, DataConfig, Dataset, contact_sheet, load_dataset
from verydeep.data.own import _image_files, _image_folder
from verydeep.data.own._image_files import ImageFiles
from verydeep.errors import UserError
from verydeep.training import ModelConfig, TrainConfig, train
from verydeep.training.run._run_data import data_changes


@pytest.fixture
def batch_by_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every folder for one that is too large for memory, and keep no decoded image."""
    monkeypatch.setattr(_image_folder, "IN_MEMORY", 0)
    monkeypatch.setattr(_image_folder, "KEPT", 0)


def folder(root: Path, shape: tuple[int, ...] = (6, 5, 3), count: int = 11) -> Path:
    random = np.random.default_rng(0)
    for name in ("cats", "dogs"):
        (root / name).mkdir(parents=True)
        for i in range(count):
            Image.fromarray(random.integers(0, 256, shape).astype(np.uint8)).save(root / name / f"{i}.png")
    return root


def both(path: Path, monkeypatch: pytest.MonkeyPatch, kept: int = 0, **options: Any) -> tuple[Dataset, Dataset]:
    whole = load_dataset(path, **options)
    monkeypatch.setattr(_image_folder, "IN_MEMORY", 0)
    monkeypatch.setattr(_image_folder, "KEPT", kept)
    lazy = load_dataset(path, **options)
    assert isinstance(lazy.train.x, ImageFiles)
    assert not isinstance(whole.train.x, ImageFiles)
    return whole, lazy


def epochs(split: Any) -> list[torch.Tensor]:
    batches = Batches(split, 4, seed=3, augment=Augment(pad=1, mirror=True))
    return [part for number in range(2) for x_and_y in batches.epoch(number) for part in x_and_y]


@pytest.mark.parametrize("preprocess", ["paper", "scale", "contrast", "standardise", "none"])
@pytest.mark.parametrize("shape", [(6, 5, 3), (7, 6)], ids=["colour", "grey"])
def test_batches_are_the_same_bits(
    preprocess: str, shape: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, lazy = both(folder(tmp_path, shape), monkeypatch, validation=0.2, preprocess=preprocess)
    assert whole.preparation == lazy.preparation
    for split in ("train", "valid", "test"):
        pairs = zip(epochs(getattr(whole, split)), epochs(getattr(lazy, split)), strict=True)
        assert all(type(ours) is torch.Tensor and torch.equal(ours, theirs) for ours, theirs in pairs)


@pytest.mark.parametrize("kept", [0, 5, 100])
def test_batches_are_the_same_bits_however_many_images_are_kept(
    kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, lazy = both(folder(tmp_path), monkeypatch, kept * 6 * 5 * 3)
    for _ in range(2):
        assert all(map(torch.equal, epochs(whole.train), epochs(lazy.train)))


def test_the_contrast_of_a_large_image_does_not_depend_on_its_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(3)  # torch adds up a single image in several threads
    try:
        whole, lazy = both(folder(tmp_path, (250, 250, 3), 4), monkeypatch, preprocess="contrast", test=1)
        prepared = [x for x, _ in Batches(lazy.train, 5, seed=0, shuffle=False).epoch(0)]
        assert torch.equal(torch.cat(prepared), whole.train.x)
    finally:
        torch.set_num_threads(threads)


def test_training_evaluation_and_analysis_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, lazy = both(folder(tmp_path / "pets", (8, 8)), monkeypatch, validation=0.2)
    config = TrainConfig(DataConfig("pets"), ModelConfig("highway-mlp", depth=3, width=8), epochs=2, batch_size=4)
    runs = [train(config, tmp_path / f"{i}", dataset=data, progress=False) for i, data in enumerate((whole, lazy))]
    numbers = [[(line.loss, line.valid_loss, line.test_loss) for line in run.metrics] for run in runs]
    assert numbers[0] == numbers[1]
    assert data_changes(runs[1], load_dataset(tmp_path / "pets", validation=0.2)) == ""
    gates = [gate_statistics(runs[0].model, some_samples(data.train, 7)) for data in (whole, lazy)]
    assert np.array_equal(gates[0].mean, gates[1].mean)
    assert contact_sheet(whole).size == contact_sheet(lazy).size


def test_decoded_images_are_kept_up_to_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[Path] = []
    decode = _image_folder._decode

    def counted(path: Path, size: int | None) -> np.ndarray:
        reads.append(path)
        return decode(path, size)

    monkeypatch.setattr(_image_folder, "_decode", counted)
    monkeypatch.setattr(_image_folder, "IN_MEMORY", 0)
    monkeypatch.setattr(_image_folder, "KEPT", 10 * 90)
    data = load_dataset(folder(tmp_path), preprocess="scale")
    assert not reads
    batches = Batches(data.train, 4, seed=0)
    for number, expected in enumerate((18, 8, 8)):  # 10 of the 18 training images are kept
        reads.clear()
        list(batches.epoch(number))
        assert len(reads) == expected
    x: Any = data.train.x
    assert x.decoder._kept.nbytes == 10 * 90


@pytest.mark.usefixtures("batch_by_batch")
def test_image_files_act_as_a_tensor(tmp_path: Path) -> None:
    path = folder(tmp_path)
    x = load_dataset(path, preprocess="none").train.x
    plain = torch.stack([row for row in x])  # noqa: C416 - iterating decodes
    assert type(plain) is torch.Tensor
    assert (x.shape, x.dtype, x.device, len(x)) == (plain.shape, plain.dtype, plain.device, len(plain))
    rows = torch.tensor([5, 2, 2])
    mask = torch.arange(18) > 4
    for index in (slice(3), slice(2, 9, 3), slice(-2, None), rows, mask, [1, 0], (slice(None), 1), 4, -1):
        assert torch.equal(x[index] + 0, plain[index])
    assert isinstance(x[2:5][torch.tensor([1])], ImageFiles)
    assert torch.equal(x.index_select(0, rows), plain[rows])
    assert torch.equal(x.float().mean(0), plain.float().mean(0))
    assert repr(x) == "<ImageFiles: 18 images of shape (3, 6, 5)>"


@pytest.mark.usefixtures("batch_by_batch")
def test_an_image_that_breaks_later_is_named(tmp_path: Path) -> None:
    data = load_dataset(folder(tmp_path), preprocess="scale")
    for path in tmp_path.glob("*/*.png"):
        path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(UserError, match=r"\.png: cannot be read as an image"):
        list(Batches(data.train, 4, seed=0).epoch(0))


@pytest.mark.usefixtures("batch_by_batch")
def test_an_image_that_changes_its_size_is_named(tmp_path: Path) -> None:
    data = load_dataset(folder(tmp_path), preprocess="scale")
    for path in tmp_path.glob("*/*.png"):
        Image.new("RGB", (3, 3)).save(path)
    with pytest.raises(UserError, match=r"\.png: has changed: its shape was \(3, 6, 5\), now it is \(3, 3, 3\)"):
        list(Batches(data.train, 4, seed=0).epoch(0))


def test_progress_is_shown_for_many_images_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    shown: list[str] = []
    monkeypatch.setattr("rich.progress.Progress.add_task", lambda _, text, total: shown.append(f"{text} {total}"))
    monkeypatch.setattr("rich.progress.Progress.advance", lambda *_: None)
    few, many = _image_files._MANY - 1, _image_files._MANY
    assert list(_image_files.with_progress(range(few), "looking at few", few)) == list(range(few))
    assert list(_image_files.with_progress(range(many), "looking at many", many)) == list(range(many))
    assert shown == [f"looking at many {many}"]
