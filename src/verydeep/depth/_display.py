"""How answers draw themselves, with functions of a higher floor that are imported only then."""

from typing import Any


def draw(function: str, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401
    """Call a function of `verydeep.report`."""
    from verydeep import report

    return getattr(report, function)(*arguments, **options)
