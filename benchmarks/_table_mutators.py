"""Valid tables and what can be wrong with a table: mutations of its cells, columns, writing and bytes, and options."""

import csv
import io
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow  # type: ignore[import-untyped]
import pyarrow.parquet  # type: ignore[import-untyped]

ROWS = 40  # of a valid table

WORDS = [
    *("", " ", "NA", "nan", "NaN", "?", "null", "None", "inf", "-inf", "Infinity", "1e39", "-1e300", "1e400", "1e-320"),
    *("0x10", "1_000", "1 000", "1,234", "1.234,5", "1,234,567.8", "12%", "%", "nan%", "inf%", "1e300%", "--", "."),
    *("2020-02-30", "31/12/9999", "0001-01-01", "9999-12-31T23:59:59+00:01", "0001-01-01 00:00-23:59", "3/4/2020"),
    *("30 Feb 2021", "TRUE", "false", "0", "1", "-0.0", "007", "9007199254740993", "a\0b", "a\nb", "a\r\nb", '"', "'"),
    *('say "hi"', ";", "\t", "|", "é", "\N{GRINNING FACE}", "\ufeff", "\u202e", "\x1b[31m", "\u0661\u0662", "½", "²"),
    *("=1+1", "x" * 3000, "9" * 400, "1e", "e", "  7  ", "12:30", "a,b", "a=b", "--target", "\x85", "\u2028", "\x0b"),
]
NAMES = [
    *("", " ", "a,b", 'a"b', "a\nb", "a\0b", "x" * 200, "é", "label", "LABEL", "y", "predicted_label", "a=1", "\x1b["),
    *("__index_level_0__", "names", "predicted", "probability_no", "--keep", "'", "\u2028", "all", "-", "1", "nan"),
]
SUFFIXES = [".csv", ".tsv", ".parquet", ".CSV", ".txt", ".npz", ""]
ENCODINGS = [
    "utf-8-sig",
    "utf-16",
    "utf-16-le",
    "utf-16-be",
    "utf-32",
    "latin-1",
    "cp1252",
    "utf-7",
    "cp037",
    "shift-jis",
]
TYPES = [
    "list",
    "struct",
    "dictionary",
    "binary",
    "date32",
    "timestamp[us]",
    "int64",
    "int8",
    "bool",
    "float16",
    "null",
]
TYPES += ["time64[us]", "duration[s]", "uint64", "float32", "large_string", "date64"]
BYTES = [b"\0", b'"', b"'", b"\r", b"\n", b"\xff\xfe", b"\xef\xbb\xbf", b"\xe9", b",", b";", b"\x1a"]


@dataclass
class Sheet:
    """A table as text, and how it is written."""

    header: list[str]
    rows: list[list[str]]
    targets: tuple[str, ...]
    options: list[str]
    suffix: str = ".csv"
    delimiter: str = ","
    newline: str = "\n"
    encoding: str = "utf-8"
    quote_all: bool = False
    types: dict[str, str] = field(default_factory=dict)
    changes: list[Callable[[bytes], bytes]] = field(default_factory=list)

    def column(self, name: str, cells: Callable[[int], str]) -> None:
        if name in self.header:
            at = self.header.index(name)
            for number, row in enumerate(self.rows):
                if at < len(row):
                    row[at] = cells(number)

    def content(self) -> bytes:
        data = self._parquet() if self.suffix == ".parquet" else self._text()
        for change in self.changes:
            data = change(data)
        return data

    def _text(self) -> bytes:
        file = io.StringIO()
        quoting: Any = csv.QUOTE_ALL if self.quote_all else csv.QUOTE_MINIMAL
        writer = csv.writer(file, delimiter=self.delimiter, lineterminator=self.newline, quoting=quoting)
        writer.writerow(self.header)
        writer.writerows(self.rows)
        return file.getvalue().encode(self.encoding, "replace")

    def _parquet(self) -> bytes:
        arrays = []
        for at, name in enumerate(self.header):
            cells = [row[at] if at < len(row) and row[at] else None for row in self.rows]
            arrays.append(arrow_column(cells, self.types.get(name, "")))
        sink = pyarrow.BufferOutputStream()
        pyarrow.parquet.write_table(pyarrow.Table.from_arrays(arrays, names=self.header), sink)
        return bytes(sink.getvalue())


