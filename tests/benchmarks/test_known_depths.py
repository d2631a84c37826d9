"""Problems whose need for depth is known: the tables are what they claim to be, and wrong answers are found out."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _known_problems import (
    PROBLEMS,
    Array,
    Table,
    folded_paper,
    linear_numbers,
    nested_conditions,
    nested_distances,
    parity,
)
from known_depths import Answers, check_answers, page, read_answers
from sklearn.linear_model import LinearRegression, LogisticRegression  # type: ignore[import-untyped]

from verydeep.data import load_dataset

BY_NAME = pytest.mark.parametrize("name", list(PROBLEMS))


@BY_NAME
def test_a_table_is_the_same_for_the_same_seed_only(name: str) -> None:
    make = PROBLEMS[name].make
    first, again, other = make(0), make(0), make(1)
    assert (first.x == again.x).all()
    assert (first.y == again.y).all()
    assert not (first.x == other.x).all()


@BY_NAME
def test_classes_are_balanced_and_numbers_standardised(name: str) -> None:
    table = PROBLEMS[name].make(0)
    if table.truth.ndim == 2:
        shares = np.bincount(table.y.astype(int)) / len(table.y)
        assert shares.min() > 0.5 / table.truth.shape[1]
    else:
        assert abs(table.y.mean()) < 0.1
        assert 0.9 < table.y.std() < 1.6


@BY_NAME
def test_a_table_is_read_back_as_the_task_it_is(name: str, tmp_path: Path) -> None:
    problem = PROBLEMS[name]
    table = problem.make(0)
    Table(table.x[:300], table.y[:300], table.truth[:300]).write_csv(tmp_path / "table.csv")
    data = load_dataset(tmp_path / "table.csv", target="target")
    assert data.task.kind == problem.task
    assert data.train.x.shape[1] == table.x.shape[1]


@pytest.mark.parametrize("name", [name for name, problem in PROBLEMS.items() if problem.family == "linear"])
def test_a_linear_model_has_the_lowest_loss_of_a_linear_problem(name: str) -> None:
    loss = _linear_loss(PROBLEMS[name].make(0))
    assert loss == pytest.approx(PROBLEMS[name].make(0).lowest_loss, abs=0.02)


@pytest.mark.parametrize("name", [name for name, problem in PROBLEMS.items() if problem.family != "linear"])
def test_a_linear_model_is_far_from_the_lowest_loss_of_other_problems(name: str) -> None:
    table = PROBLEMS[name].make(0)
    if name != "coin-flips":
        assert _linear_loss(table) > 2 * table.lowest_loss


def test_the_lowest_loss_follows_from_the_noise() -> None:
    assert linear_numbers(0, 100_000).lowest_loss == pytest.approx(1 / 2, abs=0.01)
    assert nested_conditions(4, 0, 100_000).lowest_loss == pytest.approx(0.04 / 1.04, abs=0.002)
    assert nested_distances(3, 0, 100_000).lowest_loss == pytest.approx(0.04 / 1.04, abs=0.002)
    assert parity(0, 100_000).lowest_loss == pytest.approx(-(0.05 * np.log(0.05) + 0.95 * np.log(0.95)), abs=0.005)


@pytest.mark.parametrize("level", [1, 2, 3])
def test_rectified_layers_of_the_level_compute_the_rule_exactly(level: int) -> None:
    paper, distances = folded_paper(level, 0, 500), nested_distances(level, 0, 500)
    conditions = nested_conditions(level, 0, 500)

    units = paper.x
    for _ in range(level):
        turned = units @ np.array([[np.cos(0.6), np.sin(0.6)], [-np.sin(0.6), np.cos(0.6)]])
        units = 2 * (_relu(turned) + _relu(-turned)) - [0.8, 0.9]
    odds = np.log(paper.truth[:, 1] / paper.truth[:, 0])
    assert np.corrcoef(units @ [1, -0.3], odds)[0, 1] == pytest.approx(1)

    value = np.zeros(500)
    for feature in distances.x.T:
        total = 1.5 * feature + value
        value = _relu(total) + _relu(-total)
        value = (value - value.mean()) / value.std()
    assert np.corrcoef(value, distances.truth)[0, 1] == pytest.approx(1)

    value = np.zeros(500)
    for sign in conditions.x.T[::-1]:  # with what is at most 2 * level, the sign opens one of two pairs of units
        value, room = 1 + value, 2 * level * sign
        value = (
            _relu(value + room - 2 * level)
            - _relu(-value + room - 2 * level)
            + (_relu(-value - room - 2 * level) - _relu(value - room - 2 * level))
        )
    assert np.corrcoef(value, conditions.truth)[0, 1] == pytest.approx(1)


def test_answers_for_problems_that_there_are_no_more_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "answers.json").write_text(json.dumps({"answers": _right() | {"folded-line-1": {"0": _answer(1)}}}))
    assert list(read_answers(tmp_path / "answers.json")) == list(PROBLEMS)
    assert read_answers(tmp_path / "none.json") == {}


def test_right_answers_pass_all_checks() -> None:
    checks = check_answers(_right())
    assert len(checks) == 5 + 3 + 2
    assert all(check.holds for check in checks)


@pytest.mark.parametrize(
    ("name", "depth", "claim"),
    [
        ("linear-odds", 1, "linear-odds"),
        ("linear-odds", None, "linear-odds"),
        ("parity", 0, "parity"),
        ("nested-distances-2", 1, "nested distances"),
        ("nested-conditions-7", None, "nested conditions"),
    ],
)
def test_a_wrong_answer_fails_its_check(name: str, depth: int | None, claim: str) -> None:
    answers = _right()
    answers[name] = {seed: _answer(depth) for seed in ("0", "1")}
    assert [check.claim.split(":")[0] for check in check_answers(answers) if not check.holds] == [claim]


def test_an_answer_deeper_than_a_network_that_is_enough_fails() -> None:
    answers = _right()
    answers["nested-conditions-7"]["0"]["points"][0] |= {"excess": 0.0}
    [failed] = [check for check in check_answers(answers) if not check.holds]
    assert failed.found == "nested-conditions-7, seed 0"


def test_repeats_outside_the_intervals_fail_if_there_are_many() -> None:
    answers = _right()
    for number, name in enumerate(["nested-distances-3", "folded-paper-3", "nested-conditions-7"]):
        answers[name]["1"] = _answer(40)
        assert all(check.holds for check in check_answers(answers)) == (number < 2)


def test_the_page_has_a_row_per_problem_and_check() -> None:
    text = page(_right())
    assert text.count("\n| ") == len(PROBLEMS) + 2 + 10  # with the headings of both tables
    assert "| parity | 6,000 × 30 | searched |" in text
    assert "| nested-distances-3 | 6,000 × 3 | 4 |" in text
    assert text.count("| 2,400 epochs |") == len(PROBLEMS)
    assert "| no |" not in text


def _relu(values: Array) -> Array:
    return np.maximum(values, 0)


def _linear_loss(table: Table) -> float:
    """The loss of a linear model on the rows that it was fitted to."""
    if table.truth.ndim == 1:
        return float(1 - LinearRegression().fit(table.x, table.y).score(table.x, table.y))
    predicted = LogisticRegression(C=100).fit(table.x, table.y).predict_proba(table.x)
    return Table(table.x, table.y, predicted).lowest_loss


def _answer(depth: int | None) -> dict[str, Any]:
    points = [{"depth": each, "loss": 0.5, "excess": 0.2, "excess_error": 0.1} for each in range(depth or 0)]
    points.append({"depth": depth or 0, "loss": 0.3, "excess": 0.0, "excess_error": 0.1})
    interval = None if depth is None else (depth, depth + 1)
    return {"depth": depth, "interval": interval, "points": points, "budget": {"most": 16, "total_epochs": 2400}}


def _right() -> Answers:
    """Answers as they should be: twice the level for the families with levels."""
    depths = {"linear": 0, "unlearnable": None}
    return {
        name: {seed: _answer(depths.get(problem.expected, 2 * problem.level)) for seed in ("0", "1")}
        for name, problem in PROBLEMS.items()
    }
