"""How runs describe themselves: one line in a terminal, a table and curves in a notebook."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from verydeep.notebook import html_card
from verydeep.words import named_score

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from verydeep.training.run._metrics import EpochMetrics
    from verydeep.training.run._run import Run

# What a damaged file can raise when it is read.
DAMAGE = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
_SPLITS = {"test_": "test", "valid_": "validation", "": "training"}


def describe_run(run: Run) -> str:
    """How far a run is and what it reached, in a few words; says what is wrong with a damaged one."""
    try:
        if not run.path.is_dir():
            return "the folder does not exist"
        return ", ".join([describe_status(run), *describe_accuracy(run.measured, run.measure)])
    except DAMAGE as error:
        return f"damaged: {error}"


def describe_status(run: Run) -> str:
    """How far a run is: 10 of 10 epochs."""
    metrics, summary = run.metrics, run.summary
    if summary is not None and summary.status in ("pruned", "attended"):
        return summary.status
    done, total = metrics[-1].epoch if metrics else 0, run.config.epochs
    text = f"{done} of {total} {'epoch' if total == 1 else 'epochs'}"
    return text if summary is None or summary.status == "finished" else f"{summary.status} after {text}"


def describe_accuracy(measured: EpochMetrics | None, measure: str = "accuracy") -> list[str]:
    """The most telling accuracy, or R2, that was measured, if any, in words."""
    for split, words in _SPLITS.items():
        value = None if measured is None else measured.get(f"{split}{measure}")
        if value is not None and math.isfinite(value):
            return [f"{words} {named_score(measure, value)}"]
    return []


def draw(function: str, *arguments: Any, **options: Any) -> Figure:  # noqa: ANN401
    """Call a function of `verydeep.report` that draws a result."""
    from verydeep import report

    figure: Figure = getattr(report, function)(*arguments, **options)
    return figure


def run_html(run: Run) -> str:
    """A run in a notebook: a small table and the learning curves; only a line for a damaged one."""
    try:
        rows = describe_rows(run)
        pictures = [draw("plot_run", run)._repr_png_()] if run.metrics else []  # type: ignore[attr-defined]
    except DAMAGE:
        return html_card(repr(run))
    return html_card(f"Run {run.path}", rows, pictures)


def describe_rows(run: Run) -> list[tuple[str, str]]:
    """The names and values of the table in a notebook."""
    measured, metrics, config = run.measured, run.metrics, run.config
    size = run.metadata.get("size") or {}
    rows = [
        ("status", describe_status(run)),
        ("network", config.model.name if run.is_network else "your own module"),
        ("data", config.data.source if "dataset" not in run.user_supplied else "your own data"),
    ]
    rows += [(name, f"{size[name]:,}") for name in ("depth", "parameters") if isinstance(size.get(name), int)]
    for name in ("train", "valid", "test"):
        if measured is None:
            break
        loss, accuracy = (measured.get(f"{name}_{what}") for what in ("loss", run.measure))
        if loss is not None and accuracy is not None:
            title = {"train": "training set", "valid": "validation set", "test": "test set"}[name]
            rows.append((title, f"{named_score(run.measure, accuracy)}, loss {loss:.4g}"))
    if metrics:
        rows.append(("training time", f"{metrics[-1].seconds:,.0f} s"))
    return rows
