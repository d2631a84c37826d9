"""How a study shows itself in a notebook: its best trials and a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verydeep.notebook import html_card
from verydeep.search._progress import describe_search
from verydeep.search._results import ranked, records

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from verydeep.search.study._study import Study

_SHOWN = 10


def plot_study(study: Study, path: Any, **options: Any) -> Figure:  # noqa: ANN401
    """Draw the result of every trial against each setting."""
    from verydeep import report

    return report.plot_slices(records(study), study.config.space, study.config.metric, path, **options)


def study_html(study: Study) -> str:
    """The best trials as a small table, and the figure once a trial is complete."""
    best = ranked(records(study), study.config.maximise)
    rows = [(f"trial {record.trial}", repr(record).partition(", ")[2].removesuffix(")")) for record in best[:_SHOWN]]
    pictures = [plot_study(study, None)._repr_png_()] if best else []  # type: ignore[attr-defined]
    return html_card(describe_search(study), rows, pictures)
