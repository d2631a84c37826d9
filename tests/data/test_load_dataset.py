import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from verydeep.config import from_dict, to_dict
from verydeep.data import Augment, DataConfig, Dataset, Split, load_dataset
from verydeep.errors import UserError


@pytest.fixture
def raw(monkeypatch: pytest.MonkeyPatch) -> dict[str, Dataset]:
    """Small datasets under the known names, in place of the real ones."""
    sets = {name: fake(name, channels) for name, channels in (("mnist", 1), ("cifar10", 3), ("digits", 1))}
    monkeypatch.setattr("verydeep.data._load.load_raw", lambda name, root: sets[name])
    return sets


def fake(name: str, channels: int) -> Dataset:
    def split(n: int, seed: int) -> Split:
        high = 17 if name == "digits" else 256
        random = torch.Generator().manual_seed(seed)
        return Split(
            torch.randint(0, high, (n, channels, 4, 4), generator=random, dtype=torch.uint8), torch.arange(n) % 10
        )

    return Dataset(name, split(200, 0), None, split(50, 1), tuple("0123456789"))


def test_mnist_is_scaled_and_digits_by_their_own_range(raw: dict[str, Dataset]) -> None:
    data = load_dataset("mnist")
    assert torch.equal(data.train.x, raw["mnist"].train.x.float() / 256)
    assert torch.equal(data.test.x, raw["mnist"].test.x.float() / 256)
    assert torch.equal(load_dataset("digits").train.x, raw["digits"].train.x.float() / 16)
    assert (data.name, data.valid, data.classes) == ("mnist", None, raw["mnist"].classes)


def test_cifar_has_normalised_contrast_minus_the_training_mean_of_each_pixel(raw: dict[str, Dataset]) -> None:
    data = load_dataset("cifar10", validation=0.2)
    assert data.valid is not None
    assert (len(data.train), len(data.valid), len(data.test)) == (160, 40, 50)
    assert data.train.x.mean(0).abs().max() < 1e-6
    assert data.test.x.mean(0).abs().max() > 1e-3  # the mean was not taken from these
    x = raw["cifar10"].test.x.double()
    contrast = (x - x.mean((1, 2, 3), keepdim=True)) / x.std((1, 2, 3), unbiased=False, keepdim=True)
    offset = contrast - data.test.x.double()
    torch.testing.assert_close(offset, offset[:1].expand_as(offset), atol=1e-5, rtol=0)


def test_none_gives_the_raw_bytes(raw: dict[str, Dataset]) -> None:
    assert torch.equal(load_dataset("cifar10", preprocess="none").train.x, raw["cifar10"].train.x)


def test_the_papers_protocol_holds_out_10000_then_trains_on_all(monkeypatch: pytest.MonkeyPatch) -> None:
    y = torch.arange(60_000) % 10
    whole = Dataset(
        "mnist", Split(torch.arange(60_000).view(-1, 1, 1, 1), y), None, Split(y[:10].view(-1, 1, 1, 1), y[:10]), ()
    )
    monkeypatch.setattr("verydeep.data._load.load_raw", lambda name, root: whole)
    first = load_dataset("mnist", validation="paper", preprocess="none")
    assert first.valid is not None
    assert (len(first.train), len(first.valid)) == (50_000, 10_000)
    assert torch.bincount(first.valid.y).tolist() == [1000] * 10
    both = torch.cat([first.train.x, first.valid.x]).flatten().sort().values
    assert torch.equal(both, torch.arange(60_000.0))
    assert len(load_dataset("mnist").train) == 60_000


def test_a_toml_table_is_a_complete_configuration(raw: dict[str, Dataset]) -> None:
    text = 'source = "cifar10"\nvalidation = 20\nseed = 3\naugment = { pad = 2, mirror = true }\n'
    config = from_dict(DataConfig, tomllib.loads(text), "data")
    assert config.augment == Augment(2, True)
    assert from_dict(DataConfig, to_dict(config)) == config
    one, other = load_dataset(config), load_dataset("cifar10", validation=20, seed=3)
    assert one.valid is not None
    assert other.valid is not None
    assert torch.equal(one.valid.x, other.valid.x)


