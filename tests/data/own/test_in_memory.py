"""DataFrames and arrays become the same datasets as files that hold the same values."""

import csv
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pytest
import torch
from pandas import DataFrame as Frame

from verydeep.data import DataConfig, Dataset, Inputs, TablePreparation, load_dataset
from verydeep.data.own._in_memory import table_of
from verydeep.errors import UserError
from verydeep.models import create_model
from verydeep.training import ModelConfig, TrainConfig, resume, train


def polars_frame(columns: dict[Any, Any]) -> polars.DataFrame:
    return polars.DataFrame(columns, strict=False)


Make = Callable[[dict[Any, Any]], Any]
EVERY = pytest.mark.parametrize("make", [Frame, polars_frame])
PETS: dict[Any, Any] = {
    "age": [20 + i for i in range(30)],
    "weight": [None if i == 7 else 0.1 + i / 3 for i in range(30)],
    "town": [None if i == 4 else "Rome" if i % 2 else "Oslo" for i in range(30)],
    "species": ["cat" if i % 3 else "dog" for i in range(30)],
}


def as_csv(columns: dict[Any, Any], path: Path) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([list(columns), *zip(*columns.values(), strict=True)])
    return path


def assert_equal(a: Dataset, b: Dataset) -> None:
    for split in ("train", "valid", "test"):
        one, other = getattr(a, split), getattr(b, split)
        assert (one is None) == (other is None)
        if one is not None:
            assert torch.equal(one.x, other.x)
            assert torch.equal(one.y, other.y)
    assert (a.classes, a.preparation) == (b.classes, b.preparation)


@EVERY
def test_a_dataframe_gives_the_same_bits_as_its_csv_file(make: Make, tmp_path: Path) -> None:
    options: dict[str, Any] = {"target": "species", "validation": 0.2, "seed": 3, "categorical": ["age"]}
    made = load_dataset(make(PETS), **options)
    assert_equal(made, load_dataset(as_csv(PETS, tmp_path / "pets.csv"), **options))
    assert made.name == "DataFrame"
    assert repr(made).startswith("<Dataset 'DataFrame': 19 training, 5 validation and 6 test samples of shape (")
    assert Inputs.of(made).classes == ("cat", "dog")


MOMENTS = [datetime(2020, 1, 2, 3) + timedelta(hours=25 * i) for i in range(30)]
NULLABLE = [None if i == 3 else i % 4 for i in range(30)]
FRAMES = [
    Frame(
        {
            "when": MOMENTS,
            "day": [moment.date() for moment in MOMENTS],
            "zoned": pandas.Series(MOMENTS).dt.tz_localize("UTC"),
            "flag": [i % 3 == 0 for i in range(30)],
            "maybe": pandas.array([None if i % 9 == 5 else i % 2 == 0 for i in range(30)], dtype="boolean"),
            "count": pandas.array(NULLABLE, dtype="Int64"),
            "price": [Decimal(i % 7) / 4 for i in range(30)],
            "size": pandas.Categorical(["small", "big", None] * 10),
            "town": pandas.array(["Rome", None, "Oslo"] * 10, dtype="string"),
            "rate": ["5%", "7.5%"] * 15,
            "y": ["cat", "dog"] * 15,
        }
    ),
    polars.DataFrame(
        {
            "when": MOMENTS,
            "day": [moment.date() for moment in MOMENTS],
            "zoned": [moment.replace(tzinfo=UTC) for moment in MOMENTS],
            "flag": [i % 3 == 0 for i in range(30)],
            "maybe": [None if i % 9 == 5 else i % 2 == 0 for i in range(30)],
            "count": NULLABLE,
            "price": [Decimal(i % 7) / 4 for i in range(30)],
            "size": polars.Series(["small", "big", None] * 10, dtype=polars.Categorical),
            "town": ["Rome", None, "Oslo"] * 10,
            "rate": ["5%", "7.5%"] * 15,
            "y": ["cat", "dog"] * 15,
        }
    ),
]


@pytest.mark.parametrize("frame", FRAMES, ids=["pandas", "polars"])
def test_dates_booleans_categories_and_nullable_columns_are_like_those_of_files(frame: Any, tmp_path: Path) -> None:
    if isinstance(frame, polars.DataFrame):
        frame.write_csv(tmp_path / "t.csv")
        frame.write_parquet(tmp_path / "t.parquet")
    else:
        frame.to_csv(tmp_path / "t.csv", index=False)
        frame.to_parquet(tmp_path / "t.parquet")
    made = load_dataset(frame)
    assert_equal(made, load_dataset(tmp_path / "t.parquet"))
    from_csv = load_dataset(tmp_path / "t.csv")
    assert torch.equal(made.train.x, from_csv.train.x)
    preparation = made.preparation
    assert isinstance(preparation, TablePreparation)
    assert [column.name for column in preparation.numbers] == ["flag", "maybe", "count", "price", "rate"]
    assert [column.name for column in preparation.categories] == ["size", "town"]
    assert [column.name for column in preparation.dates] == ["when", "day", "zoned"]
    assert [column.name for column in preparation.columns if column.gaps] == ["maybe", "count", "size", "town"]


@pytest.mark.parametrize(
    "codes", [pandas.Categorical([1, 2, 3] * 10), polars.Series(["1", "2", "3"] * 10, dtype=polars.Categorical)]
)
def test_a_categorical_column_of_numbers_is_one_of_categories(codes: Any) -> None:
    columns = {"code": codes, "y": [0, 1] * 15}
    data = load_dataset(polars.DataFrame(columns) if isinstance(codes, polars.Series) else Frame(columns))
    assert data.preparation.features == ("code=1", "code=2", "code=3")  # type: ignore[union-attr]


