"""Pieces of error messages."""

from collections.abc import Iterable


def listed(names: Iterable[str]) -> str:
    """The first names, for errors."""
    shown = [repr(name) for name in names]
    return ", ".join(shown[:10]) + (f" and {len(shown) - 10} more" if len(shown) > 10 else "")


def shortened(value: object) -> str:
    """The beginning of what may be long, for errors."""
    first = str(value).splitlines()[0] if str(value) else ""
    return repr(first[:60])
