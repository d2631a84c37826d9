"""Tables 1, 2 and 3 of the paper: their rows, what was published, and which recipes train them.

Rows that the paper took from other publications and that are not trained here have no name. The FitNets stand twice:
the published numbers are of hint-based training, and plain backpropagation is what the paper compares with.
"""

from dataclasses import dataclass

from verydeep.errors import unknown

TABLES = {
    "table1": "Table 1: MNIST, convolutional highway networks of 10 layers",
    "table2": "Table 2: CIFAR-10, FitNets and highway networks",
    "table3": "Table 3: CIFAR-10 and CIFAR-100 with translation and mirroring",
}


KNOWN = ("mnist", "cifar10", "cifar100")


@dataclass(frozen=True)
class Entry:
    """A row of a table.

    Attributes:
        table: Which table.
        title: What the table calls it.
        data: What it was measured on.
        parameters: As published.
        published: Test accuracy in percent, best (mean ± standard deviation) where there is one.
        name: Of its recipes, and for `--only`; empty if it is not trained here.
        seeds: How many runs the paper reports.
        quick: Whether its network takes images as small as the digits.
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
        """The published accuracy as a share: the mean where there is one."""
        numbers = self.published.replace("(", " ").replace("±", " ").split()
        return float(numbers[min(len(numbers) - 1, 1)]) / 100 if numbers else None


_ONE, _TWO, _THREE = TABLES
ENTRIES = (
    Entry(_ONE, "Highway, 10 layers, width 16", "MNIST", "39K", "99.43 (99.40 ± 0.03)", "highway-mnist-16", 5),
    Entry(_ONE, "Highway, 10 layers, width 32", "MNIST", "151K", "99.55 (99.54 ± 0.02)", "highway-mnist-32", 5),
    Entry(_ONE, "Maxout", "MNIST", "420K", "99.55"),
    Entry(_ONE, "DSN", "MNIST", "350K", "99.61"),
    Entry(_TWO, "Teacher (maxout), 5 layers", "CIFAR-10", "~9M", "90.18", "maxout"),
    Entry(_TWO, "FitNet A (hints), 11 layers", "CIFAR-10", "~250K", "89.01", "fitnet-a-hints"),
    Entry(_TWO, "FitNet A (backpropagation)", "CIFAR-10", "~250K", "", "fitnet-a"),
    Entry(_TWO, "FitNet B (hints), 19 layers", "CIFAR-10", "~2.5M", "91.61", "fitnet-b-hints"),
    Entry(_TWO, "FitNet B (backpropagation)", "CIFAR-10", "~2.5M", "", "fitnet-b"),
    Entry(_TWO, "Highway A, 11 layers", "CIFAR-10", "~236K", "89.18", "highway-a"),
    Entry(_TWO, "Highway B, 19 layers", "CIFAR-10", "~2.3M", "92.46 (92.28 ± 0.16)", "highway-b", 5),
    Entry(_TWO, "Highway C, 32 layers", "CIFAR-10", "~1.25M", "91.20", "highway-c"),
    Entry(_THREE, "Maxout", "CIFAR-10", "", "90.62"),
    Entry(_THREE, "dasNet", "CIFAR-10", "", "90.78"),
    Entry(_THREE, "NiN", "CIFAR-10", "", "91.19", "nin"),
    Entry(_THREE, "DSN", "CIFAR-10", "", "92.03"),
    Entry(_THREE, "All-CNN", "CIFAR-10", "", "92.75", "all-cnn-c", quick=False),
    Entry(_THREE, "Highway, 19 layers", "CIFAR-10", "", "92.40 (92.31 ± 0.12)", "highway-19-nin-cifar10", 5),
    Entry(_THREE, "Maxout", "CIFAR-100", "", "61.42"),
    Entry(_THREE, "dasNet", "CIFAR-100", "", "66.22"),
    Entry(_THREE, "NiN", "CIFAR-100", "", "64.32"),
    Entry(_THREE, "DSN", "CIFAR-100", "", "65.43"),
    Entry(_THREE, "All-CNN", "CIFAR-100", "", "66.29"),
    Entry(_THREE, "Highway, 19 layers", "CIFAR-100", "", "67.76 (67.61 ± 0.15)", "highway-19-nin-cifar100", 5),
)
TEACHER = next(entry for entry in ENTRIES if entry.name == "maxout")  # of the rows with hints

_EPOCHS = (1, 2, 10, 20, 50, 100, 200, 201, 250, 300, 301, 350, 400)
_CIFAR10 = (33.84, 40.82, 68.97, 77.14, 84.52, 85.92, 86.94, 90.38, 91.56, 90.89, 92.11, 92.07, 92.14)
_CIFAR100 = (2.61, 4.89, 27.41, 36.99, 44.66, 52.05, 52.68, 60.79, 63.86, 63.33, 66.11, 67.08, 68.09)
_MNIST = {1: 95.88, 2: 97.22, 10: 98.75, 40: 99.27, 100: 99.31, 101: 99.49, 200: 99.49, 250: 99.55, 300: 99.54}
LOGS = {  # test accuracy in percent after so many epochs, from the logs the authors published with their code
    "highway-mnist-32": _MNIST,
    "highway-19-nin-cifar10": dict(zip(_EPOCHS, _CIFAR10, strict=True)),
    "highway-19-nin-cifar100": dict(zip(_EPOCHS, _CIFAR100, strict=True)),
}


def chosen_entries(tables: tuple[str, ...], only: str | None = None) -> tuple[Entry, ...]:
    """The rows of some tables that can be trained, or those among them that are named, separated by commas."""
    known = {entry.name: entry for entry in ENTRIES if entry.name and entry.table in tables}
    names = list(known) if only is None else [name.strip() for name in only.split(",")]
    for name in names:
        if name not in known:
            raise unknown(f"row of {' and '.join(tables)}", name, known)
    return tuple(entry for name, entry in known.items() if name in names)
