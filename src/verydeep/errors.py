"""Errors a user can cause: each says what was wrong, where, and what to do, in one or two lines.

The command line prints them without a traceback and exits with 2. Anything else that is raised is a bug of ours.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(ValueError):
    """Something the user gave cannot be used; the message says what to change."""


def unknown(kind: str, name: object, known: Iterable[str]) -> UserError:
    """The error for a name that does not exist, with the nearest one that does."""
    names = sorted(known)
    near = get_close_matches(str(name), names, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(names)}"
    return UserError(f"unknown {kind} '{name}'; {hint}")
