"""docs/claims.md, the list of rules, and the lines that the command prints, from the results alone."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from verydeep.files import write_atomic
from verydeep.paper._duration import format_duration
from verydeep.paper._results_page import page_path
from verydeep.paper._templates import TEMPLATES
from verydeep.paper.claims._experiment import ClaimExperiment, Conclusion, PaperStatement
from verydeep.paper.claims._experiments import EXPERIMENTS
from verydeep.paper.claims._results import ClaimResult
from verydeep.report import render_markdown

_VERDICTS = ("agrees", "differs in part", "disagrees")


@dataclass(frozen=True)
class ClaimLine:
    """A statement of the paper and what was found about it."""

    experiment: ClaimExperiment
    statement: PaperStatement
    found: Conclusion

    @property
    def measured(self) -> str:
        """Our numbers, with how much is missing while there is no verdict."""
        return self.found.measured if self.found.verdict else ""

    @property
    def verdict(self) -> str:
        """The verdict, or how far the trainings are."""
        progress = f" ({self.found.measured})" if self.found.measured else ""
        return self.found.verdict or f"not yet measured{progress}"


@dataclass(frozen=True)
class ExperimentCost:
    """An experiment as the page describes it."""

    experiment: ClaimExperiment
    cost: str
    machine: str
    picture: str


def claim_lines_of(results: Sequence[ClaimResult]) -> list[ClaimLine]:
    """A line per statement, in the order of the paper's sections."""
    lines = [
        ClaimLine(result.experiment, statement, found)
        for result in results
        for statement, found in zip(result.experiment.statements, result.conclusions(), strict=True)
    ]
    return sorted(lines, key=lambda line: line.statement.section)


def count_verdicts(lines: Sequence[ClaimLine]) -> dict[str, int]:
    """How many statements have each verdict, and how many have none."""
    counts = {verdict: sum(line.found.verdict == verdict for line in lines) for verdict in _VERDICTS}
    return {**counts, "not yet measured": sum(line.found.verdict is None for line in lines)}


def claims_table_lines(results: Sequence[ClaimResult]) -> list[str]:
    """The table of statements, in Markdown."""
    return render_markdown("claims-table.md", TEMPLATES, lines=claim_lines_of(results)).splitlines()


def write_claims_page(results: Path, quick: bool = False) -> Path:
    """Draw the pictures, write the page and the list of rules from all results, and return the page's path."""
    found = [ClaimResult(results, each, quick) for each in EXPERIMENTS]
    pictures = {each.experiment.name: picture for each in found if (picture := _draw(each))}
    page = page_path(results, quick, "claims.md")
    write_atomic(page, claims_page(found, pictures, page.parent))
    costs = [_cost(result, {}, results) for result in found]
    rules = render_markdown("claims-rules.md", TEMPLATES, lines=claim_lines_of(found), experiments=costs)
    write_atomic(results / "claims" / "rules.md", rules)
    return page


def claims_page(results: Sequence[ClaimResult], pictures: Mapping[str, Path], beside: Path) -> str:
    """The page, in Markdown.

    Args:
        results: The results of the experiments.
        pictures: Their pictures, by name.
        beside: The folder of the page, which its links are relative to.
    """
    lines = claim_lines_of(results)
    return render_markdown(
        "claims.md",
        TEMPLATES,
        lines=lines,
        counts=count_verdicts(lines),
        thoughts=_thoughts(lines),
        experiments=[_cost(result, pictures, beside) for result in results],
        core_hours=sum(result.seconds for result in results) / 3600,
        rules=os.path.relpath(results[0].file.parent / "rules.md", beside),
    )


def _thoughts(lines: Sequence[ClaimLine]) -> dict[str, list[str]]:
    """What we think of differences, and the statements that each thought is about."""
    thoughts: dict[str, list[str]] = {}
    for line in lines:
        if line.found.verdict in _VERDICTS[1:] and line.statement.thought:
            thoughts.setdefault(line.statement.thought, []).append(f"*{line.statement.text}*")
    return thoughts


def _draw(result: ClaimResult) -> Path | None:
    """The picture of an experiment that has one and is complete; written again only with new numbers."""
    picture, draw = result.file.with_suffix(".png"), result.experiment.draw
    if draw is None or not result.is_complete or all(found.verdict is None for found in result.conclusions()):
        return None
    draw(result.evidence, picture)
    return picture


def _cost(result: ClaimResult, pictures: Mapping[str, Path], beside: Path) -> ExperimentCost:
    picture = pictures.get(result.experiment.name)
    machines = dict.fromkeys(str(each.get("processor", "")) for each in result.environments)
    searches = result.experiment.search is not None
    cost = f"{result.total} trainings" if result.total else "a search" if searches else "no training"
    if result.curves and not result.is_complete:
        cost = f"{len(result.curves)} of {cost}"
    if result.seconds:
        cost = (
            f"{cost if result.curves or searches else 'a measurement'}, {format_duration(result.seconds)} on one core"
        )
    link = "" if picture is None else os.path.relpath(picture, beside)
    return ExperimentCost(result.experiment, cost, ", ".join(machines), link)
