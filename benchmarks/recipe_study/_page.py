"""docs/fast-recipe.md: what helped a short recipe and what did not, written from the scores alone."""

import math
from collections.abc import Iterable
from pathlib import Path
from statistics import mean, stdev, variance
from typing import NamedTuple

from recipe_study._run import Scores
from recipe_study._variations import BASE, STUDIES
from verydeep.config import to_dict
from verydeep.paper._recipes import read_recipe
from verydeep.search import dotted

_HEAD = """# What helps a recipe of a tenth of the epochs

Written by `python benchmarks/fast_recipe.py` from `results/fast-recipe/`. Each line changes one thing in the base or
in the combination of what seemed to help. The accuracy is that of validation images held out of the training set, after
the last epoch; the test set was not looked at. A change *helped* or *hurt* if it moved the mean by more than chance
does nineteen times in twenty (Student's t), with the spread of seeds pooled over all changes of that length that have
several. What leads after a few epochs need not lead at the end: [results.md](results.md) has what the recipes
reached."""
_TABLE = ("| change | seeds | validation accuracy % | difference | verdict |", "|---|---|---|---|---|")
_STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23)  # standard errors by degrees of freedom
_MANY = 2.2  # for more degrees


class Spread(NamedTuple):
    """How far seeds lie apart.

    Attributes:
        deviation: Their standard deviation.
        freedom: From how many degrees of freedom it is known.
    """

    deviation: float
    freedom: int


def recipe_page(folder: Path) -> str:
    """The page, in Markdown."""
    parts = [_HEAD]
    for study in STUDIES.values():
        parts += [
            f"## {study.title}",
            f"What we take from it, mostly from single seeds: {study.lesson}",
            f"The base: {study.words}.",
        ]
        lengths = sorted(int(file.stem.rpartition("-")[2]) for file in folder.glob(f"{study.name}-*.json"))
        for epochs in lengths:
            scores = Scores(folder, study, epochs)
            parts += [f"### {epochs} epochs", *_tables(scores)]
        if not lengths:
            parts.append("Not yet run.")
        parts += [f"### What configs/fast/{study.row}.toml changes", "\n".join(recipe_lines(study.row))]
    return "\n\n".join(parts) + "\n"


def _tables(scores: Scores) -> list[str]:
    words = {variation.name: variation.words for variation in scores.study.variations}
    tables = []
    for reference in dict.fromkeys(variation.reference for variation in scores.study.variations):
        if lines := score_lines(scores, reference):
            tables += [f"Changes of {words[reference]}:", "\n".join(lines)]
    return tables


def recipe_lines(row: str) -> list[str]:
    """Where the fast recipe of a row is not the paper's."""
    paper, fast = (dotted(to_dict(read_recipe(row, recipe))) for recipe in ("paper", "fast"))
    changed = [name for name in paper if paper[name] != fast[name]]
    lines = [f"| {name} | {paper[name]} | {fast[name]} |" for name in changed]
    return ["| setting | paper | fast |", "|---|---|---|", *lines]


def score_lines(scores: Scores, reference: str = BASE) -> list[str]:
    """The table of what is compared with a reference at one length, the best first; empty if it would have one line."""
    base, spread = scores.accuracies(reference), pooled_spread(scores.accuracies(name) for name in scores.found)
    rows = []
    for variation in scores.study.variations:
        if reference not in (variation.name, variation.reference):
            continue
        values, lost = scores.accuracies(variation.name), scores.failed(variation.name)
        if lost:
            rows.append((-1.0, [variation.words, str(lost + len(values)), f"{lost} learnt nothing", "", ""]))
        elif values:
            std = f" ± {100 * stdev(values):.2f}" if len(values) > 1 else ""
            cells = [variation.words, str(len(values)), f"{100 * mean(values):.2f}{std}"]
            if variation.name != reference and base:
                cells += [f"{100 * (mean(values) - mean(base)):+.2f}", verdict(values, base, spread)]
            rows.append((mean(values), [*cells, "", ""][:5]))
    rows.sort(key=lambda row: -row[0])
    return [*_TABLE, *(f"| {' | '.join(cells)} |" for _, cells in rows)] if len(rows) > 1 else []


def pooled_spread(groups: Iterable[list[float]]) -> Spread | None:
    """The spread of all groups that have several seeds; None if none has."""
    several = [values for values in groups if len(values) > 1]
    freedom = sum(len(values) - 1 for values in several)
    if not freedom:
        return None
    return Spread(math.sqrt(sum(variance(v) * (len(v) - 1) for v in several) / freedom), freedom)


def verdict(values: list[float], base: list[float], spread: Spread | None) -> str:
    """Whether a difference is more than chance."""
    if spread is None:
        return "one seed says nothing"
    difference = mean(values) - mean(base)
    errors = _STUDENT[spread.freedom - 1] if spread.freedom <= len(_STUDENT) else _MANY
    if abs(difference) <= errors * spread.deviation * math.sqrt(1 / len(values) + 1 / len(base)):
        return "no difference"
    return "helped" if difference > 0 else "hurt"
