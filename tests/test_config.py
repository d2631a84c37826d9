from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import given, strategies as st

from verydeep.config import explains_unknown, from_dict, renamed, setting_names, suggest_setting, to_dict
from verydeep.errors import UserError, unknown
from verydeep.training import ModelConfig, OptimConfig, TrainConfig


@dataclass(frozen=True)
class Square:
    side: float


@dataclass(frozen=True)
class Circle:
    radius: float = 1.0


@dataclass(frozen=True)
class Drawing:
    name: str
    shapes: tuple[Square | Circle, ...] = ()
    colour: Literal["red", "blue"] | None = None
    sizes: tuple[int, ...] = (1, 2)
    frame: Circle = Circle()
    filled: bool = False


shapes = st.builds(Square, st.floats(0, 9)) | st.builds(Circle, st.floats(0, 9))
drawings = st.builds(
    Drawing,
    st.text(),
    st.lists(shapes).map(tuple),
    st.sampled_from(["red", "blue", None]),
    st.lists(st.integers()).map(tuple),
    st.builds(Circle, st.floats(0, 9)),
    st.booleans(),
)


@given(drawings)
def test_a_config_survives_a_round_trip(drawing: Drawing) -> None:
    assert from_dict(Drawing, to_dict(drawing)) == drawing


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "config: missing 'name'"),
        ([], "config: expected a table of settings"),
        ({"name": "a", "colur": 1}, "config: unknown setting 'colur'; did you mean 'colour'?"),
        ({"name": 3}, "config: name: expected str, got int '3'"),
        ({"name": "a", "colour": "green"}, "config: colour: expected 'red' or 'blue', got str 'green'"),
        ({"name": "a", "sizes": [1, "two"]}, "config: sizes[1]: expected int, got str 'two'"),
        ({"name": "a", "sizes": [True]}, "config: sizes[0]: expected int"),
        ({"name": "a", "filled": 1}, "config: filled: expected bool"),
        ({"name": {}}, "config: name: expected str, got a table"),
        ({"name": "a", "shapes": [{"kind": "Sqare", "side": 1}]}, "did you mean 'Square'?"),
        ({"name": "a", "shapes": [{"kind": "Square"}]}, "config: shapes[0]: missing 'side'"),
        ({"name": "a", "frame": {"radius": 10**400}}, "config: frame.radius: expected float"),
        ({"name": "a", "frame": {"radius": "wide"}}, "config: frame.radius: expected float"),
        ({"name": "a", "radius": 1}, "config: unknown setting 'radius'; did you mean 'radius' in [frame]?"),
        ({"name": "a", "frame": {"filled": True}}, "'filled' in [frame]; did you mean 'filled' outside of any table?"),
        ({"name": "a", "frame": {"zzz": 1}}, "config: unknown setting 'zzz' in [frame]; known: radius"),
        ({"name": "a", "framed": {}}, "config: unknown table 'framed'; did you mean [frame]?"),
        ({"name": "a", "shapes": [{"kind": "Square", "sid": 1}]}, "'sid' in [shapes[0]]; did you mean 'side'?"),
    ],
)
def test_errors_name_the_key(values: Any, words: str) -> None:
    with pytest.raises(UserError) as error:
        from_dict(Drawing, values)
    assert words in str(error.value)


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["name", "shapes", "kind", "side", "x"]), inner),
)


@given(json)
def test_any_value_gives_a_config_or_a_user_error(values: Any) -> None:
    try:
        from_dict(Drawing, values)
    except UserError as error:
        assert str(error)  # noqa: PT017 - what is refused must say so


def test_an_unknown_name_lists_the_known_ones_if_none_is_similar() -> None:
    assert str(unknown("colour", "xyz", ["red", "blue"])) == "unknown colour 'xyz'; known: blue, red"


@dataclass(frozen=True)
class Renamed:
    half_life: float | None = renamed("average", None)


def test_a_field_is_read_under_its_former_name_with_a_hint() -> None:
    hints: list[str] = []
    assert from_dict(Renamed, {"average": 2.0}, "run.toml", hints.append) == Renamed(2.0)
    assert hints == ["run.toml: 'average' is now called 'half_life'"]
    assert from_dict(Renamed, {"average": 2.0}) == Renamed(2.0)
    assert to_dict(Renamed(2.0)) == {"half_life": 2.0}
    with pytest.raises(UserError, match="both are given, keep 'half_life'"):
        from_dict(Renamed, {"average": 2.0, "half_life": 1.0})


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("lr", "optim.lr"),  # not optim.bias_lr
        ("learning-rate", "optim.lr"),
        ("depth", "model.depth"),
        ("target", "data.target"),
        ("gate-bias", "model.gate_bias"),
        ("wd", "optim.weight_decay"),
        ("seed", "seed"),  # not data.seed
        ("epoch", "epochs"),
        ("optim.epochs", "epochs"),
        ("schedul.name", "schedule.name"),
        ("optim.lrr", "optim.lr"),
        ("pad", "data.augment.pad"),
        ("dataset", None),
        ("zzz", None),
    ],
)
def test_the_setting_of_the_same_name_is_suggested_before_one_that_is_spelt_similarly(
    name: str, meant: str | None
) -> None:
    assert suggest_setting(name, TrainConfig) == meant


def test_a_name_that_exists_is_its_own_suggestion() -> None:
    names = setting_names(TrainConfig)
    assert {"epochs", "optim.lr", "data.augment.pad"} <= set(names)
    assert [suggest_setting(name, TrainConfig) for name in names] == names


@pytest.mark.parametrize(
    ("cls", "arguments", "words"),
    [
        (TrainConfig, {"lr": 0.1}, "has no argument 'lr'; did you mean TrainConfig(optim=OptimConfig(lr=0.1))?"),
        (TrainConfig, {"pad": 4}, "did you mean TrainConfig(data=DataConfig(augment=Augment(pad=4)))?"),
        (TrainConfig, {"average": 1.0}, "TrainConfig has no argument 'average'; it is now called 'ema_half_life'"),
        (OptimConfig, {"lrr": 0.1}, "OptimConfig has no argument 'lrr'; did you mean OptimConfig(lr=0.1)?"),
        (ModelConfig, {"epochs": 3}, "ModelConfig has no argument 'epochs' (it has name, depth, width, "),
    ],
)  # fmt: skip
def test_an_unknown_argument_in_python_says_what_was_meant(cls: type, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError) as error:
        cls(**arguments)
    assert words in str(error.value)


def test_a_dataclass_with_helpful_errors_is_otherwise_the_same() -> None:
    @explains_unknown
    @dataclass(frozen=True)
    class Point:
        x: int
        y: int = 0

    assert Point(1, y=2) == Point(1, 2)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Point()  # type: ignore[call-arg]
