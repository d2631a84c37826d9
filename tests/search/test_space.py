"""What is searched, and which settings each trial gets."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from verydeep.cli import main
from verydeep.search import Choices, Range, Space, read_search
from verydeep.studies import draw, read_space, with_settings
from verydeep.training import TrainConfig

from .conftest import Write

SPACE: Space = {
    "optim.lr": Range(1e-4, 1.0, log=True),
    "model.depth": Range(2, 5),
    "model.activation": Choices(("tanh", "relu")),
}


def test_settings_follow_from_seed_and_number_alone() -> None:
    forwards = {number: draw(SPACE, 7, number) for number in range(50)}
    backwards = {number: draw(SPACE, 7, number) for number in reversed(range(50))}
    assert forwards == backwards
    assert len({settings["optim.lr"] for settings in forwards.values()}) == 50
    assert draw(SPACE, 8, 0) != draw(SPACE, 7, 0)


def test_these_very_settings_are_drawn_on_every_machine() -> None:
    assert [draw(SPACE, 0, number) for number in range(2)] == [
        {"optim.lr": 0.000237449, "model.depth": 4, "model.activation": "tanh"},
        {"optim.lr": 0.000126343, "model.depth": 5, "model.activation": "tanh"},
    ]


def test_a_field_has_the_same_values_whatever_is_searched_beside_it() -> None:
    alone: Space = {"optim.lr": SPACE["optim.lr"]}
    assert draw(alone, 3, 5)["optim.lr"] == draw(SPACE, 3, 5)["optim.lr"]


def test_a_logarithmic_range_is_even_over_its_decades_and_a_linear_one_is_not() -> None:
    rates = [draw(SPACE, 0, number)["optim.lr"] for number in range(2000)]
    decades = [sum(10.0**-k <= rate < 10.0 ** (1 - k) for rate in rates) / 2000 for k in (1, 2, 3, 4)]
    assert all(0.21 < share < 0.29 for share in decades)
    linear: Space = {"optim.lr": Range(1e-4, 1.0)}
    assert sum(draw(linear, 0, number)["optim.lr"] > 0.1 for number in range(1000)) > 850


def test_every_whole_number_and_every_choice_is_drawn_about_as_often() -> None:
    drawn = [draw(SPACE, 0, number) for number in range(2000)]
    for depth in (2, 3, 4, 5):
        assert 0.2 < sum(settings["model.depth"] == depth for settings in drawn) / 2000 < 0.3
    assert 0.45 < sum(settings["model.activation"] == "relu" for settings in drawn) / 2000 < 0.55


@given(st.floats(1e-6, 1e3), st.floats(1.001, 1e6), st.booleans(), st.integers(0, 2**31))
def test_no_setting_is_outside_its_range(low: float, factor: float, log: bool, seed: int) -> None:
    space: Space = {"optim.lr": Range(low, low * factor, log=log)}
    assert low <= draw(space, seed, 0)["optim.lr"] <= low * factor


def test_any_field_can_be_searched_down_to_lists_and_switches() -> None:
    tables = {
        "schedule": {"milestones": {"choices": [[1], [2, 3]]}},
        "optim.nesterov": {"choices": [True, False]},
        "data.augment.pad": {"low": 0, "high": 4},
        "model.carry": {"choices": ["coupled", "independent"]},
        "seed": {"low": 0, "high": 1000},
    }
    space = read_space(tables, TrainConfig(), "space")
    settings = draw(space, 0, 0)
    config = with_settings(TrainConfig(), settings)
    assert config.schedule.milestones == settings["schedule.milestones"]
    assert config.data.augment.pad == settings["data.augment.pad"]
    assert config.seed == settings["seed"]


def test_the_file_gives_the_space_and_the_rest_is_an_ordinary_configuration(write: Write) -> None:
    config = read_search(write(trials=7, epochs=2))
    assert config.train.epochs == 2
    assert config.options.trials == 7
    assert config.metric == "valid_accuracy"
    assert config.space["optim.lr"] == Range(0.01, 1.0, log=True)


BAD = [
    ("", "[search.space] is missing or empty"),
    ("[search]", "nothing to search"),
    ("[serach.space]\noptim.lr = {low = 0.1, high = 1.0}", "did you mean [search]?"),
    ("[search.space]", "nothing to search"),
    ("[search.space]\noptim.lrr = {low = 0.1, high = 1.0}", "did you mean 'optim.lr'?"),
    ("[search.space]\noptim.lr = {low = 1.0, high = 0.1}", "low = 1.0 must be less than high = 0.1"),
    ("[search.space]\noptim.lr = {low = 0.1, high = 0.1}", "low = 0.1 must be less than high = 0.1"),
    ("[search.space]\noptim.lr = {low = 0.0, high = 0.1, log = true}", "a logarithmic range needs low above 0"),
    ("[search.space]\noptim.lr = {low = -0.1, high = 0.1}", "optim.lr must be positive and finite"),
    ("[search.space]\noptim.lr = {low = 0.1}", "missing 'high'"),
    ("[search.space]\noptim.lr = {low = 0.1, high = inf}", "finite"),
    ("[search.space]\noptim.momentum = {low = 0.5, high = 1.0}", "optim.momentum must be at least 0 and less than 1"),
    ("[search.space]\nmodel.depth = {low = 1.5, high = 3.5}", "expected int"),
    ("[search.space]\nmodel.name = {low = 1, high = 3}", "expected str"),
    ("[search.space]\noptim.lr = 0.1", "expected {low = ..., high = ...} or {choices = [...]}"),
    ("[search.space]\noptim.lr = {choices = []}", "at least one value"),
    ("[search.space]\noptim.lr = {choices = [0.1, 0.1]}", "0.1 is listed twice"),
    ("[search.space]\noptim.lr = {choices = ['fast']}", "expected float"),
    ("[search.space]\noptim.lr = {choices = [0.1], low = 0.1}", "choices or a range, not both"),
    (
        "[search]\nmetric = 'test_accuracy'\n[search.space]\noptim.lr = {low = 0.1, high = 1.0}",
        "select on the test set",
    ),
    ("[search]\nmetric = 'los'\n[search.space]\noptim.lr = {low = 0.1, high = 1.0}", "did you mean 'loss'?"),
    ("[search]\nmetric = 'train_loss'\n[search.space]\noptim.lr = {low = 0.1, high = 1.0}", "evaluate_train = true"),
    ("[search]\nmetric = 'valid_loss'\n[search.space]\noptim.lr = {low = 0.1, high = 1.0}", "needs validation data"),
    ("[search]\ntrails = 3\n[search.space]\noptim.lr = {low = 0.1, high = 1.0}", "did you mean 'trials'?"),
    ("[search]\ntrials = 100001\n[search.space]\noptim.lr = {low = 0.1, high = 1.0}", "trials must be at most 100,000"),
    ("[search]\ntrials = 0\n[search.space]\noptim.lr = {low = 0.1, high = 1.0}", "trials must be at least 1"),
    ("[search]\nhalving = {keep = 1}\n[search.space]\noptim.lr = {low = 0.1, high = 1.0}", "keep at least 2"),
]


@pytest.mark.parametrize(("text", "words"), BAD)
def test_a_wrong_file_is_refused_in_one_line(
    text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad.toml"
    file.write_text("data = {source = 'digits'}\n" + text)
    assert main(["search", str(file), "--study", str(tmp_path / "study")]) == 2
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.err.count("\n") == 1
    assert not (tmp_path / "study").exists()
