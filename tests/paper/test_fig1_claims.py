"""The paper's claims about Figure 1 are checked against our measurements, and can fail."""

import json
import re
from pathlib import Path

from verydeep.paper import Fig1Row, claim_lines, fig1_claims

ROOT = Path(__file__).parents[2]

DEPTHS = (10, 20, 50, 100)
YES, PARTLY, NO = "agrees", "differs in part", "disagrees"
AGREES: dict[str, tuple[float, ...]] = {"plain": (5e-5, 9e-5, 3e-3, 0.5), "highway": (5e-5, 6e-5, 4e-4, 4e-4)}
EPOCHS: dict[str, tuple[int | None, ...]] = {"plain": (22, 27, 57, None), "highway": (16, 17, 23, 30)}


def rows(losses: dict[str, tuple[float, ...]], epochs: dict[str, tuple[int | None, ...]] = EPOCHS) -> list[Fig1Row]:
    return [
        Fig1Row(f"{family}-{depth}", 1, (100, 100), best=best, learnt_after=after)
        for family in ("plain", "highway")
        for depth, best, after in zip(DEPTHS, losses[family], epochs[family], strict=True)
    ]


def verdicts(found: list[Fig1Row]) -> list[str | None]:
    return [claim.verdict for claim in fig1_claims(found)]


def test_each_claim_is_checked_on_its_own() -> None:
    assert verdicts(rows(AGREES)) == [YES] * 5
    plain, highway = AGREES["plain"], AGREES["highway"]
    assert verdicts(rows(AGREES | {"plain": (5e-5, 2e-4, 3e-3, 0.5)})) == [PARTLY, YES, YES, YES, YES]
    assert verdicts(rows(AGREES | {"plain": (2e-4, 2e-4, 3e-3, 0.5)})) == [NO, YES, YES, YES, YES]
    assert verdicts(rows(AGREES | {"plain": (5e-5, 9e-5, 0.6, 0.5)})) == [YES, NO, YES, YES, YES]
    assert verdicts(rows({"plain": plain, "highway": (5e-5, 6e-5, 4e-4, 7e-4)})) == [YES, YES, NO, YES, YES]
    assert verdicts(rows({"plain": (*plain[:3], 0.03), "highway": highway})) == [YES, YES, YES, NO, YES]


def test_a_highway_that_is_no_faster_at_one_depth_contradicts_the_paper() -> None:
    assert verdicts(rows(AGREES, EPOCHS | {"highway": (22, 17, 23, 30)}))[-1] == PARTLY
    assert verdicts(rows(AGREES, EPOCHS | {"highway": (16, 17, 23, None)}))[-1] == PARTLY
    assert verdicts(rows(AGREES, EPOCHS | {"highway": (22, 27, 23, None)}))[-1] == NO
    lines = claim_lines(rows(AGREES))
    assert "20 layers: 17, plain 27" in lines[-1]
    assert "100 layers: 30, plain never" in lines[-1]


def test_claims_about_missing_networks_are_left_open() -> None:
    found = [row for row in rows(AGREES) if row.network != "highway-100"]
    assert verdicts(found) == [YES, YES, None, None, None]
    assert sum("not yet run" in line for line in claim_lines(found)) == 3


def test_the_readme_says_what_was_measured() -> None:
    readme = (ROOT / "README.md").read_text()
    measured = json.loads((ROOT / "results" / "fig1" / "table.json").read_text())
    found = {row["network"]: row for row in measured["rows"]}
    for depth in DEPTHS:
        pair = [found[f"{family}-{depth}"] for family in ("plain", "highway")]
        (line,) = re.findall(rf"^\| {depth} \|.*$", readme, flags=re.M)
        *losses, accuracies = line.replace("*", "").strip("| ").split(" | ")[1:]
        wanted = [value for row in pair for value in (row["best"], row["top"])]
        assert [float(loss) for loss in losses] == [float(f"{value:.2g}") for value in wanted]
        assert accuracies == ", ".join(f"{100 * row['test_accuracy']:.2f} %" for row in pair)
    assert f"its loss is {measured['ratio_at_100_layers']:,.0f} times lower" in readme
