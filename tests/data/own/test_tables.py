import builtins
import csv
import json
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from verydeep.data import TablePreparation, load_dataset, read_table
from verydeep.errors import UserError, install_command

Write = Callable[..., Path]

ROWS = [[str(20 + i), "Rome" if i % 2 else "Oslo", "cat" if i % 3 else "dog"] for i in range(30)]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def table(
        rows: list[list[str]], name: str = "pets.csv", header: tuple[str, ...] = ("age", "town", "species")
    ) -> Path:
        with (tmp_path / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *rows])
        return tmp_path / name

    return table


def changed(row: int, column: int, cell: str) -> list[list[str]]:
    """The rows with one cell changed; `row` as an editor counts, with the header as row 1."""
    rows = [list(r) for r in ROWS]
    rows[row - 2][column] = cell
    return rows


def test_a_csv_file_becomes_standardised_numbers_and_one_hot_categories(write: Write) -> None:
    data = load_dataset(write(ROWS), target="species")
    assert data.name == "pets"
    assert data.classes == ("cat", "dog")
    assert (len(data.train), data.valid, len(data.test)) == (24, None, 6)
    assert data.train.x.dtype == torch.float32
    assert data.train.y.dtype == torch.int64
    assert data.train.x.shape == (24, 3)  # age, Oslo, Rome
    torch.testing.assert_close(data.train.x[:, 0].mean(), torch.tensor(0.0), atol=1e-6, rtol=0)
    torch.testing.assert_close(data.train.x[:, 0].std(unbiased=False), torch.tensor(1.0))
    assert torch.equal(data.train.x[:, 1] + data.train.x[:, 2], torch.ones(24))


def test_samples_match_the_labels_of_their_rows(write: Write) -> None:
    rows = [[str(i), "big" if i >= 20 else "small"] for i in range(40)]
    data = load_dataset(write(rows, header=("size", "kind")), target="kind", preprocess="none", validation=0.2)
    assert data.valid is not None
    for split in (data.train, data.valid, data.test):
        assert torch.equal(split.y, (split.x[:, 0] < 20).long())


def test_the_preparation_equals_scikit_learns_pipeline(write: Write) -> None:
    from sklearn.compose import ColumnTransformer  # type: ignore[import-untyped]
    from sklearn.impute import MissingIndicator, SimpleImputer  # type: ignore[import-untyped]
    from sklearn.pipeline import make_pipeline  # type: ignore[import-untyped]
    from sklearn.preprocessing import OneHotEncoder, StandardScaler  # type: ignore[import-untyped]

    random = np.random.default_rng(0)
    train, test = ([_random_row(random) for _ in range(60)] for _ in range(2))
    header = ("a", "b", "colour", "label")
    write(test, "test.csv", header)
    data = load_dataset(write(train, "train.csv", header).parent)
    pipeline = ColumnTransformer(
        [
            ("a", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), [0]),
            ("a is missing", MissingIndicator(), [0]),
            ("b", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), [1]),
            ("b is missing", MissingIndicator(), [1]),
            (
                "words",
                make_pipeline(
                    SimpleImputer(strategy="most_frequent", missing_values=None), OneHotEncoder(handle_unknown="ignore")
                ),
                [2],
            ),
            ("colour is missing", MissingIndicator(missing_values=None), [2]),
        ],
        sparse_threshold=0,
    )
    pipeline.fit(_cells(train))
    for split, rows in ((data.train, train), (data.test, test)):
        torch.testing.assert_close(split.x, torch.from_numpy(pipeline.transform(_cells(rows)).astype(np.float32)))


def _random_row(random: np.random.Generator) -> list[str]:
    numbers = ["" if random.random() < 0.2 else repr(random.normal(1e6, 3)) for _ in range(2)]
    return [*numbers, random.choice(["red", "green", "blue", ""]), random.choice(["yes", "no"])]


def _cells(rows: list[list[str]]) -> np.ndarray:
    cells = [[float(r[0] or "nan"), float(r[1] or "nan"), r[2] or None] for r in rows]
    return np.array(cells, dtype=object)


def test_statistics_come_from_the_training_rows_only(write: Write) -> None:
    write([["1e6", "Mars", "cat"], ["-5e6", "Rome", "dog"]], "test.csv")
    data = load_dataset(write(ROWS, "train.csv").parent, target="species")
    ages = np.array([float(row[0]) for row in ROWS])
    assert isinstance(data.preparation, TablePreparation)
    (age,) = data.preparation.numbers
    assert (age.mean, age.deviation, age.fill) == pytest.approx((ages.mean(), ages.std(), np.median(ages)))
    assert data.preparation.categories[0].values == ("Oslo", "Rome")
    assert data.test.x[0, 0].item() == pytest.approx((1e6 - ages.mean()) / ages.std())


