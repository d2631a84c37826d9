"""What the columns of a table are taken for, what becomes of them, and what is said about them."""

import json
import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from verydeep.config import from_dict, to_dict
from verydeep.data import DataConfig, Inputs, TablePreparation, load_dataset, read_table
from verydeep.errors import UserError

Write = Callable[..., Path]
N = 150


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write columns, next to a feature `f` and a target `y`, as a CSV file."""

    def table(name: str = "t.csv", encoding: str = "utf-8", delimiter: str = ",", **columns: list[Any]) -> Path:
        count = len(next(iter(columns.values()), range(N)))
        data = {**columns, "f": columns.get("f", [i % 7 for i in range(count)]), "y": (["u", "v"] * count)[:count]}
        rows = [tuple(data), *zip(*data.values(), strict=True)]
        lines = (delimiter.join(f'"{cell}"' if "," in str(cell) else str(cell) for cell in row) for row in rows)
        (tmp_path / name).write_text("\n".join(lines), encoding)
        return tmp_path / name

    return table


def prepared(path: Path, **options: Any) -> TablePreparation:
    preparation = load_dataset(path, **options).preparation
    assert isinstance(preparation, TablePreparation)
    return preparation


def raw(path: Path, **options: Any) -> dict[str, np.ndarray]:
    """All features by name, not standardised, in the order of the file."""
    preparation = prepared(path, preprocess="none", **options)
    samples = preparation(read_table(path)).double().numpy()
    return dict(zip(preparation.features, samples.T, strict=True))


@pytest.mark.parametrize(
    ("cells", "form", "values"),
    [
        (["14.23%", "7 %", "-1.5%"], "percent", [14.23, 7, -1.5]),
        (["1,234,567", "999", "-1,000.5"], "grouped", [1234567, 999, -1000.5]),
        (["True", "false", "TRUE"], "boolean", [1, 0, 1]),
        (["1.5", " 2", "+3e1"], "number", [1.5, 2, 30]),
    ],
)
def test_numbers_may_be_written_in_several_ways(write: Write, cells: list[str], form: str, values: list[float]) -> None:
    path = write(a=cells * (N // 3))
    assert raw(path)["a"] == pytest.approx(values * (N // 3), rel=1e-6)
    column = next(column for column in prepared(path).numbers if column.name == "a")
    assert column.form == form


DAY = date(2020, 3, 4)


@pytest.mark.parametrize(
    ("written", "form"),
    [
        ("%Y-%m-%d", "iso"),
        ("%Y/%m/%d", "iso"),
        ("%Y-%m-%dT00:00:00Z", "iso"),
        ("%Y-%m-%d 02:00:00+02:00", "iso"),
        ("%d.%m.%Y", "day-first"),
        ("%d/%m/%Y", "day-first"),
        ("%d-%m-%Y", "day-first"),
        ("%m/%d/%Y", "month-first"),
        ("%d %b %Y", "day-first"),
        ("%B %d, %Y", "day-first"),
        ("%d-%b-%Y 12:00 AM", "day-first"),
    ],
)
def test_dates_are_recognised_in_common_forms(write: Write, written: str, form: str) -> None:
    days = [DAY + timedelta(days=i) for i in range(N)]
    path = write(when=[day.strftime(written) for day in days])
    (column,) = prepared(path).dates
    assert column.form == f"{form} date"
    assert raw(path)["when: days"].tolist() == [(day - date(1970, 1, 1)).days for day in days]


def test_dates_become_elapsed_days_and_the_cycles_that_the_rows_cover(write: Write) -> None:
    def cycles(step: timedelta) -> tuple[str, ...]:
        moments = [datetime(2020, 3, 4, 5) + i * step for i in range(N)]
        return prepared(write(when=[f"{moment:%Y-%m-%d %H:%M}" for moment in moments])).dates[0].cycles

    assert cycles(timedelta(days=30)) == ("year", "week")  # always at five o'clock
    assert cycles(timedelta(hours=25)) == ("week", "day")
    assert cycles(timedelta(minutes=1)) == ()
    features = raw(write(when=[DAY + timedelta(days=i) for i in range(N)]))
    assert set(features) == {"f", "when: days", "when: sine of the week", "when: cosine of the week"}
    wave = features["when: sine of the week"]
    assert wave[:7] == pytest.approx(wave[7:14], abs=1e-5)
    assert wave**2 + features["when: cosine of the week"] ** 2 == pytest.approx(np.ones(N), abs=1e-5)


def test_the_order_of_day_and_month_is_asked_for_if_it_is_unclear(write: Write) -> None:
    path = write(when=[f"{i % 12 + 1}/{i % 5 + 1}/2021" for i in range(N)])
    message = r"t.csv: column 'when': '\d+/\d/2021' may have the day or the month first; set data.date_order = 'day' or"
    with pytest.raises(UserError, match=message):
        load_dataset(path)
    assert prepared(path, date_order="month").dates[0].form == "month-first date"
    days = raw(path, date_order="day")["when: days"]
    assert days[1] - days[0] == (date(2021, 2, 2) - date(2021, 1, 1)).days


def test_gaps_are_filled_and_marked(write: Write) -> None:
    path = write(
        a=[i % 5 if i % 3 else "" for i in range(N)],
        town=["NA" if i % 4 == 0 else "Rome" if i % 4 == 1 else "Oslo" for i in range(N)],
        when=["?" if i % 6 == 0 else DAY + timedelta(days=i) for i in range(N)],
    )
    features = raw(path)
    for name, every in (("a", 3), ("town", 4), ("when", 6)):
        assert features[f"{name} is missing"].tolist() == [float(i % every == 0) for i in range(N)]
    assert "f is missing" not in features
    assert features["town=Oslo"][0] == 1.0
    assert np.isfinite(np.stack(list(features.values()))).all()


def test_a_gap_in_new_rows_only_is_filled_and_not_marked(write: Write) -> None:
    preparation = prepared(write(a=[i % 5 for i in range(N)]))
    new = preparation(read_table(write("new.csv", a=["", "2"])))
    assert preparation.features == ("a", "f")
    assert new[0, 0] == new[1, 0]  # the median is 2


@pytest.mark.parametrize(
    ("name", "cells", "reason"),
    [
        ("code", [f"k{i}" for i in range(N)], "text that is different in every row; .* data.categorical: \\['code'\\]"),
        ("key", [i if i % 3 == 0 else f"A{i}" for i in range(N)], "text that is different in every row"),
        ("id", [7 * i**2 for i in range(N)], "an identifier, different in every row; .* data.numeric: \\['id'\\]"),
        ("PatientID", [1000 - i for i in range(N)], "an identifier, different in every row"),
        ("customer_id", [i**2 for i in range(N)], "an identifier"),
        ("n", list(range(N)), "row numbers; to use it, list it in data.numeric: \\['n'\\]"),
        ("n", list(range(100, 100 + N)), "row numbers"),
        ("c", [5] * N, "the same value, 5, in all training rows"),
        ("c", ["x"] * N, "the same value, 'x', in all training rows"),
        ("c", ["2020-01-01"] * N, "the same value, 2020-01-01, in all training rows"),
        ("c", [""] * N, "no values in the training rows"),
    ],
)
def test_columns_without_use_are_left_out_and_named(write: Write, name: str, cells: list[Any], reason: str) -> None:
    preparation = prepared(write(**{name: cells}), seed=3)
    assert preparation.names == ("f",)
    (line,) = [line for line in preparation.describe() if line.startswith("ignored")]
    assert re.match(rf"ignored '{name}': {reason}", line), line
    assert preparation(read_table(write("new.csv", f=[1, 2]))).shape == (2, 1)


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("paid", [7 * i**2 for i in range(N)]),  # ends in "id"
        ("id", [i % 60 for i in range(N)]),  # not different in every row
        ("size", [i / 4 for i in range(N)]),
        ("c", ["", *["5"] * (N - 1)]),  # the gap says something
    ],
)
def test_useful_columns_are_kept(write: Write, name: str, cells: list[Any]) -> None:
    assert name in prepared(write(**{name: cells}), test_path=str(write("test.csv", **{name: cells[:3]}))).names


def test_columns_that_look_useless_can_be_used(write: Write) -> None:
    path = write(id=[i**2 for i in range(N)], key=[f"k{i}" for i in range(N)], c=[5] * N)
    preparation = prepared(path, numeric=["id", "c"], categorical=["key"], test_path=str(path))
    assert preparation.names == ("id", "c", "f", "key")
    assert len(preparation.categories[0].values) == N
    with pytest.raises(UserError, match="column 'key': 'k0' is not a number"):
        load_dataset(path, numeric=["key"], test_path=str(path))
    with pytest.raises(UserError, match=r"data.numeric: .* has no column 'kay'; did you mean 'key'"):
        load_dataset(path, numeric=["kay"])


def test_all_columns_that_cannot_be_used_are_named_at_once(write: Write) -> None:
    path = write(
        a=["few", *range(1, N)],
        b=[f"{i % 9},5" for i in range(N)],
        c=[f"{i % 3 + 1}/{i % 4 + 1}/2020" for i in range(N)],
        d=[f"{i % 8 + 1},000" for i in range(N)],
        e=["1", "2", "3%"] * (N // 3),
    )
    with pytest.raises(UserError) as caught:
        load_dataset(path, test_path=str(path))
    message = str(caught.value)
    assert message.startswith(f"{path}: 5 columns cannot be used: row 2, column 'a': 'few' is not a number, but row 3")
    assert "; column 'b': '0,5' has a decimal comma; set data.decimal = ','; " in message
    assert "column 'c': '1/1/2020' may have the day or the month first" in message
    assert "column 'd': '1,000' may have a thousands separator or a decimal comma; " in message
    assert "row 4, column 'e': '3%' is not a number, but row 2 holds '1'" in message
    assert "\n" not in message


def test_decimal_commas_are_read_by_option(write: Write) -> None:
    german = write(
        "de.csv", delimiter=";", a=[f"{i},5" for i in range(N)], b=[f"{i % 9}.000,25" for i in range(N)], c=["7,5%"] * N
    )
    assert prepared(german, delimiter=";", decimal=",").numbers[0].mean > 0
    english = write(a=[f"{i}.5" for i in range(N)], b=[f"{i % 9 * 1000}.25" for i in range(N)], c=["7.5%"] * N)
    one, other = load_dataset(german, delimiter=";", decimal=","), load_dataset(english)
    assert torch.equal(one.train.x, other.train.x)
    with pytest.raises(UserError, match=r"column 'a': '0\.5' has a decimal point; leave data.decimal out"):
        load_dataset(english, decimal=",", ignore=["b", "c"], test_path=str(english))


def test_targets_may_have_decimal_commas(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a;y\n" + "".join(f"{i % 7};{i},5\n" for i in range(N)))
    data = load_dataset(tmp_path / "t.csv", delimiter=";", decimal=",")
    assert data.task.kind == "regression"
    assert (data.task.restore(data.train.y) % 1).numpy() == pytest.approx(0.5, abs=1e-4)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-le", "utf-8-sig", "cp1252"])
def test_other_encodings_are_read_by_option(write: Write, encoding: str) -> None:
    towns = [("Zürich", "Besançon", "Rome")[i % 3] for i in range(N)]
    path = write(encoding=encoding, town=towns)
    assert prepared(path, encoding=encoding).categories[0].values == ("Besançon", "Rome", "Zürich")


@pytest.mark.parametrize("encoding", ["utf9", "base64", "rot13", "utf\0"])
def test_what_does_not_encode_text_is_refused(encoding: str) -> None:
    with pytest.raises(UserError, match=r"data\.encoding: unknown encoding '.*'; try 'utf-8', 'latin-1' or 'utf-16'"):
        DataConfig("t.csv", encoding=encoding)


@pytest.mark.parametrize(
    ("encoding", "advice"),
    [
        (
            "latin-1",
            "cannot be read as CSV in UTF-8 .*; if it was saved in an older encoding, set data.encoding = 'lat",
        ),
        ("utf-16", "is UTF-16 text, not UTF-8; set data.encoding = 'utf-16', or save it as UTF-8"),
        ("utf-16-le", "is UTF-16 text"),
        ("utf-16-be", "is UTF-16 text"),
    ],
)
def test_other_encodings_are_recognised(write: Write, encoding: str, advice: str) -> None:
    with pytest.raises(UserError, match=rf"t\.csv: {advice}"):
        load_dataset(write(encoding=encoding, town=["Zürich", "Rome"] * (N // 2)))
    with pytest.raises(UserError, match=r"data.encoding: unknown encoding 'latin1000'; try 'utf-8', 'latin-1' or"):
        load_dataset(write(a=range(N)), encoding="latin1000")


@pytest.mark.parametrize(("mark", "shown"), [(";", ";"), ("\t", r"\\t"), ("|", r"\|")])
def test_another_delimiter_is_recognised(write: Write, mark: str, shown: str) -> None:
    path = write(delimiter=mark, a=[f"{i}.5" for i in range(N)])
    message = rf"row 1 has no ','; '{shown}' seems to separate the columns: set data.delimiter = '{shown}' "
    with pytest.raises(UserError, match=message):
        load_dataset(path)
    assert prepared(path, delimiter=mark.replace("\t", r"\t")).names == ("a", "f")


def test_a_tsv_file_has_tabs(write: Write) -> None:
    assert prepared(write("t.tsv", delimiter="\t", a=[f"{i},5" for i in range(N)]), decimal=",").names == ("a", "f")


def test_a_summary_says_what_each_column_is(write: Write) -> None:
    path = write(
        rate=[f"{i % 9}%" for i in range(N)],
        gap=[i % 4 or "" for i in range(N)],
        town=["Rome", "Oslo", "Kyiv"] * (N // 3),
        when=[DAY + timedelta(days=i) for i in range(N)],
        key=[f"k{i}" for i in range(N)],
    )
    assert prepared(path).describe() == (
        "3 numbers (percentages: 'rate'; with gaps: 'gap')",
        "1 category (3 features)",
        "1 date ('when': ISO, days, cycle of the week)",
        "ignored 'key': text that is different in every row; to use it, list it in data.categorical: ['key']",
    )


def test_missing_columns_and_unknown_categories_of_new_rows_are_named(write: Write) -> None:
    preparation = prepared(write(a=[i % 5 for i in range(N)], town=["Rome", "Oslo"] * (N // 2), code=["u", "v"] * 75))
    new = read_table(write("new.csv", a=[1, 2, 3], town=["Mars", "Rome", "Mars"], code=["u", "", "v"]))
    assert preparation.unknown_categories(new) == {"town": {"Mars": 2}}
    assert preparation(new)[0, 2:4].tolist() == [0, 0]
    lacking = read_table(write("less.csv", code=["u"]))
    with pytest.raises(UserError, match=r"less.csv: no columns 'a', 'town'; it has 'code', 'f', 'y'$"):
        preparation(lacking)
    wrong = read_table(write("wrong.csv", a=["old"], town=["Rome"], code=["u"], f=["new"]))
    with pytest.raises(UserError, match=r"2 columns cannot be used: row 2, column 'a': 'old' .*; row 2, column 'f'"):
        preparation(wrong)


def test_a_percentage_without_its_sign_is_not_taken_for_one(write: Write) -> None:
    preparation = prepared(write(rate=[f"{i % 9}%" for i in range(N)]))
    with pytest.raises(UserError, match=r"column 'rate': '0\.07' is not a percentage, but other rows hold percentages"):
        preparation(read_table(write("new.csv", rate=["0.07"])))


def test_a_preparation_survives_json_and_older_ones_give_the_same_features(write: Write) -> None:
    path = write(
        a=[i % 5 if i % 3 else "" for i in range(N)],
        town=["", "Rome", "Oslo"] * (N // 3),
        when=[DAY + timedelta(days=i) for i in range(N)],
    )
    inputs = Inputs.of(load_dataset(path))
    assert from_dict(Inputs, json.loads(json.dumps(to_dict(inputs)))) == inputs
    old = {  # as version 0.3.0 wrote it
        "numbers": [{"name": "a", "fill": 2.0, "mean": 1.5, "deviation": 0.5}],
        "categories": [{"name": "town", "fill": "Rome", "values": ["Oslo", "Rome"]}],
    }
    preparation = from_dict(TablePreparation, old)
    assert preparation.features == ("a", "town=Oslo", "town=Rome")
    assert preparation(read_table(path))[:3].tolist() == [[1.0, 0, 1], [-1.0, 0, 1], [1.0, 1, 0]]


def test_codes_are_the_same_categories_in_new_rows(write: Write) -> None:
    path = write(code=["01", "1", "2.0"] * (N // 3))
    inputs = Inputs.of(load_dataset(path, categorical=["code"]))
    assert isinstance(inputs.preparation, TablePreparation)
    assert inputs.preparation.categories[0].values == ("01", "1", "2")
    assert inputs.read(write("new.csv", code=["01", "2"]))[:, 1:].tolist() == [[1, 0, 0], [0, 0, 1]]