def test_the_root_is_passed_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    roots: list[Any] = []

    def load_raw(name: str, root: Any) -> Dataset:
        roots.append(root)
        return fake(name, 1)

    monkeypatch.setattr("verydeep.data._load.load_raw", load_raw)
    load_dataset("mnist")
    load_dataset("mnist", str(tmp_path))
    assert roots == [None, tmp_path]


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("mnits", {}, "unknown dataset 'mnits'; did you mean 'mnist'"),
        ("no/such.csv", {}, rf"no/such\.csv: no such file or folder in {re.escape(os.getcwd())}$"),
        ("", {}, "source is empty"),
        ("mnist", {"test": 0.1}, "data.test cannot be used"),
        ("mnist", {"target": "label"}, "data.target cannot be used"),
        ("mnist", {"image_size": 8}, "data.image_size cannot be used"),
        ("mnist", {"validation": 1.5}, "validation = 1.5 must be a fraction between 0 and 1"),
        ("mnist", {"validation": -1}, "validation must be 1 sample or more"),
        ("mnist", {"validation": True}, "validation: expected"),
        ("mnist", {"validation": float("nan")}, "validation = nan must be a fraction between 0 and 1"),
        ("mnist", {"validation": 200}, "would hold out 200 of 200"),
        ("mnist", {"sed": 1}, "load_dataset: unknown setting 'sed'; did you mean 'seed'"),
        ("mnist", {"seed": -1}, "seed must be 0 or more"),
        ("mnist", {"preprocess": "whiten"}, "preprocess: expected 'paper' or 'scale'"),
        ("mnist", {"augment": {"pad": -1}}, "pad must be 0 or more"),
        ("a.csv", {"delimiter": ";;"}, "delimiter must be one character"),
        ("a.csv", {"delimiter": "tab"}, r"'\\t' \(a tab\)"),
        ("a.csv", {"image_size": 0}, "image_size must be between 1 and 4096"),
        ("a.csv", {"test": 0.2, "test_path": "b.csv"}, "give data.test_path or data.test, not both"),
        (DataConfig("mnist"), {"seed": 1}, "in the DataConfig or as arguments, not both"),
    ],
)
def test_wrong_options_are_reported_by_name(
    raw: dict[str, Dataset], source: str | DataConfig, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        load_dataset(source, **options)


@pytest.mark.parametrize(
    "option", ["test", "validation", "test_path", "valid_path", "image_size", "channels", "target"]
)
def test_no_option_is_silently_ignored(tmp_path: Path, option: str) -> None:
    for role in ("train", "test"):
        np.save(tmp_path / f"{role}_x.npy", np.zeros((4, 2), dtype=np.float32))
        np.save(tmp_path / f"{role}_y.npy", np.arange(4) % 2)
    value: Any = {"image_size": 8, "channels": 1, "test": 0.5, "validation": 0.5}.get(option, "elsewhere")
    with pytest.raises(UserError, match=f"data.{option} cannot be used"):
        load_dataset(tmp_path, **{option: value})


def test_given_files_must_be_one_split_of_the_same_kind(tmp_path: Path) -> None:
    x, y = np.arange(20.0)[:, None], np.arange(20) % 2
    np.savez(tmp_path / "one.npz", x=x, y=y)
    np.savez(tmp_path / "two.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    (tmp_path / "a.csv").write_text("a,y\n1,0\n2,1\n")
    (tmp_path / "a.txt").write_text("hello")
    assert len(load_dataset(tmp_path / "one.npz", test_path=str(tmp_path / "one.npz")).test) == 20
    for source, given, message in (
        ("one.npz", "a.csv", "is not the same kind of data as"),
        ("one.npz", "two.npz", r"holds several splits \(train, test\)"),
        ("two.npz", "one.npz", "already has a test split; leave data.test_path out"),
        ("one.npz", "no.npz", "no such file"),
        ("a.txt", "a.csv", "expected a file ending in"),
    ):
        with pytest.raises(UserError, match=message):
            load_dataset(tmp_path / source, test_path=str(tmp_path / given))


@pytest.mark.slow
def test_importing_the_package_loads_none_of_the_heavy_libraries() -> None:
    code = "import sys, verydeep.data; print([m for m in ('sklearn', 'PIL', 'pyarrow') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
