import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from verydeep.data import load_dataset
from verydeep.errors import UserError


def save(folder: Path, **arrays: Any) -> Path:
    np.savez(folder / "a.npz", **arrays)
    return folder / "a.npz"


def random_images(n: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (n, *shape)).astype(np.uint8)


X, Y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2


def test_x_and_y_become_a_split_dataset(tmp_path: Path) -> None:
    data = load_dataset(save(tmp_path, x=X, y=Y), test=0.25, validation=3)
    assert data.valid is not None
    assert (len(data.train), len(data.valid), len(data.test)) == (12, 3, 5)
    assert data.train.x.dtype == torch.float32
    for split in (data.train, data.valid, data.test):
        assert torch.equal(split.x[:, 0] / 2 % 2, split.y.float())


@pytest.mark.parametrize("valid", ["valid", "val", "validation"])
def test_named_splits_are_kept(tmp_path: Path, valid: str) -> None:
    arrays = {"x_train": X, "y_train": Y, "x_test": X[:4] + 1, "y_test": Y[:4]}
    arrays |= {f"x_{valid}": X[:2], f"y_{valid}": Y[:2]}
    data = load_dataset(save(tmp_path, **arrays))
    assert torch.equal(data.train.x, torch.from_numpy(X).float())
    assert torch.equal(data.test.x, torch.from_numpy(X[:4] + 1).float())
    assert data.valid is not None
    assert len(data.valid) == 2


@pytest.mark.parametrize(
    ("shape", "becomes"), [((6, 5), (1, 6, 5)), ((6, 5, 3), (3, 6, 5)), ((3, 6, 5), (3, 6, 5)), ((9, 4, 4), (9, 4, 4))]
)
def test_images_become_channels_height_width(tmp_path: Path, shape: tuple[int, ...], becomes: tuple[int, ...]) -> None:
    images = random_images(20, *shape)
    data = load_dataset(save(tmp_path, x_train=images, y_train=Y, x_test=images, y_test=Y), preprocess="none")
    assert tuple(data.train.x.shape[1:]) == becomes
    assert data.train.x.dtype == torch.uint8
    if shape == (6, 5, 3):
        assert torch.equal(data.train.x[4, 2], torch.from_numpy(images[4, :, :, 2]))


def test_statistics_come_from_the_training_samples_only(tmp_path: Path) -> None:
    data = load_dataset(save(tmp_path, x_train=X, y_train=Y, x_test=X * 1000, y_test=Y), preprocess="standardise")
    torch.testing.assert_close(data.test.x, torch.from_numpy((X * 1000 - X.mean(0)) / X.std(0)).float())


def test_text_labels_are_classes(tmp_path: Path) -> None:
    data = load_dataset(save(tmp_path, x=X, y=np.array(["no", "yes"])[Y]))
    assert data.classes == ("no", "yes")
    assert torch.equal(data.train.x[:, 0] / 2 % 2, data.train.y.float())


def test_labels_need_not_start_at_0(tmp_path: Path) -> None:
    data = load_dataset(save(tmp_path, x=X, y=Y * 5 - 2))
    assert data.classes == ("-2", "3")
    assert set(data.train.y.tolist()) == {0, 1}


def test_class_names_in_the_file_keep_their_order(tmp_path: Path) -> None:
    data = load_dataset(save(tmp_path, x=X, y=Y, classes=np.array(["zebra", "ant"])))
    assert data.classes == ("zebra", "ant")
    assert torch.equal(data.train.x[:, 0] / 2 % 2, data.train.y.float())


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", ">f4", ">i2", "float64"])
def test_every_kind_of_number_becomes_float32(tmp_path: Path, dtype: str) -> None:
    x = (X % 2).astype(dtype)
    data = load_dataset(save(tmp_path, x_train=x, y_train=Y, x_test=x, y_test=Y))
    assert torch.equal(data.test.x, torch.from_numpy(X % 2).float())


