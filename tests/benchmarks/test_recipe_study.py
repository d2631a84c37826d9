"""The study of short recipes: one change at a time, never the test set, and significant differences only."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from recipe_study import (
    STUDIES,
    Scores,
    Spread,
    StudyRunner,
    pooled_spread,
    recipe_page,
    score_lines,
    verdict,
)

from verydeep.errors import UserError
from verydeep.models import create_model
from verydeep.training import EpochMetrics

ROOT = Path(__file__).parents[2]
MNIST = STUDIES["mnist"]


@pytest.mark.slow
@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda study: study.name)
def test_every_variation_can_be_trained_and_never_sees_the_test_set(study: Any) -> None:
    assert len({variation.name for variation in study.variations}) == len(study.variations)
    for variation in study.variations:
        config = study.config(variation, 6)
        assert config.epochs == 6
        assert config.data.validation is not None
        assert config.evaluate_test == "never"
        with torch.device("meta"):
            create_model(config.model.name, **config.model.overrides())
        assert variation.name == "base" or config != study.config(study.variations[0], 6)


def test_the_papers_steps_shrink_with_the_epochs() -> None:
    (steps,) = MNIST.selected("steps")
    assert MNIST.config(steps, 30).schedule.milestones == (10, 20)
    assert MNIST.config(steps, 1).schedule.milestones == (1,)


def test_the_combination_is_varied_in_turn() -> None:
    combined, dropped = (MNIST.config(variation, 30) for variation in MNIST.selected("combined,combined-dropout-x-0.5"))
    assert (combined.optim.lr, combined.label_smoothing, combined.model.gate_bias) == (0.1, 0.1, -2.0)
    assert dropped == replace(combined, model=replace(combined.model, dropout=0.5))


def test_variations_are_selected_by_name() -> None:
    assert [variation.name for variation in MNIST.selected("linear, base")] == ["base", "linear"]
    assert MNIST.selected(None) == MNIST.variations
    with pytest.raises(UserError, match="did you mean 'linear'"):
        MNIST.selected("linaer")


def test_a_difference_counts_when_it_is_significant() -> None:
    assert pooled_spread([[0.0, 2.0], [1.0, 1.0], [5.0]]) == pytest.approx((1.0, 2))
    assert pooled_spread([[1.0]]) is None
    base, few, many = [0.50, 0.52], Spread(0.01, 1), Spread(0.01, 20)
    assert verdict([0.54, 0.54], base, many) == "helped"
    assert verdict([0.54, 0.54], base, few) == "not significant"  # two runs hardly determine the spread
    assert verdict([0.52, 0.52], base, many) == "not significant"
    assert verdict([0.40], base, many) == "hurt"
    assert verdict([0.40], base, None) == "single seed"


def test_scores_are_recorded_and_listed_best_first(tmp_path: Path) -> None:
    scores = Scores(tmp_path, MNIST, 1)
    reached: dict[str, list[float | None]] = {"base": [0.90, 0.91], "linear": [0.95, 0.96], "steps": [0.11, 0.9]}
    for variation in MNIST.selected("base,linear,steps"):
        scores.start(variation, MNIST.config(variation, 1))
        for seed, accuracy in enumerate(reached[variation.name]):
            scores.add(variation, seed, [EpochMetrics(1, valid_accuracy=accuracy, seconds=1.0)], {})
    again = Scores(tmp_path, MNIST, 1)
    assert again.accuracies("linear") == [0.95, 0.96]
    first, second, last = score_lines(again)
    assert (first.change, first.seeds, first.accuracy) == ("linear decay to zero, no warm-up", 2, "95.50 ± 0.71")
    assert (first.difference, first.verdict) == ("+5.00", "helped")
    assert (second.change, second.accuracy, second.difference, second.verdict) == ("the base", "90.50 ± 0.71", "", "")
    assert last.accuracy == "1 did not learn"
    with pytest.raises(UserError, match="other settings"):
        again.start(MNIST.variations[0], MNIST.config(MNIST.variations[0], 2))


@pytest.mark.slow
def test_the_study_continues_from_its_scores(tmp_path: Path) -> None:
    def run(seeds: int) -> list[str]:
        said: list[str] = []
        chosen = MNIST.selected("base")
        study = StudyRunner(MNIST, chosen, 1, seeds, tmp_path, tmp_path / "runs", jobs=1, quick=True)
        study.train(None, None, said.append)
        return said

    assert len(run(1)) == 1
    (said,) = run(2)
    assert said.startswith("mnist base seed 1: ")
    assert run(2) == []
    seeds = Scores(tmp_path, MNIST, 1).variations["base"]["seeds"]
    assert list(seeds) == ["0", "1"]
    assert seeds["1"]["environment"]["threads"] == 1


@pytest.mark.parametrize("file", sorted((ROOT / "results" / "fast-recipe").glob("*.json")), ids=lambda file: file.stem)
def test_every_score_is_of_the_settings_the_study_has(file: Path) -> None:
    """If one is not, its words on the page would be wrong: give what was changed a name of its own."""
    name, _, epochs = file.stem.rpartition("-")
    scores = Scores(file.parent, STUDIES[name], int(epochs))
    assert scores.variations
    for variation in STUDIES[name].selected(",".join(scores.variations)):
        scores.start(variation, replace(STUDIES[name].config(variation, int(epochs)), device="cpu", threads=1))


def test_the_page_on_recipes_is_what_the_scores_say() -> None:
    """If it is not: python benchmarks/fast_recipe.py --minutes 0."""
    assert (ROOT / "docs" / "fast-recipe.md").read_text() == recipe_page(ROOT / "results" / "fast-recipe")
