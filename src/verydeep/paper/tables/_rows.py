"""The rows of Tables 1, 2 and 3: what was published, and which recipes train them.

Rows that the paper quotes from other publications and that are not trained here have no name. The FitNets appear twice:
their published numbers come from hint-based training, and the paper compares with plain backpropagation.
"""

from dataclasses import dataclass

from verydeep.errors import unknown

TABLES = {
    "table1": "Table 1: MNIST, convolutional highway networks of 10 layers",
    "table2": "Table 2: CIFAR-10, FitNets and highway networks",
    "table3": "Table 3: CIFAR-10 and CIFAR-100 with translation and mirroring",
}


@dataclass(frozen=True)
class TableRow:
    """A row of Table 1, 2 or 3 of the paper.

    `TABLE_ROWS` has all of them, in the order of the paper.

    Attributes:
        table: Key of the table in `TABLES`.
        title: The network's name in the table.
        data: The dataset's name in the table.
        parameters: Number of parameters, as published.
        published: Test accuracy in percent: best (mean ± standard deviation) if published, else a single value.
        name: Name of its recipes, also for `--only`; empty if the row is not trained here.
        seeds: Number of runs that the paper reports.
        quick: Whether its network accepts images as small as the digits.

    Example:
        >>> from verydeep.paper import TABLE_ROWS
        >>> row = next(row for row in TABLE_ROWS if row.name == "highway-b")
        >>> row.title, row.published
        ('Highway B, 19 layers', '92.46 (92.28 ± 0.16)')
    """

    table: str
    title: str
    data: str
    parameters: str
    published: str
    name: str = ""
    seeds: int = 1
    quick: bool = True

    @property
    def accuracy(self) -> float | None:
        """The published accuracy as a fraction: the mean if there is one."""
        numbers = self.published.replace("(", " ").replace("±", " ").split()
        return float(numbers[min(len(numbers) - 1, 1)]) / 100 if numbers else None


_ONE, _TWO, _THREE = TABLES
TABLE_ROWS = (
    TableRow(_ONE, "Highway, 10 layers, width 16", "MNIST", "39K", "99.43 (99.40 ± 0.03)", "highway-mnist-16", 5),
    TableRow(_ONE, "Highway, 10 layers, width 32", "MNIST", "151K", "99.55 (99.54 ± 0.02)", "highway-mnist-32", 5),
    TableRow(_ONE, "Maxout", "MNIST", "420K", "99.55", "maxout-mnist", quick=False),
    TableRow(_ONE, "DSN", "MNIST", "350K", "99.61", "dsn-mnist"),
    TableRow(_TWO, "Teacher (maxout), 5 layers", "CIFAR-10", "~9M", "90.18", "maxout"),
    TableRow(_TWO, "FitNet A (hints), 11 layers", "CIFAR-10", "~250K", "89.01", "fitnet-a-hints"),
    TableRow(_TWO, "FitNet A (backpropagation)", "CIFAR-10", "~250K", "", "fitnet-a"),
    TableRow(_TWO, "FitNet B (hints), 19 layers", "CIFAR-10", "~2.5M", "91.61", "fitnet-b-hints"),
    TableRow(_TWO, "FitNet B (backpropagation)", "CIFAR-10", "~2.5M", "", "fitnet-b"),
    TableRow(_TWO, "Highway A, 11 layers", "CIFAR-10", "~236K", "89.18", "highway-a"),
    TableRow(_TWO, "Highway B, 19 layers", "CIFAR-10", "~2.3M", "92.46 (92.28 ± 0.16)", "highway-b", 5),
    TableRow(_TWO, "Highway C, 32 layers", "CIFAR-10", "~1.25M", "91.20", "highway-c"),
    TableRow(_THREE, "Maxout", "CIFAR-10", "", "90.62", "maxout-cifar10"),
    TableRow(_THREE, "dasNet", "CIFAR-10", "", "90.78"),
    TableRow(_THREE, "NiN", "CIFAR-10", "", "91.19", "nin"),
    TableRow(_THREE, "DSN", "CIFAR-10", "", "92.03", "dsn-cifar10"),
    TableRow(_THREE, "All-CNN", "CIFAR-10", "", "92.75", "all-cnn-c", quick=False),
    TableRow(_THREE, "Highway, 19 layers", "CIFAR-10", "", "92.40 (92.31 ± 0.12)", "highway-19-nin-cifar10", 5),
    TableRow(_THREE, "Maxout", "CIFAR-100", "", "61.42", "maxout-cifar100"),
    TableRow(_THREE, "dasNet", "CIFAR-100", "", "66.22"),
    TableRow(_THREE, "NiN", "CIFAR-100", "", "64.32", "nin-cifar100"),
    TableRow(_THREE, "DSN", "CIFAR-100", "", "65.43", "dsn-cifar100"),
    TableRow(_THREE, "All-CNN", "CIFAR-100", "", "66.29", "all-cnn-c-cifar100", quick=False),
    TableRow(_THREE, "Highway, 19 layers", "CIFAR-100", "", "67.76 (67.61 ± 0.15)", "highway-19-nin-cifar100", 5),
)
TEACHER = next(row for row in TABLE_ROWS if row.name == "maxout")  # of the rows trained with hints

_EPOCHS = (1, 2, 10, 20, 50, 100, 200, 201, 250, 300, 301, 350, 400)
_CIFAR10 = (33.84, 40.82, 68.97, 77.14, 84.52, 85.92, 86.94, 90.38, 91.56, 90.89, 92.11, 92.07, 92.14)
_CIFAR100 = (2.61, 4.89, 27.41, 36.99, 44.66, 52.05, 52.68, 60.79, 63.86, 63.33, 66.11, 67.08, 68.09)
_MNIST = {1: 95.88, 2: 97.22, 10: 98.75, 40: 99.27, 100: 99.31, 101: 99.49, 200: 99.49, 250: 99.55, 300: 99.54}
AUTHOR_LOGS = {  # test accuracy in percent by epoch, from the logs that the authors published with their code
    "highway-mnist-32": _MNIST,
    "highway-19-nin-cifar10": dict(zip(_EPOCHS, _CIFAR10, strict=True)),
    "highway-19-nin-cifar100": dict(zip(_EPOCHS, _CIFAR100, strict=True)),
}


def selected_rows(tables: tuple[str, ...], only: str | None = None) -> tuple[TableRow, ...]:
    """The trainable rows of some tables, or those of them named in a comma-separated list."""
    known = {row.name: row for row in TABLE_ROWS if row.name and row.table in tables}
    names = list(known) if only is None else [name.strip() for name in only.split(",")]
    for name in names:
        if name not in known:
            raise unknown(f"row of {' and '.join(tables)}", name, known)
    return tuple(row for name, row in known.items() if name in names)