def arrow_column(cells: list[str | None], kind: str) -> Any:  # noqa: ANN401 - pyarrow has no types
    """A column of a Parquet file; of text if the cells are not all of the kind, and without one, of numbers or text."""
    text = pyarrow.array(cells, pyarrow.string())
    try:
        if kind == "list":
            return pyarrow.array([[cell] for cell in cells])
        if kind == "struct":
            return pyarrow.array([{"a": cell} for cell in cells])
        if kind == "dictionary":
            return text.dictionary_encode()
        numbers = pyarrow.array([None if cell is None else float(cell) for cell in cells], pyarrow.float64())
        return numbers.cast(pyarrow.type_for_alias(kind), safe=False) if kind else numbers
    except (ValueError, pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
        try:
            return text.cast(pyarrow.type_for_alias(kind)) if kind in ("binary", "date32", "timestamp[us]") else text
        except (ValueError, pyarrow.ArrowInvalid):
            return text


def rows_of(cells: Callable[[], list[str]]) -> list[list[str]]:
    return [cells() for _ in range(ROWS)]


def flowers(draw: random.Random) -> Sheet:
    """A classification in CSV with quotes and gaps."""

    def cells() -> list[str]:
        colour, petals = draw.choice(["red", "blue", "red, pale", ""]), draw.choice(["5", "7.5", "NA", "9"])
        return [f"{draw.gauss(3, 1):.2f}", colour, petals, draw.choice(["yes", "no", "may be"])]

    return Sheet(["size", "colour", "petals", "label"], rows_of(cells), ("label",), [])


def houses(draw: random.Random) -> Sheet:
    """A regression with semicolons, decimal commas, dates and percentages."""

    def cells() -> list[str]:
        area, price = (f"{draw.gauss(300, 50):.2f}".replace(".", ",") for _ in range(2))
        sold = f"{draw.randint(1, 28)}.{draw.randint(1, 12)}.{draw.randint(2000, 2020)}"
        return [area, f"{draw.randint(0, 100)} %", draw.choice(["A", "B", "C"]), sold, price]

    options = ["--delimiter", ";", "--decimal", ",", "--target", "price"]
    return Sheet(["area", "garden", "zone", "sold", "price"], rows_of(cells), ("price",), options, delimiter=";")


def songs(draw: random.Random) -> Sheet:
    """Two labels, separated by tabs."""

    def cells() -> list[str]:
        sound = [str(draw.randint(60, 180)), f"{draw.random():.3f}", draw.choice(["major", "minor"])]
        return [*sound, str(draw.randint(0, 1)), str(draw.randint(0, 1))]

    header, options = ["tempo", "energy", "mode", "rock", "loud"], ["--target", "rock,loud"]
    return Sheet(header, rows_of(cells), ("rock", "loud"), options, ".tsv", "\t")


def visits(draw: random.Random) -> Sheet:
    """A classification in Parquet."""

    def cells() -> list[str]:
        day = f"2021-0{draw.randint(1, 9)}-1{draw.randint(0, 9)}"
        spent, member = f"{draw.gauss(0, 1):.3f}", draw.choice(["0", "1", ""])
        return [spent, member, day, draw.choice(["web", "shop"]), str(draw.randint(0, 2))]

    types = {"member": "bool", "day": "date32", "place": "dictionary", "y": "int64"}
    return Sheet(["spent", "member", "day", "place", "y"], rows_of(cells), ("y",), [], ".parquet", types=types)


TABLES = {make.__name__: make for make in (flowers, houses, songs, visits)}


# What a mutation does to a sheet. All take the sheet and the random numbers.


def some_cells(sheet: Sheet, draw: random.Random) -> None:
    for _ in range(draw.choice([1, 1, 2, 5, 30])):
        if any(sheet.rows):
            row = draw.choice([row for row in sheet.rows if row])
            row[draw.randrange(len(row))] = draw.choice(WORDS)


def whole_column(sheet: Sheet, draw: random.Random) -> None:
    word, words = draw.choice(WORDS), draw.sample(WORDS, 3)
    big = draw.choice([1e18, 1e30, 3e38, 1e200])
    choices: list[Callable[[int], str]] = [
        lambda _: word,
        lambda _: draw.choice(words),
        lambda i: f"id-{i}",
        str,
        lambda i: str(i) if i % 2 else "word",
        lambda i: f"{draw.gauss(0, big):.9g}",
        lambda i: f"{big + i:.17g}",
        lambda i: draw.choice(["2020-01-01", "1.2.2020", "Jan 5, 2020", "2020-13-45"]),
        lambda i: draw.choice(["1%", "2", "3,5", "4.5"]),
        lambda i: str(2**63 + i),
        lambda i: f"{i}e-310",
    ]
    cells = draw.choice(choices)
    sheet.column(draw.choice([*sheet.header, *sheet.targets]), cells)


def target_cells(sheet: Sheet, draw: random.Random) -> None:
    word, big = draw.choice(WORDS), draw.choice([1e20, 1e38, 1e100])
    choices: list[Callable[[int], str]] = [
        lambda _: "1",
        str,
        lambda i: "a" if i else "b",
        lambda i: word if i % 3 else "b",
        lambda i: word if i == 5 else str(i % 2),
        lambda i: f"{i}.5",
        lambda i: f"{i * big:.9g}",
        lambda i: f"{1e6 + i * 1e-7:.9f}",
        lambda i: draw.choice(["0", "1", "2"]),
        lambda i: draw.choice(NAMES),
        lambda i: "1" if i < 39 else "0",
        lambda i: f"{i % 3}%",
        lambda i: "2020-01-0" + str(1 + i % 9),
        lambda i: f"{i}e-320",
    ]
    cells = draw.choice(choices)
    for name in sheet.targets[: draw.randint(1, 2)]:
        sheet.column(name, cells)


def few_rows(sheet: Sheet, draw: random.Random) -> None:
    sheet.rows = sheet.rows[: draw.choice([0, 1, 2, 3, 5, 9])]


def rows_again(sheet: Sheet, draw: random.Random) -> None:
    if sheet.rows:
        extra: list[list[str]] = draw.choice(
            [[sheet.header], [[]], sheet.rows, [draw.choice(sheet.rows)] * 30, [[""] * len(sheet.header)]]
        )
        at = draw.randrange(len(sheet.rows) + 1)
        sheet.rows[at:at] = [list(row) for row in extra]


def ragged(sheet: Sheet, draw: random.Random) -> None:
    for _ in range(draw.choice([1, 5])):
        if sheet.rows:
            row = draw.choice(sheet.rows)
            if draw.random() < 0.5:
                row.append(draw.choice(WORDS))
            elif row:
                row.pop(draw.randrange(len(row)))


def columns_changed(sheet: Sheet, draw: random.Random) -> None:
    """Remove, double or reorder columns, or leave only one."""
    wanted = list(range(len(sheet.header)))
    action = draw.choice(["one", "remove", "remove", "double", "shuffle", "only targets"])
    if action == "one":
        wanted = [draw.choice(wanted)]
    elif action == "remove":
        wanted.remove(draw.choice(wanted))
    elif action == "double":
        wanted.append(draw.choice(wanted))
    elif action == "shuffle":
        draw.shuffle(wanted)
    else:
        wanted = [at for at in wanted if sheet.header[at] in sheet.targets]
    sheet.header = [sheet.header[at] for at in wanted]
    sheet.rows = [[row[at] for at in wanted if at < len(row)] for row in sheet.rows]


def many_columns(sheet: Sheet, draw: random.Random) -> None:
    if draw.random() < 0.1 and len(sheet.rows) <= ROWS:  # they take long
        cells = [[str(draw.randint(0, 9)) for _ in range(2000)] for _ in range(10)]
        sheet.header = [*(f"x{i}" for i in range(2000)), *sheet.header]
        sheet.rows = [[*cells[i % 10], *row] for i, row in enumerate(sheet.rows)]


def names_changed(sheet: Sheet, draw: random.Random) -> None:
    for _ in range(draw.choice([1, 1, 2, 5])):
        at = draw.randrange(len(sheet.header))
        name = sheet.header[at]
        changed = [name.upper(), f" {name} ", name[:-1], f"{name}2", draw.choice(sheet.header), "\ufeff" + name]
        sheet.header[at] = draw.choice([*changed, *draw.sample(NAMES, 8)])


def no_header(sheet: Sheet, draw: random.Random) -> None:
    if sheet.rows and draw.random() < 0.5:
        sheet.header = sheet.rows.pop(0)


def written_otherwise(sheet: Sheet, draw: random.Random) -> None:
    sheet.delimiter = draw.choice([sheet.delimiter, ",", ";", "\t", "|", " ", "a"])
    sheet.newline = draw.choice(["\n", "\r\n", "\r", "\n\n"])
    sheet.quote_all = draw.random() < 0.5


def encoded_otherwise(sheet: Sheet, draw: random.Random) -> None:
    sheet.encoding = draw.choice(ENCODINGS)


def other_suffix(sheet: Sheet, draw: random.Random) -> None:
    if draw.random() < 0.5:
        content, suffix = sheet.content(), draw.choice(SUFFIXES)
        sheet.changes = [lambda _: content]
        sheet.suffix = ".csv" if suffix == ".parquet" else suffix
        sheet.types = {"suffix": suffix}


def other_type(sheet: Sheet, draw: random.Random) -> None:
    if draw.random() < 0.2:
        sheet.suffix = ".parquet"
    for _ in range(draw.choice([1, 3])):
        sheet.types[draw.choice(sheet.header)] = draw.choice(TYPES)


def some_bytes(sheet: Sheet, draw: random.Random) -> None:
    for _ in range(draw.choice([1, 1, 3, 20])):
        sheet.changes.append(byte_change(draw))


def byte_change(draw: random.Random) -> Callable[[bytes], bytes]:
    share, other, value, inserted = draw.random(), draw.random(), draw.randrange(256), draw.choice(BYTES)
    changes: list[Callable[[bytes, int, int], bytes]] = [
        lambda data, at, _: data[:at] + bytes([value]) + data[at + 1 :],
        lambda data, at, _: data[:at] + inserted * (1 + value % 3) + data[at:],
        lambda data, at, _: data[:at] + data[at + 1 + value % 40 :],
        lambda data, _, to: data[:to],
        lambda data, at, to: data[:to] + data[at:to] + data[to:],
        lambda data, at, to: data[:at] + data[at:to][::-1] + data[to:],
        lambda data, *_: b"" if value < 60 else data,
        lambda data, *_: random.Random(value).randbytes(200) if value < 60 else data,
    ]
    change = draw.choice([*changes, *changes[:2]])
    return lambda data: change(data, *sorted((int(share * len(data)), int(other * len(data)))))


MUTATIONS = [
    *(some_cells, whole_column, target_cells, few_rows, rows_again, ragged, columns_changed, many_columns),
    *(names_changed, no_header, written_otherwise, encoded_otherwise, other_suffix, other_type, some_bytes),
]


def drawn_options(sheet: Sheet, draw: random.Random) -> list[str]:
    """One or two options of `train`, right or wrong."""
    name = draw.choice([*sheet.header, draw.choice(NAMES)])
    columns = draw.choice([name, ",".join(draw.sample(sheet.header, min(2, len(sheet.header))))])
    values = {
        "target": [columns, name[:-1], ",".join(sheet.header)],
        "task": ["classification", "regression", "multilabel", "ranking"],
        "class-weight": ["balanced", "yes=3", "0=1,1=2,2=3", "yes=1,no=nan", "yes=inf", "rock=2,loud=1", ""],
        "metric": ["f1", "roc_auc", "log_loss", "r2", "mae", "rmse", "loss", "balanced_accuracy", "acuracy"],
        "loss": ["squared", "huber", "absolute", "cubic"],
        "validation": ["0", "0.5", "0.01", "0.99", "1", "30", "39", "auto", "paper", "-1", "x"],
        "test": ["0", "0.5", "1", "39", "40", "0.99", "nan"],
        "decimal": [".", ",", ";"],
        "encoding": [*ENCODINGS, "utf-8", "utf9", "rot13", "base64", "idna"],
        "delimiter": [",", ";", "|", r"\t", " ", "", ";;", "é", ".", '"'],
        "categorical": [columns],
        "ignore": [columns],
        "numeric": [columns],
        "date-order": ["day", "month", "year"],
        "preprocess": ["none", "standardise", "scale", "contrast"],
        "batch-size": ["1", "1000", "0"],
        "lr": ["1e9", "1e-9", "inf"],
    }
    chosen = [draw.choice(list(values)) for _ in range(draw.choice([1, 1, 2]))]
    return [f"--{option}={draw.choice(values[option])}".replace("\0", "") for option in chosen]


@dataclass(frozen=True)
class Case:
    """A mutated table and the options of both commands; `rows` is None if nobody knows how many rows it has."""

    number: int
    table: str
    mutations: tuple[str, ...]
    file: str
    content: bytes
    train: tuple[str, ...]
    predict: tuple[str, ...]
    out: str
    rows: int | None


def make_case(seed: int, number: int) -> Case:
    draw = random.Random(f"{seed} {number}")
    table = draw.choice(sorted(TABLES))
    sheet = TABLES[table](draw)
    chosen = [draw.choice(MUTATIONS) for _ in range(draw.choice([0, 1, 1, 1, 1, 1, 2, 2, 3]))]
    for mutate in chosen:
        mutate(sheet, draw)
    extra = drawn_options(sheet, draw) if draw.random() < 0.5 or not chosen else []
    predict = [option for option in extra if option.startswith(("--delimiter", "--decimal", "--encoding"))]
    if draw.random() < 0.3:
        predict = [*predict, f"--keep={draw.choice([*sheet.header, 'all', *NAMES])}".replace("\0", "")]
    if draw.random() < 0.1:
        predict = [*predict, "--json"]
    out = draw.choice(["", "", "", "-", "out.csv", "out.parquet", "out.npz", "out.jsonl"])
    names = (*(mutate.__name__ for mutate in chosen), *(option.partition("=")[0] for option in extra))
    try:
        content = sheet.content()
    except (csv.Error, pyarrow.ArrowException, UnicodeError, ValueError):  # it cannot be written in this way
        content = b""
    suffix = sheet.types.get("suffix", sheet.suffix)
    rows = len(sheet.rows) if {*chosen} <= {some_cells, whole_column, target_cells, few_rows, names_changed} else None
    options = (*sheet.options, *extra)
    return Case(number, table, names, f"table{suffix}", content, options, tuple(predict), out, rows)
