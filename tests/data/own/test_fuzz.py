"""Whatever a file or an option holds, the user gets a dataset or a UserError, never another exception."""

import io
import math
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings, strategies as st

from verydeep.config import from_dict
from verydeep.data import Batches, DataConfig, Dataset, Inputs, Split, load_dataset
from verydeep.errors import UserError

many = settings(max_examples=700, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
few = settings(many, max_examples=300)

numbers = st.floats(allow_nan=True, allow_infinity=True).map(repr) | st.integers().map(str)
cells = st.one_of(
    numbers,
    st.sampled_from(["", "a", "b", "NA", "0", "1", "2", '"', "1_0", "１", "5%", "1,5", "2020-01-02"]),
    st.text(max_size=4),
)
columns = st.sampled_from(["a", "b", "label", "", "x y"])


def loaded(path: Path, **options: Any) -> Dataset | None:
    try:
        data = load_dataset(path, **options)
    except UserError as error:
        message = str(error)
    else:
        return checked(data)
    assert 0 < len(message.splitlines()) <= 2
    return None


def checked(data: Dataset) -> Dataset:
    for split in (data.train, data.test):
        assert split.x.isfinite().all()
        assert len(split.x) == len(split.y) > 0
        if data.task.kind == "classification":
            assert 0 <= int(split.y.min()) <= int(split.y.max()) < len(data.classes)
        assert split.y.isfinite().all()
        assert sum(len(y) for _, y in Batches(split, 3, seed=0).epoch(0)) == len(split)
    return data


@pytest.mark.slow
@many
@given(
    st.lists(columns, min_size=1, max_size=4), st.lists(st.lists(cells, min_size=1, max_size=4), max_size=12), st.data()
)
def test_any_table(tmp_path: Path, header: list[str], rows: list[list[str]], data: st.DataObject) -> None:
    delimiter = data.draw(st.sampled_from([",", ";", "\t", " ", "|"]))
    if data.draw(st.booleans()):
        rows = [(row * len(header))[: len(header)] for row in rows]
    (tmp_path / "t.csv").write_text("\n".join(delimiter.join(r) for r in [header, *rows]), "utf-8", "surrogatepass")
    options: dict[str, Any] = {
        "delimiter": delimiter,
        "target": data.draw(st.none() | columns),
        "categorical": data.draw(st.lists(columns, max_size=2)),
        "ignore": data.draw(st.lists(columns, max_size=2)),
        "numeric": data.draw(st.lists(columns, max_size=1)),
        "decimal": data.draw(st.sampled_from([".", ","])),
        "encoding": data.draw(st.sampled_from(["utf-8", "utf-8", "latin-1", "utf-16"])),
        "preprocess": data.draw(st.sampled_from(["paper", "none"])),
        "test": data.draw(st.sampled_from([1, 0.2, 0.5])),
    }
    result = loaded(tmp_path / "t.csv", **options)
    if result is not None:
        Inputs.of(result).read(tmp_path / "t.csv", delimiter, options["decimal"], options["encoding"])


@pytest.mark.slow
@many
@given(st.lists(st.sampled_from(["1", "2.5", "-7", "", "NA", "1e30"]), min_size=4, max_size=30), st.integers(0, 2**63))
def test_tables_of_numbers_that_are_nearly_right(tmp_path: Path, column: list[str], seed: int) -> None:
    (tmp_path / "t.csv").write_text(
        "a,b,y\n" + "".join(f"{cell},{i},{'uvw'[i % 3]}\n" for i, cell in enumerate(column))
    )
    loaded(tmp_path / "t.csv", seed=seed, validation=1)


@many
@given(st.binary(max_size=200))
@example(b"a,label\n" + b"1" * 200_000 + b",x\n")
@example(b"a,label\n1,x\n2,y\n\x00,x\n3,y\n4,y")
@example(b"\xff\xfea\x00,\x00")
def test_any_bytes_as_csv(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    loaded(tmp_path / "t.csv", target="label")


def archive() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, x=np.arange(24.0).reshape(12, 2), y=np.arange(12) % 2, classes=np.array(["no", "yes"]))
    return buffer.getvalue()


def parquet() -> bytes:
    pa = import_module("pyarrow")  # one of the test tools: never skipped
    import pyarrow.parquet  # type: ignore[import-untyped]

    buffer = io.BytesIO()
    pyarrow.parquet.write_table(
        pa.table({"a": [1.0, 2.0, None, 4.0] * 3, "b": list("uvuw") * 3, "y": [0, 1] * 6}), buffer
    )
    return buffer.getvalue()


def picture() -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(np.arange(192, dtype=np.uint8).reshape(8, 8, 3)).save(buffer, "png")
    return buffer.getvalue()


changes = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=4)
cuts = st.none() | st.integers(0, 10**6)


