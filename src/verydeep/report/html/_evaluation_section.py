"""The section about predictions: metrics with their intervals, confusion matrix, calibration, residuals."""

from typing import Any

from verydeep.analysis import split_name
from verydeep.report.figures._evaluation import main_figure_name, plot_calibration, plot_evaluation
from verydeep.report.html._analysis_sections import in_both_themes
from verydeep.report.html._tables import each_table, metrics_table
from verydeep.training import Evaluation

_DPI = 100
_TITLES = {
    "confusion": "Which classes are confused",
    "labels": "Label by label",
    "residuals": "Predicted and true values",
}


def evaluation_section(evaluation: Evaluation | None, split: str = "test") -> dict[str, Any]:
    """Collect what an evaluation adds to the page."""
    if evaluation is None:
        return {"evaluation": None}
    main = main_figure_name(evaluation)
    figures = [(_TITLES[main], in_both_themes(lambda theme: plot_evaluation(evaluation, theme=theme), _DPI))]
    if evaluation.calibration is not None:
        title = "How far its probabilities can be trusted"
        figures.append((title, in_both_themes(lambda theme: plot_calibration(evaluation, theme=theme), _DPI)))
    return {
        "evaluation": evaluation,
        "evaluated_on": split_name(split),
        "metrics": metrics_table(evaluation),
        "each": each_table(evaluation),
        "remarks": evaluation.remarks(),
        "evaluation_figures": figures,
    }
