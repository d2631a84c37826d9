"""How a table is to be read."""

from collections.abc import Collection
from dataclasses import dataclass

from verydeep.data._config import DataConfig

USUAL_TARGETS = ("target", "label", "class", "y")
"""Names of the target column, in lower case, that need not be given."""


FORMAT_OPTIONS = ("delimiter", "decimal", "encoding")
"""The options that say how a CSV file is written."""


@dataclass(frozen=True)
class TableOptions:
    """How a table is to be read.

    Attributes:
        delimiter: The column separator of CSV files; a `.tsv` file has tabs.
        decimal: The decimal point, `.` or `,`.
        encoding: The encoding of CSV files; a byte order mark is skipped.
        text: Columns to keep as they are written, also if all cells are numbers: 01 and 1 are different categories.
        skip: Columns to leave out.
        all_text: Keep all columns as they are written.
    """

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    text: frozenset[str] = frozenset()
    skip: frozenset[str] = frozenset()
    all_text: bool = False

    @classmethod
    def of(cls, config: DataConfig, text: Collection[str] = ()) -> "TableOptions":
        """The options for a configuration, and further columns to keep as they are written."""
        target = {*config.target, ",".join(config.target)}  # a single name may have commas
        return cls(config.delimiter, config.decimal, config.encoding, frozenset({*config.categorical, *target, *text}))

    def keeps_text(self, name: str) -> bool:
        """Whether a column stays as it is written."""
        return self.all_text or name in self.text or name.lower() in USUAL_TARGETS


DEFAULT = TableOptions()
