"""How a study shows itself in a notebook: its best trials and a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verydeep.notebook import html_card
from verydeep.search._results import ranked
from verydeep.studies import format_settings, format_value, metric_label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from verydeep.search._study import SearchStudy
    from verydeep.studies import TrainingRecord

_SHOWN = 10


def plot_study(study: SearchStudy, path: Any, **options: Any) -> Figure:  # noqa: ANN401
    """Draw the result of every trial against each setting."""
    from verydeep import report

    return report.plot_slices(study.records(), study.config.space, study.metric, path, **options)


def study_html(study: SearchStudy) -> str:
    """The best trials as a small table, and the figure once a trial is complete."""
    best = ranked(study.records(), study.maximise)
    rows = [(f"trial {record.number}", repr(record).partition(", ")[2].removesuffix(")")) for record in best[:_SHOWN]]
    pictures = [plot_study(study, None)._repr_png_()] if best else []  # type: ignore[attr-defined]
    return html_card(describe_search(study), rows, pictures)


def describe_search(study: SearchStudy) -> str:
    """How far a search is, and its best trial, in one line."""
    found = study.records()
    ended = ranked(found, study.maximise)
    running = sum(record.status == "training" for record in found)
    text = f"{study.name}: {len(ended)} of {len(found)} trials done, {running} in training"
    if ended and ended[0].value is not None:
        text += f"; best: {describe_trial(ended[0], study.metric)}"
    return text


def describe_trial(record: TrainingRecord, metric: str) -> str:
    """A trial's result and settings in one line."""
    value = f"{metric_label(metric)} {format_value(record.value, metric)}"
    return f"trial {record.number} with {value} ({format_settings(record.settings)})"
