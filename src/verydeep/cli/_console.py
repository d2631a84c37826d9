"""Where commands print: the terminal, or a wide page when the output goes to a file or a pipe."""

import os
import sys

from rich.console import Console

_PAGE = 160  # letters: the widest table, that of verydeep bench


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # for verydeep.cli.main; rich would end the program as if something had failed


# Rich itself follows the terminal, or COLUMNS.
console = _Console(width=None if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit() else _PAGE)
