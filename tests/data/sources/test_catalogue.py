from pathlib import Path

import pytest

import verydeep.data
from verydeep.data._catalogue import NAMES, SETS
from verydeep.data._entry import Entry
from verydeep.data._fetch import load_raw
from verydeep.data._formats import parse_set
from verydeep.data._locate import find

EACH = pytest.mark.parametrize("entry", SETS.values(), ids=SETS)
SAMPLES = {
    "mnist": (60000, 10000),
    "fashion-mnist": (60000, 10000),
    "cifar10": (50000, 10000),
    "cifar100": (50000, 10000),
}


def test_the_names_are_the_papers_sets_and_digits() -> None:
    assert NAMES == ("mnist", "fashion-mnist", "cifar10", "cifar100", "digits")


@EACH
def test_every_address_is_https(entry: Entry) -> None:
    assert all(url.startswith("https://") for item in entry.downloads for url in item.mirrors)
    assert all(url.endswith(f"/{item.name}") for item in entry.downloads for url in item.mirrors)
    assert all(len(item.mirrors) > 1 for item in entry.downloads)


@EACH
def test_every_file_can_be_downloaded_once(entry: Entry) -> None:
    held = [name for item in entry.downloads for name in item.holds]
    assert sorted(held) == sorted(file.name for file in entry.files)


@EACH
def test_every_digest_is_a_sha256_of_its_own(entry: Entry) -> None:
    digests = [file.sha256 for file in entry.files] + [item.sha256 for item in entry.downloads]
    assert all(len(bytes.fromhex(digest)) == 32 for digest in digests)
    assert len(set(digests)) == len(digests)


@EACH
def test_sizes_agree_with_the_published_numbers_of_samples(entry: Entry) -> None:
    channels, height, width = entry.image
    pixels = channels * height * width
    for files, samples in zip((entry.train, entry.test), SAMPLES[entry.name], strict=True):
        size = sum(file.size for file in files)
        headers = 0 if entry.labels else 16 + 8
        assert size == samples * (pixels + max(1, len(entry.labels))) + headers


@EACH
def test_classes_are_named_once(entry: Entry) -> None:
    assert len(set(entry.classes)) == len(entry.classes) == (100 if entry.name == "cifar100" else 10)


def test_nothing_in_the_package_unpickles() -> None:
    sources = [path.read_text(encoding="utf-8") for path in Path(verydeep.data.__file__).parent.glob("_*.py")]
    assert not [
        text for text in sources for word in ("import pickle", "allow_pickle=True", "torch.load") if word in text
    ]


@EACH
def test_the_real_set_has_its_published_counts(entry: Entry, real: Path) -> None:
    search = find(entry, real)
    if search.missing:
        pytest.skip(
            f"{entry.name} is not on this machine; 'verydeep data get {entry.name}' and $VERYDEEP_DATA bring it"
        )
    dataset = parse_set(entry, search.found)
    train, test = SAMPLES[entry.name]
    assert dataset.train.x.shape == (train, *entry.image)
    assert dataset.test.x.shape == (test, *entry.image)
    if entry.name != "mnist":  # the only one whose classes differ in size
        assert set(dataset.train.y.bincount().tolist()) == {train // len(entry.classes)}
        assert set(dataset.test.y.bincount().tolist()) == {test // len(entry.classes)}
    else:
        assert dataset.train.y.bincount().tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
        assert dataset.test.y.bincount().tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


def test_digits_split_every_class_four_to_one_always_alike() -> None:
    dataset = load_raw("digits")
    assert dataset.train.x.shape == (1438, 1, 8, 8)
    assert dataset.test.x.shape == (359, 1, 8, 8)
    assert int(dataset.train.x.max()) == 16
    train, test = dataset.train.y.bincount(), dataset.test.y.bincount()
    assert (test.float() / (train + test)).sub(0.2).abs().max() < 0.003
    assert dataset.test.y[:12].tolist() == [3, 7, 3, 9, 0, 8, 7, 0, 8, 0, 3, 3]
