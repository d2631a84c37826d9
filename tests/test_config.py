from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import given, strategies as st

from verydeep.config import from_dict, renamed, to_dict
from verydeep.errors import UserError, unknown


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
        ([], "config: expected a table of keys"),
        ({"name": "a", "colur": 1}, "unknown key in config 'colur'; did you mean 'colour'?"),
        ({"name": 3}, "config.name: expected str, got int '3'"),
        ({"name": "a", "colour": "green"}, "config.colour: expected 'red' or 'blue', got str 'green'"),
        ({"name": "a", "sizes": [1, "two"]}, "config.sizes[1]: expected int, got str 'two'"),
        ({"name": "a", "sizes": [True]}, "config.sizes[0]: expected int"),
        ({"name": "a", "filled": 1}, "config.filled: expected bool"),
        ({"name": {}}, "config.name: expected str, got a table"),
        ({"name": "a", "shapes": [{"kind": "Sqare", "side": 1}]}, "did you mean 'Square'?"),
        ({"name": "a", "shapes": [{"kind": "Square"}]}, "config.shapes[0]: missing 'side'"),
        ({"name": "a", "frame": {"radius": 10**400}}, "config.frame.radius: expected float"),
        ({"name": "a", "frame": {"radius": "wide"}}, "config.frame.radius: expected float"),
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
