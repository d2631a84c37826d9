from pathlib import Path

import numpy as np
import pytest
import torch

from verydeep.data import Augment, Batches, load_dataset, split_checksum
from verydeep.errors import UserError

IMAGES = np.random.default_rng(0).integers(0, 256, (20, 3, 6, 6)).astype(np.uint8)
LABELS = np.arange(20) % 4


def save(
    folder: Path, x: np.ndarray = IMAGES, y: np.ndarray = LABELS, roles: tuple[str, ...] = ("train", "test")
) -> Path:
    for role in roles:
        np.save(folder / f"{role}_x.npy", x)
        np.save(folder / f"{role}_y.npy", y)
    return folder


def test_batches_from_disk_equal_batches_from_memory(tmp_path: Path) -> None:
    lazy = load_dataset(save(tmp_path))
    np.savez(tmp_path / "a.npz", x_train=IMAGES, y_train=LABELS, x_test=IMAGES, y_test=LABELS)
    eager = load_dataset(tmp_path / "a.npz")
    assert lazy.classes == eager.classes
    for role in ("train", "test"):
        pair = [Batches(getattr(data, role), 6, seed=1, augment=Augment(2, True)).epoch(3) for data in (lazy, eager)]
        for (xa, ya), (xb, yb) in zip(*pair, strict=True):
            torch.testing.assert_close(xa, xb)
            assert torch.equal(ya, yb)


def test_the_samples_stay_on_disk_and_the_file_is_never_changed(tmp_path: Path) -> None:
    data = load_dataset(save(tmp_path))
    before = (tmp_path / "train_x.npy").read_bytes()
    data.train.x[0] = 7
    assert (tmp_path / "train_x.npy").read_bytes() == before
    maps = Path("/proc/self/maps")
    if maps.exists():
        assert "train_x.npy" in maps.read_text()


def test_floats_are_used_as_they_are(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(20, 5))
    data = load_dataset(save(tmp_path, x.astype(np.float32)))
    (batch, _), *_ = Batches(data.train, 20, seed=0, shuffle=False).epoch(0)
    assert torch.equal(batch, torch.from_numpy(x).float())


def test_valid_files_are_used(tmp_path: Path) -> None:
    assert load_dataset(save(tmp_path)).valid is None
    assert load_dataset(save(tmp_path, roles=("val",))).valid is not None
    with pytest.raises(UserError, match="both valid and val name the same split"):
        load_dataset(save(tmp_path, roles=("valid",)))


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (IMAGES, LABELS[:5], r"train_y\.npy: 5 targets for 20 samples"),
        (IMAGES.astype(complex), LABELS, r"train_x\.npy: complex128 cannot be used"),
        (IMAGES.astype(">f4"), LABELS, r"train_x\.npy: >f4 cannot be used"),
        (IMAGES[:, 0, 0, 0], LABELS, r"train_x\.npy: shape \(20,\) cannot be used"),
        (IMAGES.astype(object), LABELS, r"train_x\.npy: cannot be read as \.npy"),
        (IMAGES, LABELS.astype(object), r"train_y\.npy: cannot be read as \.npy"),
        (IMAGES, LABELS * 1j, r"train_y\.npy: expected a number or text"),
        (IMAGES, LABELS * 0, "only one class"),
    ],
)
def test_unusable_data_is_reported_with_its_place(tmp_path: Path, x: np.ndarray, y: np.ndarray, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_dataset(save(tmp_path, x, y))


def test_a_truncated_file_is_reported(tmp_path: Path) -> None:
    path = save(tmp_path) / "test_x.npy"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UserError, match=r"test_x\.npy: cannot be read as \.npy"):
        load_dataset(tmp_path)


def test_missing_files_are_reported(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"needs train_x\.npy, train_y\.npy, test_x\.npy"):
        load_dataset(save(tmp_path, roles=("train",)))
    save(tmp_path)
    (tmp_path / "test_y.npy").unlink()
    with pytest.raises(UserError, match=r"test_y\.npy: cannot be read"):
        load_dataset(tmp_path)


def test_memory_mapped_data_is_not_split_at_random(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"data\.validation cannot be used"):
        load_dataset(save(tmp_path), validation=0.1)


@pytest.mark.parametrize("verify", [False, True])
def test_a_changed_value_in_the_middle_is_noticed_if_asked_for(tmp_path: Path, verify: bool) -> None:
    def checksum(x: np.ndarray) -> int:
        data = load_dataset(save(tmp_path, x, np.arange(len(x)) % 2), verify=verify)
        return split_checksum(data.train, verify)

    x = np.arange(9000.0, dtype=np.float32).reshape(3000, 3)
    before = checksum(x)
    x[1000, 1] += 1  # not one of the samples that are compared otherwise
    assert (checksum(x) == before) == (not verify)
    x[2999, 1] += 1
    assert checksum(x) != before
