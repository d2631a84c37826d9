"""Errors that a user can cause: each says what was wrong, where, and what to do, in one or two lines.

The command line prints them without a traceback and exits with 2. Any other exception is a bug.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from shlex import quote

__all__ = ["UserError"]


class UserError(ValueError):
    """The input cannot be used; the message says what to change. A `ValueError`, so that either can be caught.

    Example:
        >>> from verydeep.errors import UserError
        >>> from verydeep.models import create_model
        >>> try:
        ...     create_model("higway-mlp")
        ... except UserError as error:
        ...     print(error)
        unknown model 'higway-mlp'; did you mean 'highway-mlp'?
    """


class OtherProcessError(UserError):
    """Another process of the same training failed and reports why; this one ends without repeating it."""


def unknown(kind: str, name: object, known: Iterable[str]) -> UserError:
    """The error for a name that does not exist; it suggests the closest one that does."""
    names = sorted(known)
    near = get_close_matches(str(name), names, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(names)}"
    return UserError(f"unknown {kind} '{name}'; {hint}")


def install_command(extra: str) -> str:
    """The command that installs an extra: from a clone with the versions that are tested, otherwise as a package."""
    clone = Path(__file__).parents[2]
    if (clone / "constraints.txt").exists():
        return f"pip install -c {quote(str(clone / 'constraints.txt'))} -e {quote(f'{clone}[{extra}]')}"
    return f"pip install 'verydeep[{extra}]'"


def list_names(names: Iterable[str]) -> str:
    """The first ten names, quoted, for an error message."""
    quoted = [repr(name) if len(name) <= 60 else f"{name[:60]!r}..." for name in names]
    return ", ".join(quoted[:10]) + (f" and {len(quoted) - 10} more" if len(quoted) > 10 else "")


def shorten(value: object) -> str:
    """The beginning of a text that may be long, quoted, for an error message."""
    first = str(value).splitlines()[0] if str(value) else ""
    return repr(first[:60])
