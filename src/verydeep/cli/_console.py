"""Where commands print: the terminal, or a wide page when the output goes to a file or a pipe."""

import sys

from rich.console import Console

console = Console(width=None if sys.stdout.isatty() else 140)
