"""The plan: what fits into a budget, and how it is kept."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from verydeep.data import DataConfig
from verydeep.depth._cost import Cost, count_epochs, time_epochs
from verydeep.depth._phases import first_groups, seeds_of
from verydeep.depth._plan import DepthPlan, candidate_cost, make_plan, plan_cost, read_plan, revise_plan, smallest_cost
from verydeep.depth._problem import Candidate, Problem, candidates_at
from verydeep.depth._progress import DepthProgress, describe_plan
from verydeep.depth._stored_plan import Asked, stored_plan
from verydeep.errors import UserError


@pytest.fixture(scope="module")
def digits() -> Problem:
    return Problem(DataConfig("digits"), None, None)


def by_depth() -> Cost:
    """A cost that grows with depth and width, like time."""
    return Cost("seconds", lambda candidate, width: 0.01 * (1 + candidate.depth) * width / 24, 0.2)


@pytest.mark.parametrize("cost", [count_epochs(), by_depth()])
@pytest.mark.parametrize("most", [2, 3, 10, 50, 100])
def test_plans_stay_within_the_budget_and_use_more_of_a_larger_one(digits: Problem, cost: Cost, most: int) -> None:
    smallest = smallest_cost(digits, cost, most)
    assert make_plan(digits, cost, 0.99 * smallest, most) is None
    before = 0.0
    for factor in (1.01, 3, 10, 30, 100):
        plan = make_plan(digits, cost, factor * smallest, most)
        assert plan is not None
        assert before <= plan_cost(cost, plan) <= factor * smallest
        before = plan_cost(cost, plan)
        assert plan.seeds >= 3
        assert len(plan.depths) >= 3
        assert (plan.depths[0], plan.depths[-1]) == (0, most)
        assert plan.epochs <= digits.defaults.epochs


def test_a_large_budget_trains_all_powers_of_two(digits: Problem) -> None:
    plan = make_plan(digits, count_epochs(), 1e7, 50)
    assert plan is not None
    assert plan.depths == (0, 1, 2, 4, 8, 16, 32, 50)
    assert plan.epochs == digits.defaults.epochs
    assert plan.seeds == plan.folds == 5


def test_a_refinement_costs_what_its_networks_cost(digits: Problem) -> None:
    plan = make_plan(digits, by_depth(), 1e5, 8)
    assert plan is not None
    whole = sum(candidate_cost(by_depth(), plan, each) for depth in plan.depths for each in candidates_at(depth))
    assert whole == pytest.approx(plan_cost(by_depth(), plan))


PLANNED = DepthPlan(
    most=8,
    depths=(0, 1, 2, 4, 8),
    trials=9,
    kept=3,
    search_epochs=20,
    finalists=2,
    seeds=5,
    epochs=40,
    widths=(24,),
    minutes=10.0,
    jobs=2,
)


def test_a_plan_that_is_in_time_is_kept_and_a_late_one_is_shortened_step_by_step() -> None:
    seconds = sum(
        candidate_cost(by_depth(), PLANNED, each) for depth in PLANNED.depths for each in candidates_at(depth)
    )
    assert revise_plan(by_depth(), PLANNED, 1.0, seconds) == PLANNED
    before = PLANNED
    for share in (0.3, 0.2, 0.1, 0.05, 0.02, 0.0):
        revised = revise_plan(by_depth(), PLANNED, 1.0, share * seconds)
        assert "took longer than planned" in revised.revision
        assert 3 <= revised.seeds <= before.seeds
        assert 1 <= revised.finalists <= before.finalists
        assert 10 <= revised.epochs <= before.epochs
        assert set(revised.left_out) >= set(before.left_out)
        before = revised
    assert (before.finalists, before.seeds, before.epochs) == (1, 3, 10)
    kept = [depth for depth in before.depths if depth not in before.left_out]
    assert (len(kept), kept[0], kept[-1]) == (3, 0, 8)
    assert "3 seeds instead of 5 were trained; trainings had at most 10 epochs instead of 40" in before.revision


def test_a_slow_machine_shortens_a_plan_like_little_time() -> None:
    assert revise_plan(by_depth(), PLANNED, 4.0, 8.0) == revise_plan(by_depth(), PLANNED, 1.0, 2.0)


def test_plans_of_earlier_versions_are_read() -> None:
    assert read_plan({"most": 8, "kinds": ["highway", "plain"]}, "plan.json") == DepthPlan(most=8)


def test_a_width_that_is_given_is_not_searched(digits: Problem) -> None:
    narrow = Problem(DataConfig("digits"), None, None, width=5)
    config = narrow.config(Candidate("plain", 4), 5, 32)
    assert (config.model.width, narrow.widths) == (5, (5,))
    assert "model.width" not in narrow.space(Candidate("plain", 4), config)
    assert "model.width" in digits.space(Candidate("plain", 4), config)


def test_below_two_layers_both_kinds_are_the_same_network() -> None:
    assert [each.name for each in candidates_at(0) + candidates_at(1)] == ["highway-0", "highway-1"]
    assert [each.name for each in candidates_at(2)] == ["highway-2", "plain-2"]


def test_every_network_gets_the_same_number_of_settings_and_its_own_space(digits: Problem) -> None:
    plan = make_plan(digits, count_epochs(), 1e5, 8)
    assert plan is not None
    groups = {group.name: group for group in first_groups(digits, plan)}
    assert len(groups) == 2 * (2 * len(plan.depths) - 2)
    searches = {name: group.sampling for name, group in groups.items() if group.sampling}
    assert {sampling.trials for sampling in searches.values()} == {plan.trials}
    space = {name: set(sampling.space) for name, sampling in searches.items()}
    assert space["settings/highway-0"] == {"optim.lr", "optim.weight_decay"}
    assert (
        space["settings/plain-8"]
        == space["settings/highway-1"]
        == space["settings/highway-0"]
        | {
            "model.width",
            "model.activation",
        }
    )
    assert space["settings/highway-8"] == space["settings/plain-8"] | {"model.gate_bias"}
    assert groups["settings/highway-8/default"].config.model.depth == 8
    assert all(group.config.evaluate_test == "never" for group in groups.values())


def test_seeds_hold_out_every_part_of_the_data(digits: Problem) -> None:
    plan = make_plan(digits, count_epochs(), 1e7, 4)
    assert plan is not None
    for seed in (0, 1, 7):
        assert {each % 5 for each in seeds_of(replace(plan, seed=seed))} == {0, 1, 2, 3, 4}


def test_depths_between_those_that_were_timed_are_interpolated(
    digits: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seconds(_problem: Problem, candidate: Candidate, width: int, _batch_size: int) -> float:
        return 0.001 * width * (1 + candidate.depth) ** 2

    monkeypatch.setattr("verydeep.depth._cost._seconds", seconds)
    cost = time_epochs(digits, most=40, batch_size=32)
    shallow, between, deep = (cost.per_epoch(Candidate("highway", depth), 96) for depth in (2, 21, 40))
    assert 0 < cost.per_epoch(Candidate("highway", 0), 96) < shallow < between < deep
    assert between == pytest.approx((shallow + deep) / 2)


def test_networks_that_diverge_are_timed(digits: Problem) -> None:
    wild = replace(digits.defaults, optim=replace(digits.defaults.optim, lr=1e6))
    problem = Problem(DataConfig("digits"), None, None, wild)
    assert problem.config(Candidate("plain", 4), 1, 32).optim.lr == 1e6
    assert 0 < time_epochs(problem, most=4, batch_size=32).per_epoch(Candidate("plain", 4), 24) < np.inf


def asked(total_epochs: int | None = 5000, minutes: float | None = None, most: int = 4, seed: int = 0) -> Asked:
    return Asked(most, minutes, total_epochs, seed, jobs=2)


def test_a_plan_is_kept_with_its_folder(digits: Problem, tmp_path: Path) -> None:
    first = stored_plan(tmp_path, digits, asked(), DepthProgress())
    (tmp_path / "study.json").write_text("{}")  # training has begun
    assert stored_plan(tmp_path, digits, asked(), DepthProgress()).plan == first.plan
    with pytest.raises(UserError, match="started with total epochs 5000, not 6000"):
        stored_plan(tmp_path, digits, asked(6000), DepthProgress())
    with pytest.raises(UserError, match="started with seed 0, not 1"):
        stored_plan(tmp_path, digits, asked(seed=1), DepthProgress())
    (tmp_path / "plan.json").write_text('{"format": 99}')
    with pytest.raises(UserError, match="not a plan of this version"):
        stored_plan(tmp_path, digits, asked(), DepthProgress())


def test_a_budget_that_is_too_small_says_how_much_is_needed(digits: Problem, tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"total_epochs = 10 is too little for three seeds .* give at least ([\d,]+)"
    ) as error:
        stored_plan(tmp_path, digits, asked(10), DepthProgress())
    least = int(str(error.value).rpartition(" ")[2].replace(",", ""))
    assert stored_plan(tmp_path, digits, asked(least), DepthProgress()).plan.seeds == 3
    with pytest.raises(UserError, match=r"0.01 minutes is too little .* this machine needs at least [\d.]+"):
        stored_plan(tmp_path / "timed", digits, asked(None, 0.01), DepthProgress())
    assert not (tmp_path / "timed").exists()


def test_a_default_that_is_too_little_is_extended(digits: Problem, tmp_path: Path) -> None:
    default = replace(asked(None, 0.01), extends=True)
    planned = stored_plan(tmp_path, digits, default, DepthProgress())
    minutes = planned.plan.minutes
    assert minutes is not None
    assert minutes > 0.01
    assert planned.plan.seeds == 3
    assert f"This takes about {minutes:g} minutes." in describe_plan(planned.plan)
    (tmp_path / "study.json").write_text("{}")  # training has begun
    again = stored_plan(tmp_path, digits, default, DepthProgress())
    assert (again.plan, again.budget) == (planned.plan, planned.budget)
    with pytest.raises(UserError, match=f"started with minutes {minutes:g}, not 0.01"):
        stored_plan(tmp_path, digits, asked(None, 0.01), DepthProgress())


def test_what_is_held_out_serves_neither_training_nor_early_stopping(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    x, y = random.normal(size=(100, 1)), random.integers(0, 2, 100)
    np.savez(tmp_path / "all.npz", x=x, y=y)
    own: dict[str, Any] = {
        "x_train": x[:60],
        "x_valid": x[60:75],
        "x_test": x[75:],
        "y_train": y[:60],
        "y_valid": y[60:75],
        "y_test": y[75:],
    }
    np.savez(tmp_path / "parts.npz", **own)
    for name, sizes in {"all.npz": (54, 10, 16, 20), "parts.npz": (48, 15, 12, 25)}.items():
        dataset = Problem(DataConfig(str(tmp_path / name)), None, None).dataset
        splits = (dataset.train, dataset.valid, dataset.held_out, dataset.test)
        assert tuple(len(split) for split in splits if split is not None) == sizes
        values = [float(value) for split in splits if split is not None for value in split.x]
        assert len(set(values)) == 100


def test_data_from_which_nothing_can_be_learned_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "few.npz", x=np.random.default_rng(0).normal(size=(35, 2)), y=np.arange(35) % 2)
    with pytest.raises(UserError, match="has only 28 training samples; at least 30 are needed"):
        Problem(DataConfig(str(tmp_path / "few.npz")), None, None)
    np.savez(tmp_path / "constant.npz", x=np.ones((60, 2)), y=np.arange(60) % 2)
    with pytest.raises(UserError, match="all features are constant"):
        Problem(DataConfig(str(tmp_path / "constant.npz")), None, None)
    np.savez(tmp_path / "one.npz", x=np.random.default_rng(0).normal(size=(60, 2)), y=np.zeros(60, int))
    with pytest.raises(UserError, match="class"):
        Problem(DataConfig(str(tmp_path / "one.npz")), None, None)


def test_convolutional_networks_count_layers_per_stage() -> None:
    problem = Problem(DataConfig("digits"), None, "conv")
    assert problem.unit == "layers per stage"
    assert problem.hidden_layers(0) == 0
    stages = problem.hidden_layers(2) - problem.hidden_layers(1)
    assert problem.hidden_layers(1) == stages  # small images are not halved first
    assert problem.config(Candidate("plain", 3), 5, 32).model.name == "plain-conv"
    assert problem.config(Candidate("highway", 0), 5, 32).model.name == "highway-mlp"
