"""Command-line options: a dataclass per command that tyro fills, and option types that several commands share.

Whatever tyro cannot parse becomes a one-line `UserError`, like every other error of the command line.
"""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from textwrap import dedent
from typing import Annotated, Any, TypeVar

import tyro

from verydeep.errors import UserError
from verydeep.redact import redact

Options = TypeVar("Options")
_FRAME_OR_COLOUR = re.compile(r"\x1b\[[0-9;]*m|[╭╮╰╯│]")
_RULE = re.compile(r"^ *[─-]+ *$", flags=re.MULTILINE)


def option(metavar: str, description: str | None = None, aliases: tuple[str, ...] = ()) -> Any:  # noqa: ANN401 - tyro's own
    """Annotate a field of an options dataclass; --help shows its default unless that is None.

    Args:
        metavar: What --help shows for the value.
        description: The help text; by default, the docstring below the field.
        aliases: Further names, such as `-o`.
    """
    return tyro.conf.arg(metavar=metavar, help=description, aliases=aliases or None, help_behavior_hint=_default_hint)


def _default_hint(default: str) -> str:
    return "" if default == "None" else f"(default: {default})"


RunFolder = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN", help="The run's folder.")]
DataRoot = Annotated[
    Path | None,
    option("FOLDER", "Where known datasets are stored; by default, $VERYDEEP_DATA or the user's cache."),
]
Quiet = Annotated[bool, tyro.conf.arg(help="Print nothing but errors.")]


def read_options(
    options: type[Options],
    command: str,
    arguments: Sequence[str],
    description: str | None = None,
    default: Options | None = None,
) -> Options:
    """Parse the arguments of a command.

    Args:
        options: The dataclass to fill.
        command: The command's name, such as `search show`.
        arguments: The arguments after the name.
        description: Text for --help; by default, the dataclass's docstring.
        default: Values of options that are not given; by default, those of the dataclass.
    """
    program, start = f"verydeep {command}", tyro.MISSING_NONPROP if default is None else default
    with _one_line_errors(program, arguments):
        return tyro.cli(options, prog=program, args=arguments, description=description, default=start)


def read_known_options(options: type[Options], command: str, arguments: Sequence[str]) -> tuple[Options, list[str]]:
    """Parse the arguments that the dataclass has a field for, and return the other arguments with it."""
    program = f"verydeep {command}"
    with _one_line_errors(program, arguments):
        return tyro.cli(options, prog=program, args=arguments, return_unknown_args=True)


@contextmanager
def _one_line_errors(program: str, arguments: Sequence[str]) -> Iterator[None]:
    printed = io.StringIO()
    try:
        with redirect_stderr(printed):
            yield
    except SystemExit as stop:
        if not stop.code:  # --help
            raise
        reason = _reason(printed.getvalue(), arguments)
        raise UserError(f"{redact(*reason.split(' '))} (see {program} --help)") from None


def _reason(box: str, arguments: Sequence[str]) -> str:
    """Shorten tyro's message: a box with a title and sections divided by rules, the last of them about --help."""
    _, _, body = _FRAME_OR_COLOUR.sub("", box).strip().partition("\n")
    first, *others = [text for part in _RULE.split(body) if (text := dedent(part).strip())] or [box.strip()]
    hint = "\n".join(others)
    if match := re.match(r"Error parsing (\S+): (.*)", first, flags=re.DOTALL):
        return _wrong_value(match[1], match[2], arguments)
    if first.startswith("Missing from"):
        return "missing: " + ", ".join(re.findall(r"^ {4}(\S.*?) *$", first, flags=re.MULTILINE))
    if near := re.search(r"Perhaps you meant:\s+([^\s,]+)", hint):
        hint = f"; did you mean {near[1]}?"
    else:
        hint = f"; {known[0].strip()}" if (known := re.search(r"Available subcommands:.*", hint)) else ""
    text = " ".join(first.split()).rstrip(".") + hint
    return text[:1].lower() + text[1:]


def _wrong_value(option_name: str, problem: str, arguments: Sequence[str]) -> str:
    wanted = "a whole number" if "int()" in problem else "a number" if "to float" in problem else None
    for place, argument in enumerate(arguments):
        name, _, value = argument.partition("=")
        if wanted and name == option_name:
            return f"{option_name} must be {wanted}, not '{value or ''.join(arguments[place + 1 : place + 2])}'"
    return f"{option_name}: {' '.join(problem.split())}"