def test_a_category_never_seen_in_training_is_all_zeros(write: Write) -> None:
    path = write([["30", "Mars", "cat"]], "new.csv")
    data = load_dataset(write(ROWS), target="species", test_path=str(path))
    assert data.test.x[0, 1:].tolist() == [0.0, 0.0]


def test_missing_cells_are_filled_with_median_and_most_frequent_and_marked(write: Write) -> None:
    rows = [["1", "a", "0"], ["2", "a", "1"], ["9", "b", "0"], ["NA", "?", "1"], ["", "n/a", "0"]]
    data = load_dataset(
        write(rows, "train.csv"), target="species", test_path=str(write(rows, "same.csv")), preprocess="none"
    )
    assert data.test.x[3].tolist() == data.test.x[4].tolist() == [2.0, 1.0, 1.0, 0.0, 1.0]
    assert data.test.x[0].tolist() == [1.0, 0.0, 1.0, 0.0, 0.0]


def test_columns_can_be_ignored_or_declared_categorical(write: Write) -> None:
    rows = [[str(i), str(i % 3), str(i % 2)] for i in range(20)]
    data = load_dataset(write(rows, header=("id", "code", "y")), ignore=("id",), categorical=["code"])
    assert data.train.x.shape[1] == 3
    assert set(data.train.x.flatten().tolist()) == {0.0, 1.0}
    assert data.classes == ("0", "1")


def test_whole_number_classes_are_sorted_numerically(write: Write) -> None:
    rows = [[str(i), str((i % 3) * 5)] for i in range(30)]
    assert load_dataset(write(rows, header=("a", "label"))).classes == ("0", "5", "10")


def test_a_number_is_one_class_and_one_category_however_it_is_written(write: Write) -> None:
    forms = ("{}", "{}.0", "{}.", "{}e0")
    rows = [[forms[i % 4].format(i // 4 % 3), forms[i // 4 % 4].format((i % 3) * 5)] for i in range(48)]
    rows += [["01", "5"], ["1.5", "5"], ["9007199254740993.0", "5"], ["inf", "5"]]
    test = write([["1.0", "0.0"]], "test.csv", ("code", "label"))
    data = load_dataset(write(rows, header=("code", "label")), categorical=["code"], test_path=str(test))
    assert data.classes == ("0", "5", "10")
    assert isinstance(data.preparation, TablePreparation)
    assert data.preparation.categories[0].values == ("0", "01", "1", "1.5", "2", "9007199254740993.0", "inf")
    assert data.test.x.tolist() == [[0, 0, 1, 0, 0, 0, 0]]


@pytest.mark.parametrize("valid", ["valid", "val", "validation"])
def test_train_valid_and_test_files_in_a_folder_are_the_splits(write: Write, valid: str) -> None:
    for name, rows in (("train.csv", ROWS), (f"{valid}.csv", ROWS[:4]), ("test.csv", ROWS[:7])):
        folder = write(rows, name).parent
    data = load_dataset(folder, target="species")
    assert data.valid is not None
    assert (len(data.train), len(data.valid), len(data.test)) == (30, 4, 7)
    assert data.name == folder.name
    write(ROWS, "val.csv" if valid == "valid" else "valid.csv")
    with pytest.raises(UserError, match=f"both (valid and {valid}|valid and val) name the same split"):
        load_dataset(folder, target="species")


def test_quotes_blank_lines_a_byte_order_mark_and_other_delimiters_are_understood(tmp_path: Path) -> None:
    text = '\ufeffnote;label\n"a;b\nc";x\n\n plain ; y\n"a;b\nc";y\nplain;x\nlast;x\nlast;y\n'
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    data = load_dataset(tmp_path / "a.csv", delimiter=";", test=2)
    assert isinstance(data.preparation, TablePreparation)
    assert set(data.preparation.categories[0].values) <= {"a;b\nc", "plain", "last"}


@pytest.mark.parametrize(
    ("row", "column", "cell", "message"),
    [
        (17, 0, "abc", r"pets.csv: row 17, column 'age': 'abc' is not a number, but row \d+ holds"),
        (17, 0, "1_0", r"row 17, column 'age': '1_0' is not a number"),
        (9, 0, "inf", r"pets.csv: row 9, column 'age': inf is infinite"),
        (9, 0, "-1e39", r"row 9, column 'age': -1e\+39 is infinite or too large"),
        (5, 2, "", r"pets.csv: row 5, column 'species': the target is missing"),
        (31, 2, "NaN", r"pets.csv: row 31, column 'species': the target is missing"),
    ],
)
def test_a_bad_cell_is_reported_with_file_row_and_column(
    write: Write, row: int, column: int, cell: str, message: str
) -> None:
    path = write(changed(row, column, cell), "pets.csv")
    with pytest.raises(UserError, match=message):
        load_dataset(path, target="species", test_path=str(write(ROWS[:3], "test.csv")))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (["old", "Rome", "cat"], r"test.csv: row 3, column 'age': 'old' is not a number"),
        (["3", "Rome", "cow"], r"test.csv: row 3, column 'species': class 'cow' does not occur"),
        (["3", "Rome"], r"test.csv: row 3 has 2 cells, the header has 3"),
        (["3", "Rome", "cat", ""], r"test.csv: row 3 has 4 cells, the header has 3"),
    ],
)
def test_a_bad_row_of_the_test_file_is_reported(write: Write, row: list[str], message: str) -> None:
    test = write([ROWS[0], row], "test.csv")
    with pytest.raises(UserError, match=message):
        load_dataset(write(ROWS), target="species", test_path=str(test))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        ("a,label\n", "no rows of data"),
        ("a,a,label\n1,2,x\n", "names the column 'a' twice"),
        ("a,b\n1,2\n", "which column is to be predicted. Set data.target to one of 'a', 'b'"),
        ("label\nx\ny\n", "no columns left to learn from"),
        (",label\n1,x\n2,y\n", "a column has no name"),
        ("a,label\n1,x\n2,x\n3,x\n", "only one class, 'x'"),
        ('a,label\n1,x\n"2,y\n', "cannot be read as CSV"),
        ("a,label\n,x\n?,y\n,x\n,y\n,x\n", "column 'a': no values in the training rows"),
    ],
)
def test_a_table_that_cannot_be_learnt_from_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(UserError, match=rf"t\.csv: .*{message}"):
        load_dataset(tmp_path / "t.csv", test=1)


