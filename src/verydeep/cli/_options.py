"""The options of a command: a dataclass that tyro fills; what it cannot read is said in a line, like other errors."""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from textwrap import dedent
from typing import TypeVar

import tyro

from verydeep.errors import UserError
from verydeep.redact import redact

Options = TypeVar("Options")
_FRAME = re.compile(r"\x1b\[[0-9;]*m|[╭╮╰╯│]")  # and colours
_RULE = re.compile(r"^ *[─-]+ *$", flags=re.MULTILINE)


def read_options(
    options: type[Options],
    command: str,
    arguments: Sequence[str],
    description: str | None = None,
    default: Options | None = None,
) -> Options:
    """What the user wants of a command.

    Args:
        options: The dataclass.
        command: The command's name, such as `search show`.
        arguments: What was typed after it.
        description: For --help, in place of the dataclass's.
        default: What holds where nothing was typed, in place of the dataclass's.
    """
    name, start = f"verydeep {command}", tyro.MISSING_NONPROP if default is None else default
    with _in_a_line(name, arguments):
        return tyro.cli(options, prog=name, args=arguments, description=description, default=start)


def read_known_options(options: type[Options], command: str, arguments: Sequence[str]) -> tuple[Options, list[str]]:
    """The same, and what was typed besides."""
    name = f"verydeep {command}"
    with _in_a_line(name, arguments):
        return tyro.cli(options, prog=name, args=arguments, return_unknown_args=True)


@contextmanager
def _in_a_line(name: str, arguments: Sequence[str]) -> Iterator[None]:
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            yield
    except SystemExit as end:
        if not end.code:  # --help
            raise
        reason = _reason(said.getvalue(), arguments)
        raise UserError(f"{redact(*reason.split(' '))} (see {name} --help)") from None


def _reason(box: str, arguments: Sequence[str]) -> str:
    """What tyro says in a box: a title and sections with rules between them, the last of them about --help."""
    _, _, body = _FRAME.sub("", box).strip().partition("\n")
    first, *others = [text for part in _RULE.split(body) if (text := dedent(part).strip())] or [box.strip()]
    hint = "\n".join(others)
    if found := re.match(r"Error parsing (\S+): (.*)", first, flags=re.DOTALL):
        return _wrong_value(found[1], found[2], arguments)
    if first.startswith("Missing from"):
        return "missing: " + ", ".join(re.findall(r"^ {4}(\S.*?) *$", first, flags=re.MULTILINE))
    if near := re.search(r"Perhaps you meant:\s+([^\s,]+)", hint):
        hint = f"; did you mean {near[1]}?"
    else:
        hint = f"; {known[0].strip()}" if (known := re.search(r"Available subcommands:.*", hint)) else ""
    text = " ".join(first.split()).rstrip(".") + hint
    return text[:1].lower() + text[1:]


def _wrong_value(option: str, problem: str, arguments: Sequence[str]) -> str:
    wanted = "a whole number" if "int()" in problem else "a number" if "to float" in problem else None
    for place, argument in enumerate(arguments):
        name, _, value = argument.partition("=")
        if wanted and name == option:
            return f"{option} must be {wanted}, not '{value or ''.join(arguments[place + 1 : place + 2])}'"
    return f"{option}: {' '.join(problem.split())}"
