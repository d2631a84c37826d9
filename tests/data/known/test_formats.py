import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from verydeep.data.known._formats import parse_cifar, parse_idx, parse_idx_split
from verydeep.errors import UserError

from ._small_datasets import idx

MANY = settings(max_examples=800, deadline=None)
IMAGES = idx(np.arange(24, dtype=np.uint8).reshape(2, 3, 4))
LABELS = idx(np.array([0, 2], np.uint8))


def test_an_idx_file_is_read_in_row_major_order() -> None:
    assert parse_idx(IMAGES, 3, "x").tolist() == np.arange(24).reshape(2, 3, 4).tolist()


def test_an_idx_split_has_one_channel() -> None:
    x, y = parse_idx_split(IMAGES, LABELS, 3, ("x", "y"))
    assert x.shape == (2, 1, 3, 4)
    assert y.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (IMAGES[:10], "file: 10 bytes are too few for an idx header of 3 axes"),
        (
            b"\0\0\x0d\x03" + IMAGES[4:],
            "file: starts with 00 00 0d 03, but an idx file of 3 axes starts with 00 00 08 03",
        ),
        (b"\0\0\x08\x01" + IMAGES[4:], "file: starts with 00 00 08 01"),
        (IMAGES[:-1], "file: header says 2 x 3 x 4, which is 40 bytes, but the file has 39"),
        (IMAGES + b"x", "file: header says 2 x 3 x 4, which is 40 bytes, but the file has 41"),
        (b"\0\0\x08\x03" + b"\xff" * 12, "file: header says 4294967295 x 4294967295 x 4294967295"),
    ],
)
def test_the_error_for_a_malformed_idx_file_gives_the_reason(data: bytes, said: str) -> None:
    with pytest.raises(UserError, match=f"^{said}"):
        parse_idx(data, 3, "file")


def test_as_many_labels_as_images_are_required() -> None:
    with pytest.raises(UserError, match="x: 2 images, but y has 3 labels"):
        parse_idx_split(IMAGES, idx(np.zeros(3, np.uint8)), 3, ("x", "y"))


def test_a_label_outside_the_classes_is_refused() -> None:
    with pytest.raises(UserError, match=r"y: label 2 of sample 1 is outside 0\.\.1"):
        parse_idx_split(IMAGES, LABELS, 2, ("x", "y"))


def test_a_cifar_record_is_its_label_then_red_green_and_blue() -> None:
    record = bytes((7, *range(12)))
    x, y = parse_cifar(record * 2, (10,), (3, 2, 2), "file")
    assert y.tolist() == [7, 7]
    assert x.tolist() == [np.arange(12).reshape(3, 2, 2).tolist()] * 2


def test_the_class_of_a_cifar100_record_is_its_fine_label() -> None:
    _, y = parse_cifar(bytes((19, 99, *range(12))), (20, 100), (3, 2, 2), "file")
    assert y.tolist() == [99]


@pytest.mark.parametrize("labels", [(20, 98), (19, 100)])
def test_both_labels_of_cifar100_are_checked(labels: tuple[int, ...]) -> None:
    with pytest.raises(UserError, match=r"file: label \d+ of sample 0 is outside"):
        parse_cifar(bytes((19, 99, *range(12))), labels, (3, 2, 2), "file")


@pytest.mark.parametrize("data", [b"", bytes(12), bytes(14)])
def test_only_whole_cifar_records_are_read(data: bytes) -> None:
    with pytest.raises(UserError, match=f"file: {len(data)} bytes are not a whole number of 13-byte records"):
        parse_cifar(data, (10,), (3, 2, 2), "file")


@MANY
@given(data=st.binary(max_size=60), axes=st.sampled_from([1, 3]))
def test_random_bytes_are_an_idx_file_or_a_user_error(data: bytes, axes: int) -> None:
    try:
        values = parse_idx(data, axes, "file")
    except UserError:
        return
    assert idx(values) == data


@MANY
@given(
    shape=st.lists(st.integers(0, 2**32 - 1) | st.integers(0, 4), min_size=3, max_size=3), body=st.binary(max_size=80)
)
def test_any_idx_header_agrees_with_its_file_or_is_a_user_error(shape: list[int], body: bytes) -> None:
    data = b"\0\0\x08\x03" + b"".join(n.to_bytes(4, "big") for n in shape) + body
    if math.prod(shape) == len(body) > 0:
        assert parse_idx(data, 3, "file").shape == tuple(shape)
    else:
        with pytest.raises(UserError):
            parse_idx(data, 3, "file")


@MANY
@given(data=st.binary(max_size=130), labels=st.sampled_from([(10,), (20, 100)]))
def test_random_bytes_are_cifar_records_or_a_user_error(data: bytes, labels: tuple[int, ...]) -> None:
    try:
        _, y = parse_cifar(data, labels, (3, 2, 2), "file")
    except UserError:
        return
    assert y.max() < labels[-1]