nan, inf = np.array(X), np.array(X)
nan[7, 1], inf[3, 0] = np.nan, np.inf


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": X}, "no array 'y'; it has 'x'"),
        ({"y": Y}, "no array 'x'; it has 'y'"),
        ({"a": X, "b": Y}, "expected the arrays x and y, or x_train, y_train, ...; it has 'a', 'b'"),
        ({"x_test": X, "y_test": Y}, "expected the arrays x and y"),
        ({"x_train": X, "y_train": Y, "x_val": X, "y_valid": Y}, "both val and valid name the same split"),
        ({"x": X, "y": Y[:19]}, "y: 19 targets for 20 samples"),
        ({"x": nan, "y": Y}, r"x\[7, 1\]: nan is not a finite"),
        ({"x": inf, "y": Y}, r"x\[3, 0\]: inf is not a finite"),
        ({"x": X * 1e300, "y": Y}, r"x\[0, 1\]: 1e\+300 is not a finite float32"),
        ({"x": X + 1j, "y": Y}, "x: expected numbers, got complex128"),
        ({"x": X.astype(str), "y": Y}, "x: expected numbers, got <U"),
        (
            {"x": np.zeros((20, 6, 5, 4)), "y": Y},
            r"x: shape \(20, 6, 5, 4\) looks like .*transparency.*three channels",
        ),
        ({"x": X[:, 0], "y": Y}, r"x: shape \(20,\) cannot be used"),
        ({"x": X[:0], "y": Y[:0]}, r"x: shape \(0, 2\) cannot be used"),
        ({"x": np.zeros((20, 0)), "y": Y}, r"x: shape \(20, 0\) cannot be used"),
        ({"x": X, "y": Y * 1j}, r"y: expected a number or text, or a row of numbers, per sample; got complex128"),
        (
            {"x": X, "y": np.zeros((20, 2, 2))},
            r"y: expected a number or text, or a row of numbers, per sample; got float64 of shape \(20, 2, 2\)",
        ),
        ({"x": X, "y": Y * 0}, "only one class, '0'"),
        (
            {"x": X, "y": Y + 1, "classes": np.array(["a", "b"])},
            r"y\[1\]: label 2 is out of range; 'classes' has 2 names",
        ),
        ({"x": X, "y": Y - 1, "classes": np.array(["a", "b"])}, r"y\[0\]: label -1 is out of range"),
        ({"x": X, "y": Y, "classes": np.array(["a", "a"])}, "list of different names"),
        (
            {"x_train": X, "y_train": Y, "x_test": X, "y_test": Y + 1},
            r"y_test\[1\]: class '2' does not occur in the training",
        ),
        ({"x_train": X, "y_train": Y, "x_test": X[:, :1], "y_test": Y}, r"test: samples have shape \(1,\), .* \(2,\)"),
        ({"x": X.astype(object), "y": Y}, "holds Python objects, which are not loaded"),
        ({"x": X, "y": np.array(["a", 1] * 10, dtype=object)}, "holds Python objects, which are not loaded"),
    ],
)
def test_unusable_data_is_reported_with_its_place(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_dataset(save(tmp_path, **arrays))


class Trap:
    """Unpickling this would create a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_pickled_objects_are_never_run(tmp_path: Path) -> None:
    path = save(tmp_path, x=X, y=np.array([Trap(tmp_path / "sprung")] * 20, dtype=object))
    with pytest.raises(UserError, match="Python objects"):
        load_dataset(path)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("content", [b"", b"PK\x05\x06", b"not a zip", b"\x93NUMPY\x01\x00"])
def test_a_broken_file_is_reported(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(UserError, match=r"a\.npz: cannot be read as \.npz"):
        load_dataset(tmp_path / "a.npz")


def test_an_archive_that_needs_more_memory_than_there_is_is_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verydeep.npz.available_memory", lambda: 10**6)
    with pytest.raises(UserError, match=r"holds 0\.0 GB, and 0\.0 GB of memory are available"):
        load_dataset(save(tmp_path, x=np.zeros((1000, 200)), y=np.zeros(1000)))


def test_a_small_array_that_declares_a_large_shape_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive, archive.open("x.npy", "w") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**9, 8)}
        np.lib.format.write_array_header_1_0(file, header)
    with pytest.raises(UserError, match=r"x\.npy declares the shape \(1000000000, 8\)"):
        load_dataset(tmp_path / "a.npz")


def test_a_truncated_array_is_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.save(buffer, X)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", buffer.getvalue()[:-8])
    with pytest.raises(UserError, match=r"a\.npz: cannot be read as \.npz"):
        load_dataset(tmp_path / "a.npz")
