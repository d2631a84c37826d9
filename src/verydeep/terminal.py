"""Text for the terminal. Names of files, columns and classes may come from someone else, and must not control it."""

import re
from typing import TextIO

# all but tab, line ends, and the codes for bold and plain text; \u202a and the following reverse what is read
_CONTROLS = re.compile(
    r"\x1b(?!\[[01]m)|\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)


def without_controls(text: str) -> str:
    r"""Replace control characters, which a terminal would obey, by their escapes.

    Example:
        >>> without_controls("wine\x1b[2J")
        'wine\\x1b[2J'
    """
    return _CONTROLS.sub(_escape, text)


def echo(*lines: str, end: str = "\n", file: TextIO | None = None, flush: bool = False) -> None:
    """Print lines without control characters.

    Args:
        lines: What to print, a line each.
        end: What follows the last line.
        file: Where to print; by default, standard output.
        flush: Whether to flush the file.
    """
    print(*map(without_controls, lines), sep="\n", end=end, file=file, flush=flush)


def _escape(control: re.Match[str]) -> str:
    character = control[0]
    return f"\\x{ord(character):02x}" if character < " " else f"\\u{ord(character):04x}"  # JSON knows only \u
