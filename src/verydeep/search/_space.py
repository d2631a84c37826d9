"""What is searched: fields of a training configuration, each with a range or with choices.

The settings of a trial follow from the seed, the trial's number and each field's name alone. So any number of workers
on any number of machines draw the same settings in any order, and a field has the same values whatever is searched
beside it: two networks searched with one seed are compared under the same learning rates.
"""

import copy
import dataclasses
import math
import random
import typing
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from verydeep.config import decode, from_dict, to_dict
from verydeep.errors import UserError, unknown
from verydeep.training import TrainConfig

Settings = dict[str, Any]
_WORDS = {"low", "high", "log", "choices"}
_DIGITS = 6  # significant ones: no machine's last bits, and a configuration people can read


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included; whole ones if both are.

    Attributes:
        low: The smallest.
        high: The largest.
        log: Whether every factor is as likely as any other, and not every difference.
    """

    low: int | float
    high: int | float
    log: bool = False

    @property
    def whole(self) -> bool:
        """Whether only whole numbers are meant."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    @property
    def limits(self) -> tuple[Any, ...]:
        """What must be possible for all to be."""
        return self.low, self.high

    def at(self, share: float) -> int | float:
        """The number at a share, 0 to below 1, of the range."""
        half = 0.5 if self.whole else 0.0  # the first and the last whole number are as likely as the others
        low, high = self.low - half, self.high + half
        value = low * (high / low) ** share if self.log else low + share * (high - low)
        value = round(value) if self.whole else float(f"{value:.{_DIGITS}g}")
        return min(max(value, self.low), self.high)


@dataclass(frozen=True)
class Choices:
    """One of several values, each as likely as any other."""

    choices: tuple[Any, ...]

    @property
    def limits(self) -> tuple[Any, ...]:
        """What must be possible: each."""
        return self.choices

    def at(self, share: float) -> Any:  # noqa: ANN401 - whatever the field takes
        """The choice at a share, 0 to below 1."""
        return self.choices[int(share * len(self.choices))]


Space = dict[str, Range | Choices]


def draw(space: Space, seed: int, number: int) -> Settings:
    """The settings of a trial."""
    return {name: way.at(random.Random(f"{seed}/{number}/{name}").random()) for name, way in space.items()}


def with_settings(config: TrainConfig, settings: Settings) -> TrainConfig:
    """The configuration with some fields, named by their dotted paths, changed."""
    values = to_dict(config)
    for name, value in settings.items():
        *path, last = name.split(".")
        table = values
        for part in path:
            table = table[part]
        table[last] = value
    return from_dict(TrainConfig, values, "settings")


def dotted(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one, each value named by its dotted path."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        found |= dotted(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return found


def read_space(tables: object, base: TrainConfig, where: str) -> Space:
    """The space of a file's tables, checked against the fields and their limits.

    Args:
        tables: `{"optim": {"lr": {"low": ..., "high": ...}}}` or `{"optim.lr": {...}}`.
        base: The configuration whose fields are searched.
        where: What to call the place in errors.
    """
    if not isinstance(tables, dict) or not (found := _flat(tables)):
        raise UserError(f"{where}: nothing to search; give fields, such as optim.lr = {{low = 0.001, high = 1.0}}")
    fields = searchable_fields()
    space: Space = {}
    for name, table in found.items():
        if name not in fields:
            raise unknown(f"field in {where}", name, fields)
        space[name] = _way(table, fields[name], f"{where}.{name}")
        check_limits(name, space[name], where, partial(with_settings, base))
    return space


def with_first_choices(values: dict[str, Any], tables: dict[str, Any]) -> dict[str, Any]:
    """A configuration's values, with the first of a field's choices where it has none of its own."""
    filled = copy.deepcopy(values)
    for name, way in _flat(tables).items():
        if isinstance(way, dict) and isinstance(way.get("choices"), list) and way["choices"]:
            *path, last = name.split(".")
            table: Any = filled
            for part in path:
                table = table.setdefault(part, {}) if isinstance(table, dict) else None
            if isinstance(table, dict):
                table.setdefault(last, way["choices"][0])
    return filled


def space_tables(space: Space) -> dict[str, dict[str, Any]]:
    """The space as a file would have it."""
    return {name: {k: list(v) if k == "choices" else v for k, v in vars(way).items()} for name, way in space.items()}


def searchable_fields(cls: type = TrainConfig, prefix: str = "") -> dict[str, Any]:
    """The dotted path of every field, and its type."""
    hints = typing.get_type_hints(cls)
    found: dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        hint = hints[field.name]
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            found |= searchable_fields(hint, f"{prefix}{field.name}.")
        else:
            found[prefix + field.name] = hint
    return found


def _flat(tables: dict[str, Any], prefix: str = "") -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for key, value in tables.items():
        if isinstance(value, dict) and value and not value.keys() & _WORDS:
            found |= _flat(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = value
    return found


def _way(table: object, hint: Any, where: str) -> Range | Choices:  # noqa: ANN401
    """A range or choices, with the field's own types."""
    if not isinstance(table, dict):
        raise UserError(f"{where}: expected {{low = ..., high = ...}} or {{choices = [...]}}, got {table!r}")
    if "choices" in table:
        return _choices(table, hint, where)
    way = from_dict(Range, table, where)
    low, high = (decode(hint, value, f"{where}.{key}") for key, value in (("low", way.low), ("high", way.high)))
    for key, value in (("low", low), ("high", high)):
        if isinstance(value, bool | str) or not math.isfinite(value):
            raise UserError(f"{where}.{key}: a range needs finite numbers, got {value!r}; use choices for other values")
    if not low < high:
        raise UserError(f"{where}: impossible range, low = {low} is not below high = {high}")
    if way.log and low <= 0:
        raise UserError(f"{where}: a logarithmic range needs low above 0, got {low}")
    return Range(low, high, way.log)


def _choices(table: dict[str, Any], hint: Any, where: str) -> Choices:  # noqa: ANN401
    for key in table.keys() - {"choices"}:
        raise UserError(f"{where}: give choices or a range, not both; remove {key}")
    values = table["choices"]
    if not isinstance(values, list | tuple) or not values:
        raise UserError(f"{where}.choices: expected a list of at least one value, got {values!r}")
    found = tuple(decode(hint, value, f"{where}.choices[{i}]") for i, value in enumerate(values))
    if repeated := [value for i, value in enumerate(found) if value in found[:i]]:
        raise UserError(f"{where}.choices: {repeated[0]!r} is there twice")
    return Choices(found)


def check_limits(name: str, way: Range | Choices, where: str, check: Callable[[Settings], object]) -> None:
    """What no network could be trained with is said before anything is started; `check` refuses settings."""
    for value in way.limits:
        try:
            check({name: value})
        except UserError as error:
            raise UserError(f"{where}.{name}: {value!r} cannot be searched: {error}") from error
