"""docs/fast-recipe.md: which changes helped a short recipe and which did not, written from the scores alone."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev, variance
from typing import NamedTuple

from recipe_study._scores import Scores
from recipe_study._variations import BASE, STUDIES, RecipeStudy
from verydeep.config import dotted, to_dict
from verydeep.paper import read_recipe
from verydeep.report import render_markdown

# Two-sided 95 % quantiles of Student's t, by degrees of freedom.
_STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23)
_MANY = 2.2  # for more degrees of freedom


class Spread(NamedTuple):
    """How much seeds differ.

    Attributes:
        deviation: Their standard deviation.
        freedom: Degrees of freedom of its estimate.
    """

    deviation: float
    freedom: int


@dataclass(frozen=True)
class ScoreLine:
    """A variation in a table of scores, as text."""

    change: str
    seeds: int
    accuracy: str
    difference: str = ""
    verdict: str = ""


@dataclass(frozen=True)
class ScoreTable:
    """The variations of one reference at one length, best first."""

    reference: str
    lines: list[ScoreLine]


@dataclass(frozen=True)
class ChangedSetting:
    """A setting in which the fast recipe differs from the paper's."""

    name: str
    paper: object
    fast: object


@dataclass(frozen=True)
class StudySection:
    """A study, its tables of scores by number of epochs, and the settings that its fast recipe changes."""

    study: RecipeStudy
    lengths: dict[int, list[ScoreTable]]
    changed_settings: list[ChangedSetting]


def recipe_page(folder: Path) -> str:
    """The page, in Markdown."""
    sections = [_section(folder, study) for study in STUDIES.values()]
    return render_markdown("fast-recipe.md", Path(__file__).parent, sections=sections)


def _section(folder: Path, study: RecipeStudy) -> StudySection:
    lengths = sorted(int(file.stem.rpartition("-")[2]) for file in folder.glob(f"{study.name}-*.json"))
    tables = {epochs: _tables(Scores(folder, study, epochs)) for epochs in lengths}
    return StudySection(study, tables, _changed_settings(study.row))


def _tables(scores: Scores) -> list[ScoreTable]:
    names = {variation.name: variation.description for variation in scores.study.variations}
    references = dict.fromkeys(variation.reference for variation in scores.study.variations)
    tables = [ScoreTable(names[reference], score_lines(scores, reference)) for reference in references]
    return [table for table in tables if table.lines]


def _changed_settings(row: str) -> list[ChangedSetting]:
    """The settings in which the fast recipe of a row differs from the paper's."""
    paper, fast = (dotted(to_dict(read_recipe(row, recipe))) for recipe in ("paper", "fast"))
    return [ChangedSetting(name, paper[name], fast[name]) for name in paper if paper[name] != fast[name]]


def score_lines(scores: Scores, reference: str = BASE) -> list[ScoreLine]:
    """The variations that are compared with a reference, best first; empty if there is nothing to compare."""
    base = scores.accuracies(reference)
    spread = pooled_spread(scores.accuracies(name) for name in scores.variations)
    lines: list[tuple[float, ScoreLine]] = []
    for variation in scores.study.variations:
        if reference not in (variation.name, variation.reference):
            continue
        change, values, failed = variation.description, scores.accuracies(variation.name), scores.failed(variation.name)
        if failed:
            lines.append((-1.0, ScoreLine(change, failed + len(values), f"{failed} did not learn")))
        elif values:
            std = f" ± {100 * stdev(values):.2f}" if len(values) > 1 else ""
            line = ScoreLine(change, len(values), f"{100 * mean(values):.2f}{std}")
            if variation.name != reference and base:
                difference = f"{100 * (mean(values) - mean(base)):+.2f}"
                line = ScoreLine(line.change, line.seeds, line.accuracy, difference, verdict(values, base, spread))
            lines.append((mean(values), line))
    lines.sort(key=lambda line: -line[0])
    return [line for _, line in lines] if len(lines) > 1 else []


def pooled_spread(groups: Iterable[list[float]]) -> Spread | None:
    """The spread of seeds, pooled over all groups with several; None if there is no such group."""
    several = [values for values in groups if len(values) > 1]
    freedom = sum(len(values) - 1 for values in several)
    if not freedom:
        return None
    return Spread(math.sqrt(sum(variance(v) * (len(v) - 1) for v in several) / freedom), freedom)


def verdict(values: list[float], base: list[float], spread: Spread | None) -> str:
    """Whether a difference is significant."""
    if spread is None:
        return "single seed"
    difference = mean(values) - mean(base)
    errors = _STUDENT[spread.freedom - 1] if spread.freedom <= len(_STUDENT) else _MANY
    if abs(difference) <= errors * spread.deviation * math.sqrt(1 / len(values) + 1 / len(base)):
        return "not significant"
    return "helped" if difference > 0 else "hurt"
