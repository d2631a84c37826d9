"""pyarrow and Python's csv read every file to the same dataset or the same error, in parts of any size."""

import gc
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings, strategies as st

from verydeep.data import Dataset, Table, TableOptions, iterate_tables, load_dataset, read_table, reading_progress
from verydeep.errors import UserError

PYARROW = "verydeep.data.own._csv_pyarrow"

many = settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@contextmanager
def without_pyarrow() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{PYARROW}.find_spec", lambda _name: None)
        yield


def outcome(path: Path, **options: Any) -> Dataset | str:
    try:
        return load_dataset(path, **options)
    except UserError as error:
        return str(error)


def assert_same(path: Path, **options: Any) -> Dataset | str:
    fast = outcome(path, **options)
    with without_pyarrow():
        slow = outcome(path, **options)
    if isinstance(fast, str) or isinstance(slow, str):
        assert fast == slow
        assert len(str(fast).splitlines()) == 1
        return fast
    assert (fast.task, fast.preparation) == (slow.task, slow.preparation)
    for one, other in ((fast.train, slow.train), (fast.test, slow.test)):
        assert torch.equal(one.x, other.x)
        assert torch.equal(one.y, other.y)
    return fast


plain = st.sampled_from(["1", "2.5", "-3e2", " 7", "+4", "1.", ".5", "", "NA", " nan ", "N/A", "?", "null"])
odd = st.sampled_from(
    ["inf", "nan(1)", "1_0", "0x1", "１", "1e400", "true", "False", "5%", "1,234", "1,5", "2020-01-02", "3/4/2020"]
)
quoted = st.sampled_from(['"1"', '"a ""b"" c"', '"x\ny"', '"x\n\ny"', '""', '"a,b"', '"a"b', 'a"b', '"open', ' "1"'])
words = st.sampled_from(["Rome", "Oslo", "élan", "a\x1cb", "\x1f1"]) | st.text(max_size=3)
column = st.sampled_from([plain, plain | words, plain | odd, words, quoted | plain, odd]).flatmap(
    lambda cell: st.lists(cell, min_size=12, max_size=12)
)


@many
@given(
    st.lists(column, min_size=1, max_size=3),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["", "\ufeff"]),
    st.lists(st.tuples(st.integers(0, 11), st.sampled_from(["", " ", ",", "1"])), max_size=1),
)
@example([['"a"b'] * 12], "\n", "", [])
@example([['"x\n\ny"', "u"] * 6], "\n", "", [])
@example([["1", "2", "3", "x"] * 3], "\r\n", "\ufeff", [(3, "")])
def test_both_readers_give_the_same_dataset_or_error(
    tmp_path: Path, cells: list[list[str]], end: str, mark: str, extra: list[tuple[int, str]]
) -> None:
    header = ",".join([*(f"c{i}" for i in range(len(cells))), "i", "y"])
    lines = [",".join([*row, str(i % 5), "uv"[i % 2]]) for i, row in enumerate(zip(*cells, strict=True))]
    for place, line in extra:
        lines.insert(place, line)
    (tmp_path / "t.csv").write_bytes((mark + end.join([header, *lines]) + end).encode(errors="surrogatepass"))
    assert_same(tmp_path / "t.csv", test=2)


@many
@given(st.text(alphabet='ab1.,"\n\r; ', max_size=60), st.sampled_from([7, 20, 2**22]))
def test_both_readers_give_the_same_for_any_text(tmp_path: Path, text: str, block: int) -> None:
    (tmp_path / "t.csv").write_bytes(f"a,y\n{text}".encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{PYARROW}._BLOCK", block)
        assert_same(tmp_path / "t.csv", test=0.5)


def test_pyarrow_is_used_for_files_with_quotes_and_line_breaks_in_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f'"a ""{i % 3}"" b","x{i % 2}\ny",{i},{i % 2}' for i in range(30)]
    (tmp_path / "t.csv").write_text("\n".join(["s,t,x,y", *lines]) + "\n\n")
    assert not isinstance(assert_same(tmp_path / "t.csv"), str)
    monkeypatch.setattr("verydeep.data.own._csv_file.column_of", None)
    assert load_dataset(tmp_path / "t.csv").train.x.shape[1] == 6


