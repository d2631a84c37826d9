"""How results describe themselves: one line in a terminal, a table and a picture in a notebook, and `plot`."""

import os
from collections.abc import Sequence
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

from verydeep.notebook import html_card
from verydeep.words import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FROM_0 = "layers are counted from 0"
_MOST_LISTED = 8  # ranges of layers in a line
_SPLIT_NAMES = {"train": "training set", "valid": "validation set", "test": "test set"}


class Described:
    """A result that describes itself in a line and, in a notebook, in a table."""

    def _summary(self) -> str:
        """One line without the name of the class."""
        raise NotImplementedError

    def _rows(self) -> list[tuple[str, str]]:
        """The names and values of the table in a notebook."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._summary()}>"


class Displayed(Described):
    """A result that has a figure, too, which a notebook shows below the table."""

    _figure = ""  # the function of verydeep.report that draws it

    def plot(self, path: str | os.PathLike[str] | None = None, **options: Any) -> "Figure":  # noqa: ANN401
        """Draw the result; a notebook shows the figure.

        Args:
            path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
            **options: Options of the function of `verydeep.report` that draws such results, such as `theme="dark"`.
        """
        figure: Figure = draw(self._figure, self, path, **options)
        return figure

    def _repr_html_(self) -> str:
        return html_card(type(self).__name__, self._rows(), [picture_of(self)])


def draw(function: str, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401
    """Call a function of `verydeep.report`, which is imported only now."""
    from verydeep import report

    return getattr(report, function)(*arguments, **options)


def picture_of(result: Displayed) -> bytes:
    """The figure of a result as PNG, in the size of a notebook."""
    picture: bytes = result.plot()._repr_png_()  # type: ignore[attr-defined]
    return picture


def split_name(split: str) -> str:
    """Name a split of a run's data in full; the name of other data stays as it is."""
    return _SPLIT_NAMES.get(split, split)


def the_split(split: str) -> str:
    """Name some data in a sentence: the validation set, or the name of other data."""
    return f"the {split_name(split)}" if split in _SPLIT_NAMES else split


def samples_of(samples: int, split: str) -> str:
    """Say how many samples of which data were measured."""
    return plural(samples, "sample") + (f" of {the_split(split)}" if split else "")


def list_layers(layers: Sequence[int]) -> str:
    """Abbreviate layer numbers, in ascending order: 0-4, 7, 9-12."""
    runs = groupby(enumerate(sorted(layers)), key=lambda pair: pair[1] - pair[0])
    spans = [[layer for _, layer in run] for _, run in runs]
    listed = [f"{span[0]}-{span[-1]}" if len(span) > 1 else str(span[0]) for span in spans]
    return ", ".join(islice(listed, _MOST_LISTED)) + (", ..." if len(listed) > _MOST_LISTED else "") or "none"