def damaged(content: bytes, change: list[tuple[int, int]], cut: int | None) -> bytes:
    spoilt = bytearray(content)
    for place, value in change:
        spoilt[place % len(spoilt)] = value
    return bytes(spoilt if cut is None else spoilt[: cut % len(spoilt)])


@pytest.mark.slow
@many
@given(changes, cuts)
def test_damaged_archives(tmp_path: Path, change: list[tuple[int, int]], cut: int | None) -> None:
    (tmp_path / "a.npz").write_bytes(damaged(archive(), change, cut))
    loaded(tmp_path / "a.npz")


@few
@given(changes, cuts)
def test_damaged_parquet_files(tmp_path: Path, change: list[tuple[int, int]], cut: int | None) -> None:
    (tmp_path / "a.parquet").write_bytes(damaged(parquet(), change, cut))
    loaded(tmp_path / "a.parquet")


@pytest.mark.slow
@few
@given(changes, cuts)
def test_damaged_images(tmp_path: Path, change: list[tuple[int, int]], cut: int | None) -> None:
    for name in ("a", "b"):
        (tmp_path / "pictures" / name).mkdir(parents=True, exist_ok=True)
        for i in range(2):
            (tmp_path / "pictures" / name / f"{i}.png").write_bytes(picture())
    (tmp_path / "pictures" / "a" / "1.png").write_bytes(damaged(picture(), change, cut))
    loaded(tmp_path / "pictures", test=2, image_size=8)


@pytest.mark.slow
@few
@given(changes, cuts)
def test_damaged_memory_mapped_files(tmp_path: Path, change: list[tuple[int, int]], cut: int | None) -> None:
    for role in ("train", "test"):
        np.save(tmp_path / f"{role}_x.npy", np.arange(24, dtype=np.uint8).reshape(12, 2))
        np.save(tmp_path / f"{role}_y.npy", np.arange(12) % 2)
    path = tmp_path / f"train_{'xy'[len(change) % 2]}.npy"
    path.write_bytes(damaged(path.read_bytes(), change, cut))
    loaded(tmp_path)


dtypes = st.sampled_from(["u1", "i1", "i8", "u8", "f2", "f4", "f8", "?", ">i4", "c8", "S3", "U2", "M8[s]", "V4"])
shapes = st.lists(st.integers(0, 6), max_size=5).map(tuple)


@pytest.mark.slow
@many
@given(
    st.lists(
        st.tuples(st.sampled_from(["x", "y", "x_train", "y_train", "x_test", "y_test", "classes"]), dtypes, shapes)
    )
)
def test_any_arrays_as_npz(tmp_path: Path, arrays: list[tuple[str, str, tuple[int, ...]]]) -> None:
    made = {name: (np.arange(math.prod(shape)).reshape(shape) % 5).astype("i8") for name, _, shape in arrays}
    kinds = {name: dtype for name, dtype, _ in arrays}
    np.savez(tmp_path / "a.npz", allow_pickle=False, **{n: _as(a, kinds[n]) for n, a in made.items()})
    loaded(tmp_path / "a.npz", test=1)


def _as(array: np.ndarray, dtype: str) -> np.ndarray:
    return np.zeros(array.shape, dtype) if dtype == "V4" else array.astype(dtype)


plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["paper", "none", "mnist", ","]),
)
values = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2)
)
keys = st.sampled_from([*DataConfig.__dataclass_fields__, "other"])


@pytest.mark.slow
@many
@given(st.dictionaries(keys, values, max_size=5))
def test_any_configuration(tmp_path: Path, table: dict[str, Any]) -> None:
    np.savez(tmp_path / "a.npz", x=np.arange(24.0).reshape(12, 2), y=np.arange(12) % 2)
    try:
        config = from_dict(DataConfig, {"source": str(tmp_path / "a.npz"), **table})
    except UserError:
        return
    assert config.augment.pad >= 0
    options = {key: value for key, value in table.items() if key != "source"}
    loaded(tmp_path / "a.npz", **options)


@few
@given(st.integers(1, 40), st.integers(-3, 40), st.tuples(st.integers(-2, 5), st.integers(-2, 5)), st.booleans())
def test_any_batches(n: int, batch: int, process: tuple[int, int], drop: bool) -> None:
    split = Split(torch.zeros(n, 2), torch.arange(n))
    try:
        batches = Batches(split, batch, seed=0, rank=process[0], world_size=process[1], drop_last=drop)
    except UserError:
        return
    assert all(len(y) > 0 for _, y in batches.epoch(0))
