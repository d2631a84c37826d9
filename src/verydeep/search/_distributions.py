"""A search space and its settings in Optuna's terms."""

import json
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from verydeep.search._space import Choices, Range, Settings, Space


def encoded(space: Space, settings: Settings) -> dict[str, Any]:
    """Settings as Optuna keeps them: a list among choices becomes its JSON."""
    return {name: _label(value) if isinstance(space[name], Choices) else value for name, value in settings.items()}


def decoded(space: Space, params: dict[str, Any]) -> Settings:
    """Settings from what Optuna keeps."""
    return {name: _value(space[name], params[name]) for name in space}


def _value(way: Range | Choices, kept: Any) -> Any:  # noqa: ANN401
    if isinstance(way, Choices):
        value = next(choice for choice in way.choices if _label(choice) == kept)
        return list(value) if isinstance(value, tuple) else value
    return kept


def _label(value: Any) -> Any:  # noqa: ANN401
    return json.dumps(value) if isinstance(value, list | tuple) else value


def distribution(way: Range | Choices) -> BaseDistribution:
    """A field's range or choices in Optuna's terms."""
    if isinstance(way, Choices):
        return CategoricalDistribution([_label(choice) for choice in way.choices])
    if way.whole:
        return IntDistribution(int(way.low), int(way.high), log=way.log)
    return FloatDistribution(way.low, way.high, log=way.log)