def test_bytes_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"a,label\n\xff\xfe,x\n")
    with pytest.raises(UserError, match=r"t\.csv: cannot be read as CSV in UTF-8"):
        load_dataset(tmp_path / "t.csv")


def test_free_text_is_not_taken_for_categories(write: Write) -> None:
    path = write([[f"word {i % 1900}", str(i % 7), str(i % 2)] for i in range(2000)], header=("text", "a", "y"))
    (ignored,) = load_dataset(path).preparation.ignored  # type: ignore[union-attr]
    assert ignored.name == "text"
    assert "different values, too many for categories" in ignored.reason
    with pytest.raises(UserError, match=r"column 'text' has \d+ different values, too many"):
        load_dataset(path, categorical=["text"])


@pytest.mark.parametrize("option", ["target", "ignore", "categorical"])
def test_the_error_for_an_unknown_column_lists_the_columns(write: Write, option: str) -> None:
    options: dict[str, Any] = {"target": "species"} | {option: "weight" if option == "target" else ["weight"]}
    message = rf"data\.{option}: .*pets.csv has no column 'weight'; it has 'age', 'town', 'species'"
    with pytest.raises(UserError, match=message):
        load_dataset(write(ROWS), **options)


@pytest.mark.parametrize("wanted", ["Species", "SPECIES", "specis"])
def test_a_misspelt_column_is_suggested(write: Write, wanted: str) -> None:
    with pytest.raises(UserError, match=f"has no column '{wanted}'; did you mean 'species'"):
        load_dataset(write(ROWS), target=wanted)


def test_preprocessing_for_images_is_refused_for_tables(write: Write) -> None:
    with pytest.raises(UserError, match="preprocess = 'contrast' is for images"):
        load_dataset(write(ROWS), target="species", preprocess="contrast")


def parquet(path: Path, columns: dict[str, Any]) -> Path:
    pa = import_module("pyarrow")  # one of the test tools: never skipped
    import pyarrow.parquet  # type: ignore[import-untyped]

    pyarrow.parquet.write_table(pa.table(columns), path)
    return path


def test_parquet_gives_the_same_dataset_as_csv(write: Write, tmp_path: Path) -> None:
    rows = changed(7, 0, "")
    columns = {
        "age": [int(r[0]) if r[0] else None for r in rows],
        "town": [r[1] for r in rows],
        "species": [r[2] for r in rows],
    }
    one, other = (
        load_dataset(write(rows), target="species"),
        load_dataset(parquet(tmp_path / "p.parquet", columns), target="species"),
    )
    assert one.classes == other.classes
    assert one.preparation == other.preparation
    assert torch.equal(one.train.x, other.train.x)
    assert torch.equal(one.test.y, other.test.y)


