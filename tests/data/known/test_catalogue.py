from pathlib import Path

import pytest

import verydeep.data
from verydeep.data.known._catalogue import KNOWN_DATASETS, KNOWN_NAMES, KnownDataset
from verydeep.data.known._fetch import load_raw
from verydeep.data.known._formats import parse_dataset
from verydeep.data.known._local_files import find_files

EACH = pytest.mark.parametrize("known", KNOWN_DATASETS.values(), ids=KNOWN_DATASETS)
SAMPLES = {
    "mnist": (60000, 10000),
    "fashion-mnist": (60000, 10000),
    "cifar10": (50000, 10000),
    "cifar100": (50000, 10000),
}


def test_the_known_names_are_the_papers_datasets_and_digits() -> None:
    assert KNOWN_NAMES == ("mnist", "fashion-mnist", "cifar10", "cifar100", "digits")


@EACH
def test_every_address_is_https(known: KnownDataset) -> None:
    assert all(url.startswith("https://") for item in known.downloads for url in item.mirrors)
    assert all(url.endswith(f"/{item.name}") for item in known.downloads for url in item.mirrors)
    assert all(len(item.mirrors) > 1 for item in known.downloads)


@EACH
def test_every_file_can_be_downloaded_once(known: KnownDataset) -> None:
    held = [name for item in known.downloads for name in item.holds]
    assert sorted(held) == sorted(file.name for file in known.files)


@EACH
def test_every_digest_is_a_distinct_sha256(known: KnownDataset) -> None:
    digests = [file.sha256 for file in known.files] + [item.sha256 for item in known.downloads]
    assert all(len(bytes.fromhex(digest)) == 32 for digest in digests)
    assert len(set(digests)) == len(digests)


@EACH
def test_sizes_agree_with_the_published_numbers_of_samples(known: KnownDataset) -> None:
    channels, height, width = known.image
    pixels = channels * height * width
    for files, samples in zip((known.train, known.test), SAMPLES[known.name], strict=True):
        size = sum(file.size for file in files)
        headers = 0 if known.labels else 16 + 8
        assert size == samples * (pixels + max(1, len(known.labels))) + headers


@EACH
def test_classes_are_named_once(known: KnownDataset) -> None:
    assert len(set(known.classes)) == len(known.classes) == (100 if known.name == "cifar100" else 10)


def test_nothing_in_the_package_unpickles() -> None:
    modules = [path.read_text(encoding="utf-8") for path in Path(verydeep.data.__file__).parent.rglob("*.py")]
    assert not [
        text for text in modules for word in ("import pickle", "allow_pickle=True", "torch.load") if word in text
    ]


@pytest.mark.slow
@EACH
def test_the_real_dataset_has_its_published_counts(known: KnownDataset, real: Path) -> None:
    found = find_files(known, real)
    if found.missing:
        pytest.skip(f"{known.name} is not on this machine; 'verydeep data get {known.name}' fetches it")
    dataset = parse_dataset(known, found.verified)
    train, test = SAMPLES[known.name]
    assert dataset.train.x.shape == (train, *known.image)
    assert dataset.test.x.shape == (test, *known.image)
    if known.name != "mnist":  # the only one whose classes differ in size
        assert set(dataset.train.y.bincount().tolist()) == {train // len(known.classes)}
        assert set(dataset.test.y.bincount().tolist()) == {test // len(known.classes)}
    else:
        assert dataset.train.y.bincount().tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
        assert dataset.test.y.bincount().tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


def test_digits_split_every_class_four_to_one_reproducibly() -> None:
    dataset = load_raw("digits")
    assert dataset.train.x.shape == (1438, 1, 8, 8)
    assert dataset.test.x.shape == (359, 1, 8, 8)
    assert int(dataset.train.x.max()) == 16
    train, test = dataset.train.y.bincount(), dataset.test.y.bincount()
    assert (test.float() / (train + test)).sub(0.2).abs().max() < 0.003
    assert dataset.test.y[:12].tolist() == [3, 7, 3, 9, 0, 8, 7, 0, 8, 0, 3, 3]
