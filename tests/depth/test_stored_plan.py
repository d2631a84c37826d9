"""The plan of a folder belongs to the data and the request it was made for."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from verydeep.data import Augment, DataConfig
from verydeep.depth import DepthProgress
from verydeep.depth._carry_out import _command_options
from verydeep.depth._problem import Problem
from verydeep.depth._stored_plan import Asked, check_plan, stored_plan
from verydeep.errors import UserError
from verydeep.training import TrainConfig

ASKED = Asked(most=2, minutes=None, total_epochs=900, seed=0, jobs=1)


def table(path: Path, classes: list[str], rows: int = 120) -> DataConfig:
    """A table of these classes, one row after the other."""
    x = np.random.default_rng(0).normal(size=(rows, 2))
    lines = [f"{a:.4f},{b:.4f},{classes[number % len(classes)]}" for number, (a, b) in enumerate(x)]
    path.write_text("a,b,y\n" + "\n".join(lines) + "\n")
    return DataConfig(str(path), target=("y",))


def test_a_table_that_has_changed_does_not_get_the_old_answer(tmp_path: Path) -> None:
    data = table(tmp_path / "table.csv", ["u", "v"])
    problem = Problem(data, None, None)
    plan = stored_plan(tmp_path / "out", problem, ASKED, DepthProgress()).plan
    assert check_plan(tmp_path / "out", Problem(data, None, None), ASKED) == plan
    table(tmp_path / "table.csv", ["v", "u"])
    with pytest.raises(UserError, match=r"table.csv has changed since .*out was started; choose another folder"):
        check_plan(tmp_path / "out", Problem(data, None, None), ASKED)


def test_a_plan_by_which_nothing_was_trained_is_made_again(tmp_path: Path) -> None:
    problem = Problem(table(tmp_path / "table.csv", ["u", "v"]), None, None)
    stored_plan(tmp_path / "out", problem, ASKED, DepthProgress())
    more = replace(ASKED, total_epochs=1500)
    assert stored_plan(tmp_path / "out", problem, more, DepthProgress()).plan.total_epochs == 1500
    (tmp_path / "out" / "study.json").write_text("{}")
    with pytest.raises(UserError, match="started with total epochs 1500, not 900"):
        stored_plan(tmp_path / "out", problem, ASKED, DepthProgress())


def test_classes_of_which_nothing_is_held_out_are_known(tmp_path: Path) -> None:
    common = Problem(table(tmp_path / "common.csv", ["u", "v"]), None, None)
    assert common.unmeasured_classes([0, 1, 2]) == {}
    rare = Problem(table(tmp_path / "rare.csv", ["u"] * 99 + ["v"], 300), None, None)
    found = rare.unmeasured_classes([0, 1, 2])
    held_out = [int((rare.fold(seed).held_out.y == 1).sum()) for seed in range(3)]  # type: ignore[union-attr]
    assert ("v" in found) == (sum(held_out) == 0)
    assert rare.unmeasured_classes(range(5)) == {}


def test_extreme_targets_are_noticed(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(200, 2))
    for value, low, high in ((0.0, 1, 5), (1e6, 10, 20)):
        np.savez(tmp_path / "numbers.npz", x=x, y=np.append(x[:-1, 0], value))
        problem = Problem(DataConfig(str(tmp_path / "numbers.npz"), test=1), None, None)
        assert low < problem.farthest_target < high
    assert Problem(table(tmp_path / "table.csv", ["u", "v"]), None, None).farthest_target == 0


def test_commands_repeat_the_loss_the_weights_and_switches() -> None:
    settings = TrainConfig(class_weight=("balanced",))
    problem = Problem(DataConfig("digits", augment=Augment(mirror=True)), None, None, settings)
    options = _command_options(problem)
    assert options[:2] == ("--class-weight", "balanced")
    assert "--data.augment.mirror" in options
    assert "True" not in options
