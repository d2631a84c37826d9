"""What improves a recipe of a tenth of the epochs: variations of a base recipe, trained and compared on held-out data.

`STUDIES` describes what is varied, `StudyRunner` trains what is missing and records it in results/fast-recipe/ through
`Scores`, and `recipe_page` writes docs/fast-recipe.md from the scores. The script `fast_recipe.py` is the command.
"""

from recipe_study._page import Spread, pooled_spread, recipe_page, score_lines, verdict
from recipe_study._run import StudyRunner
from recipe_study._scores import Scores
from recipe_study._variations import STUDIES, RecipeStudy, Variation

__all__ = [
    "STUDIES",
    "RecipeStudy",
    "Scores",
    "Spread",
    "StudyRunner",
    "Variation",
    "pooled_spread",
    "recipe_page",
    "score_lines",
    "verdict",
]