def test_parquet_booleans_decimals_and_dictionaries_are_used(tmp_path: Path) -> None:
    pa = import_module("pyarrow")  # one of the test tools: never skipped
    columns = {
        "flag": [True, False, None, True] * 5,
        "price": pa.array(range(20)).cast(pa.decimal128(25, 2)),
        "kind": pa.array(["a", "b"] * 10).dictionary_encode(),
        "y": [1, 2] * 10,
    }
    data = load_dataset(parquet(tmp_path / "p.parquet", columns))
    assert data.train.x.shape[1] == 5  # flag, flag is missing, price, a, b
    assert data.classes == ("1", "2")


def test_parquet_errors_name_file_row_and_column(tmp_path: Path) -> None:
    path = parquet(tmp_path / "p.parquet", {"a": [1.0, float("inf"), 3.0, 4.0], "y": [0, 1, 0, 1]})
    with pytest.raises(UserError, match=r"p\.parquet: row 2, column 'a': inf is infinite"):
        load_dataset(path, test_path=str(parquet(tmp_path / "t.parquet", {"a": [1.0], "y": [0]})))
    path = parquet(tmp_path / "q.parquet", {"a": [[1]] * 9, "b": range(9), "y": [0, 1, 2] * 3})
    for target in ("y", "a"):
        with pytest.raises(
            UserError, match=r"q\.parquet: column 'a': list.* cannot be used; .* list it in data.ignore"
        ):
            load_dataset(path, target=target)
    assert load_dataset(path, ignore=["a"]).train.x.shape[1] == 1
    (tmp_path / "r.parquet").write_bytes(b"PAR1 nonsense PAR1")
    with pytest.raises(UserError, match=r"r\.parquet: cannot be read as Parquet"):
        load_dataset(tmp_path / "r.parquet")


def test_parquet_dates_in_place_of_numbers_are_named_unless_all_are_missing(tmp_path: Path) -> None:
    from datetime import datetime

    import pyarrow as pa
    import pyarrow.parquet as pq

    missing, dates = [None, None], [None, datetime(2020, 1, 2)]
    for name, cells in (("missing", missing), ("dates", dates)):
        pq.write_table(pa.table({"a": pa.array(cells, pa.timestamp("us"))}), tmp_path / f"{name}.parquet")
    assert np.isnan(read_table(tmp_path / "missing.parquet").numbers("a")).all()
    with pytest.raises(UserError, match="row 2, column 'a': '2020-01-02' is not a number, but other rows hold numbers"):
        read_table(tmp_path / "dates.parquet").numbers("a")


def test_without_pyarrow_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "p.parquet").touch()
    real = builtins.__import__

    def absent(name: str, *rest: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(UserError, match=re.escape(install_command("parquet"))):
        load_dataset(tmp_path / "p.parquet")


def test_the_row_numbers_that_pandas_saves_are_not_a_feature(tmp_path: Path) -> None:
    pa = import_module("pyarrow")  # one of the test tools: never skipped
    import pyarrow.parquet

    columns = {"a": [3, 1, 2, 5] * 5, "y": [0] * 10 + [1] * 10, "patient": range(20), "__index_level_1__": range(20)}
    table = pa.table(columns)
    saved = {b"pandas": json.dumps({"index_columns": ["patient", "__index_level_1__"]}).encode()}
    pyarrow.parquet.write_table(table.replace_schema_metadata(saved), tmp_path / "p.parquet")
    data = load_dataset(tmp_path / "p.parquet")
    assert isinstance(data.preparation, TablePreparation)
    assert [column.name for column in data.preparation.numbers] == ["a", "patient"]  # an index with a name is a column
    pyarrow.parquet.write_table(table, tmp_path / "q.parquet")  # somebody else's column of that name
    assert load_dataset(tmp_path / "q.parquet").train.x.shape[1] == 3


def test_more_columns_than_a_table_may_have_are_refused(tmp_path: Path) -> None:
    names = ",".join(f"c{i}" for i in range(200_001))
    (tmp_path / "wide.csv").write_text(f"{names}\n{'1,' * 200_000}1\n")
    with pytest.raises(UserError, match=r"wide\.csv: has 200,001 columns, and a table may have 200,000"):
        load_dataset(tmp_path / "wide.csv", target="c0")