def test_the_threads_of_pyarrow_do_not_need_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that reads ahead in a file of Python while Python exits, after an error, would abort the process."""
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow import csv

    files, open_csv = [], csv.open_csv

    def noted(file: object, **options: Any) -> Any:
        files.append(file)
        return open_csv(file, **options)

    monkeypatch.setattr(csv, "open_csv", noted)
    (tmp_path / "t\udcff.csv").write_text("a,b\n1,2\n")
    assert len(read_table(tmp_path / "t\udcff.csv")) == 1
    assert [type(file) for file in files] == [pa.OSFile]


def test_a_ragged_row_far_down_is_named_by_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{PYARROW}._BLOCK", 512)
    (tmp_path / "t.csv").write_text("a,y\n" + "".join(f"{i},{i % 2}\n" for i in range(900)) + "1\n5,1\n")
    assert assert_same(tmp_path / "t.csv") == (
        f"{tmp_path / 't.csv'}: row 902 has 1 cells, the header has 2; correct that row"
    )
    seen: list[float] = []
    with pytest.raises(UserError, match="row 902 has 1 cells"):
        seen.extend(cell for part in iterate_tables(tmp_path / "t.csv", rows=100) for cell in part.numbers("a"))
    assert seen == list(range(len(seen)))
    assert len(seen) > 700


def test_a_word_far_down_is_named_by_both_and_numbers_stay_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{PYARROW}._BLOCK", 512)
    monkeypatch.setattr("verydeep.data.own._csv_file._LEAST_ROWS", 16)
    monkeypatch.setattr("verydeep.data.own._csv_file._CELLS", 32)
    rows = [f"{i % 7}.50,{i % 2}" for i in range(600)]
    (tmp_path / "t.csv").write_text("\n".join(["a,y", *rows[:500], "many,1", *rows[500:]]))
    message = assert_same(tmp_path / "t.csv", test=1)
    assert "row 502, column 'a': 'many' is not a number, but row 2 holds '0.50'" in str(message)
    assert not isinstance(assert_same(tmp_path / "t.csv", categorical=["a"]), str)
    table = read_table(tmp_path / "t.csv")
    assert set(table.text("a")) == {*(f"{i}.50" for i in range(7)), "many"}


SOURCES: list[Callable[[Path], Any]] = [lambda path: path, lambda path: io.BytesIO(path.read_bytes())]


@pytest.mark.parametrize("source", SOURCES, ids=["file", "stream"])
@pytest.mark.parametrize("rows", [1, 7, 50, 1000])
def test_parts_are_the_whole_table(
    tmp_path: Path, source: Callable[[Path], Any], rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{PYARROW}._BLOCK", 300)
    (tmp_path / "t.csv").write_text("a,town,y\n" + "".join(f"{i}.5,t{i % 3},0{i % 2}\n" for i in range(120)))
    parts = list(iterate_tables(source(tmp_path / "t.csv"), TableOptions(text=frozenset(["y"])), rows))
    assert max(len(part) for part in parts) <= rows
    assert np.concatenate([part.rows for part in parts]).tolist() == list(range(2, 122))
    assert np.concatenate([part.numbers("a") for part in parts]).tolist() == [i + 0.5 for i in range(120)]
    assert np.concatenate([part.text("town") for part in parts]).tolist() == [f"t{i % 3}" for i in range(120)]
    assert np.concatenate([part.text("y") for part in parts]).tolist() == [f"0{i % 2}" for i in range(120)]


def test_a_stream_is_left_open_and_its_errors_name_it() -> None:
    stream = io.BytesIO(b"a,b\n1,2\n3\n")
    with pytest.raises(UserError, match="standard input: row 3 has 1 cells, the header has 2"):
        list(iterate_tables(stream))
    assert not stream.closed


def test_rows_of_a_stream_are_counted_as_those_of_a_file(tmp_path: Path) -> None:
    content = b"a,b\n1,2\nword,3\n"
    (tmp_path / "t.csv").write_bytes(content)
    for source in (tmp_path / "t.csv", io.BytesIO(content)):
        with pytest.raises(UserError, match=r": row 3, column 'a': 'word' is not a number"):
            next(iterate_tables(source)).numbers("a")


def test_a_reader_that_an_error_left_unfinished_is_collected_quietly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.csv").write_text("a,b\n" + "1,2\n" * 500)
    complaints: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    with without_pyarrow():
        tables = iterate_tables(tmp_path / "t.csv", rows=100)
        next(tables)
    records = tables.gi_frame.f_locals["records"]  # type: ignore[attr-defined]
    records.text.close()  # as the garbage collector does, in an order of its own
    del tables, records
    gc.collect()
    assert complaints == []


def test_parquet_is_read_in_parts(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet  # type: ignore[import-untyped]

    pyarrow.parquet.write_table(pa.table({"a": range(100), "b": ["u", None] * 50}), tmp_path / "t.parquet", 30)
    parts = list(iterate_tables(tmp_path / "t.parquet", TableOptions(skip=frozenset(["b"])), 40))
    assert sum(len(part) for part in parts) == 100
    assert max(len(part) for part in parts) <= 40
    assert all(list(part.columns) == ["a"] for part in parts)
    assert parts[-1].rows[-1] == 100
    pyarrow.parquet.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "none.parquet")
    assert [len(part) for part in iterate_tables(tmp_path / "none.parquet")] == [0]


@pytest.mark.parametrize("fast", [True, False])
def test_progress_is_reported_while_a_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fast: bool) -> None:
    monkeypatch.setattr(f"{PYARROW}._BLOCK", 1000)
    if not fast:
        monkeypatch.setattr(f"{PYARROW}.find_spec", lambda _name: None)
    (tmp_path / "t.csv").write_text("a,y\n" + "1,2\n" * 30_000)
    seen: list[tuple[str, float]] = []
    with reading_progress(lambda name, fraction: seen.append((name, fraction))):
        read_table(tmp_path / "t.csv")
    assert {name for name, _ in seen} == {"t.csv"}
    fractions = [fraction for _, fraction in seen]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
    assert any(0.3 < fraction < 0.7 for fraction in fractions)
    count = len(seen)
    read_table(tmp_path / "t.csv")
    assert len(seen) == count


def test_text_is_stored_once_per_value(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("town,y\n" + "Rome,1\nOslo,2\n" * 500)
    table: Table = read_table(tmp_path / "t.csv")
    assert table.as_text("town").values == ("Rome", "Oslo")
    assert table[torch.tensor([1, 3])].as_text("town").distinct == ["Oslo"]
