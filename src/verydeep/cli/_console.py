"""Where commands print: the terminal, or a wide page when the output goes to a file or a pipe."""

import sys

from rich.console import Console


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # for verydeep.cli.main; rich would end the program as if something had failed


console = _Console(width=None if sys.stdout.isatty() else 140)
