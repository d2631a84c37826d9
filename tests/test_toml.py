"""Dictionaries written as TOML read back equal."""

import math
import tomllib
from typing import Any

import pytest
from hypothesis import given, strategies as st

from verydeep.config import from_dict, to_dict, to_toml
from verydeep.training import TrainConfig, read_config

scalars = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
keys = st.text(st.characters(exclude_categories=["Cs"]))
tables = st.recursive(
    st.dictionaries(keys, scalars | st.lists(scalars)),
    lambda inner: st.dictionaries(keys, scalars | inner),
)


@pytest.mark.slow
@given(tables)
def test_any_table_reads_back_equal(values: dict[str, Any]) -> None:
    assert tomllib.loads(to_toml(values)) == values


def test_none_is_left_out_and_nan_reads_back() -> None:
    found = tomllib.loads(to_toml({"a": None, "b": math.nan}))
    assert list(found) == ["b"]
    assert math.isnan(found["b"])


@pytest.mark.parametrize("name", ["highway50-mnist", "fast/highway-a", "fitnet-a-hints"])
def test_a_configuration_reads_back_equal(name: str) -> None:
    config = read_config(name)
    assert from_dict(TrainConfig, tomllib.loads(to_toml(to_dict(config)))) == config