def test_moments_with_a_time_zone_are_in_utc() -> None:
    paris = pandas.Series(MOMENTS).dt.tz_localize("Europe/Paris")
    one, other = (load_dataset(Frame({"t": t, "y": [0, 1] * 15})) for t in (paris, paris.dt.tz_convert("Asia/Tokyo")))
    assert one.preparation == other.preparation
    days = (datetime(2020, 1, 2, 2) - datetime(1970, 1, 1)) / timedelta(days=1)
    first = load_dataset(Frame({"t": paris, "y": [0, 1] * 15}), preprocess="none", test=15).preparation
    assert first is not None
    assert float(first(table_of(Frame({"t": paris[:1]})))[0, 0]) == pytest.approx(days, rel=1e-7)  # type: ignore[arg-type]


@EVERY
def test_a_test_set_may_come_from_a_file(make: Make, tmp_path: Path) -> None:
    path = as_csv(PETS, tmp_path / "pets.csv")
    assert len(load_dataset(make(PETS), target="species", test_path=path).test) == 30


@EVERY
@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (PETS, {}, "DataFrame: which column is to be predicted. Set data.target to one of 'age', 'weight'"),
        (PETS, {"target": "Species"}, "data.target: DataFrame has no column 'Species'; did you mean 'species'?"),
        (PETS | {"y": ["a", "b", None] * 10}, {}, r"DataFrame: row 2 \(from 0\), column 'y': the target is missing"),
        (
            PETS | {"when": [timedelta(1)] * 30},
            {"target": "species"},
            "DataFrame: column 'when': timedelta.* can",
        ),
        (PETS, {"target": "species", "image_size": 8}, "data.image_size cannot be used with this kind of data"),
        ({"a": [], "y": []}, {}, "DataFrame: no rows of data"),
        ({"a": [1, 2], "y": [3, 3]}, {}, "only one class"),
    ],
)
def test_errors_name_the_dataframe(make: Make, columns: dict[Any, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        load_dataset(make(columns), **options)
    assert "\n" not in str(error.value)


def test_columns_may_be_numbered_and_mixed_cells_are_refused() -> None:
    columns = {0: [1, 2, 3, 4], 1: ["a", "b", "a", "b"]}
    assert load_dataset(Frame(columns), target="1", test=2).classes == ("a", "b")
    mixed = {"a": np.array([1, "many", 3, 4] * 3, dtype=object), "y": [0, 1] * 6}
    with pytest.raises(
        UserError, match=r"'many' is not a number, but row .* holds '.'; correct it, or list the column"
    ):
        load_dataset(Frame(mixed))
    zeros = load_dataset(Frame({"a": np.array([0, 0, None, 0] * 3, dtype=object), "y": [0, 1] * 6}))
    assert zeros.preparation.numbers[0].name == "a"  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor, list])
def test_arrays_give_the_same_bits_as_an_npz_file(kind: Callable[..., Any], tmp_path: Path) -> None:
    x, y = np.random.default_rng(0).normal(size=(30, 4)), np.arange(30) % 3
    np.savez(tmp_path / "a.npz", x=x, y=y)
    options: dict[str, Any] = {"preprocess": "standardise", "validation": 5}
    made = load_dataset((kind(x), kind(y)), **options)
    assert_equal(made, load_dataset(tmp_path / "a.npz", **options))
    assert made.name == "arrays"


def test_labels_may_be_text_and_images_are_prepared_as_the_papers() -> None:
    x = np.arange(20 * 64, dtype=np.uint8).reshape(20, 8, 8)
    data = load_dataset([x, np.array(["a", "b"] * 10, dtype=object)], test=4)
    assert data.classes == ("a", "b")
    assert data.train.x.shape == (16, 1, 8, 8)
    assert data.train.x.max() < 1


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "load_dataset takes a name, a path, a DataFrame, a pair .*; got NoneType"),
        (np.ones((3, 3)), "got ndarray"),
        ((np.ones((3, 3)), np.ones(2, int)), "y: 2 targets for 3 samples"),
        ((np.ones((3, 3)), np.ones(3, complex)), "y: expected a number or text"),
        ((Frame(PETS), np.ones(30, int)), "x is a DataFrame; give one DataFrame that also holds the target"),
        (([[1, 2], [3]], [0, 1]), "expected arrays"),
    ],
)
def test_anything_else_gets_one_line(source: Any, message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        load_dataset(source)
    assert "\n" not in str(error.value)


def test_data_in_memory_can_be_trained_on_and_must_be_given_again(tmp_path: Path) -> None:
    data = load_dataset(Frame(PETS), target="species")
    config = TrainConfig(data=DataConfig("DataFrame"), model=ModelConfig(depth=2, width=3), epochs=2, batch_size=8)
    model = create_model("highway-mlp", depth=2, width=3, input_shape=data.train.x.shape[1:], classes=2)
    run = train(config, tmp_path / "run", dataset=data, model=model)
    assert run.summary is not None
    (tmp_path / "run" / "summary.json").unlink()  # as if it had been interrupted
    with pytest.raises(UserError, match=r"resume\(path, dataset=...\)"):
        resume(tmp_path / "run")
    assert resume(tmp_path / "run", dataset=data).summary is not None
