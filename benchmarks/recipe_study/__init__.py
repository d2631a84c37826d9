"""The study of short recipes."""

from recipe_study._page import Spread, pooled_spread, recipe_page, score_lines, verdict
from recipe_study._run import Scores, VariationStudy
from recipe_study._variations import STUDIES, Study, Variation

__all__ = [
    "STUDIES",
    "Scores",
    "Spread",
    "Study",
    "Variation",
    "VariationStudy",
    "pooled_spread",
    "recipe_page",
    "score_lines",
    "verdict",
]
