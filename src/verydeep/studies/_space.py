"""What is searched: fields of a training configuration, each with a range or a list of choices."""

import copy
import dataclasses
import math
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeVar

from verydeep.config import decode, former_names, from_dict, suggest_setting, to_dict
from verydeep.errors import UserError
from verydeep.training import TrainConfig

Settings = dict[str, Any]
Value = TypeVar("Value")
_DOMAIN_KEYS = {"low", "high", "log", "choices"}
_DIGITS = 6  # significant digits: the same on every machine, and easy to read


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included; whole numbers if both are.

    Attributes:
        low: The smallest value.
        high: The largest value.
        log: Whether the logarithm is uniformly distributed, and not the value itself.

    Example:
        >>> from verydeep.studies import Range
        >>> Range(1, 9).at(0.5), Range(0.01, 1.0, log=True).at(0.5)
        (5, 0.1)
    """

    low: int | float
    high: int | float
    log: bool = False

    @property
    def whole(self) -> bool:
        """Whether the range has only whole numbers."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    @property
    def limits(self) -> tuple[Any, ...]:
        """The values that are checked before a search starts: if they can be trained, all can."""
        return self.low, self.high

    def at(self, fraction: float) -> int | float:
        """The number at a fraction, 0 to below 1, of the range."""
        half = 0.5 if self.whole else 0.0  # makes the first and the last whole number as likely as the others
        low, high = self.low - half, self.high + half
        value = low * (high / low) ** fraction if self.log else low + fraction * (high - low)
        value = round(value) if self.whole else float(f"{value:.{_DIGITS}g}")
        return min(max(value, self.low), self.high)


@dataclass(frozen=True)
class Choices:
    """One of several values, all equally likely.

    Attributes:
        choices: The values.

    Example:
        >>> from verydeep.studies import Choices
        >>> Choices(("tanh", "relu")).at(0.7)
        'relu'
    """

    choices: tuple[Any, ...]

    @property
    def limits(self) -> tuple[Any, ...]:
        """The values that are checked before a search starts: all of them."""
        return self.choices

    def at(self, fraction: float) -> Any:  # noqa: ANN401 - whatever the field takes
        """The choice at a fraction, 0 to below 1, of the list."""
        return self.choices[int(fraction * len(self.choices))]


Domain = Range | Choices
Space = dict[str, Domain]


def with_settings(config: TrainConfig, settings: Settings) -> TrainConfig:
    """The configuration with some fields changed; `settings` names them by their dotted paths."""
    values = to_dict(config)
    for name, value in with_current_names(settings).items():
        *path, last = name.split(".")
        table = values
        for part in path:
            table = table[part]
        table[last] = value
    return from_dict(TrainConfig, values, "")


def read_space(tables: object, base: TrainConfig, where: str, hint: Callable[[str], None] | None = None) -> Space:
    """Read a search space from a file's tables and check its fields and limits.

    Args:
        tables: `{"optim": {"lr": {"low": ..., "high": ...}}}` or `{"optim.lr": {...}}`.
        base: The configuration whose fields are searched.
        where: What error messages call the tables.
        hint: Called with one line for each field that is given under a former name.
    """
    if not isinstance(tables, dict) or not (found := _flatten(tables)):
        raise UserError(f"{where}: nothing to search; name settings, such as optim.lr = {{low = 0.001, high = 1.0}}")
    found = with_current_names(found, where, hint)
    fields = searchable_fields()
    space: Space = {}
    for name, table in found.items():
        if name not in fields:
            near = suggest_setting(name, TrainConfig)
            help_ = f"did you mean '{near}'?" if near else f"known: {', '.join(sorted(fields))}"
            raise UserError(f"{where}: unknown setting '{name}'; {help_}")
        space[name] = _read_domain(table, fields[name], f"{where}.{name}")
        check_limits(name, space[name], where, partial(with_settings, base))
    return space


def with_first_choices(values: dict[str, Any], tables: dict[str, Any]) -> dict[str, Any]:
    """The values of a configuration; fields without a value get the first of their choices in the space."""
    filled = copy.deepcopy(values)
    for name, domain in with_current_names(_flatten(tables)).items():
        if isinstance(domain, dict) and isinstance(domain.get("choices"), list) and domain["choices"]:
            *path, last = name.split(".")
            table: Any = filled
            for part in path:
                table = table.setdefault(part, {}) if isinstance(table, dict) else None
            if isinstance(table, dict):
                table.setdefault(last, domain["choices"][0])
    return filled


def space_tables(space: Space) -> dict[str, dict[str, Any]]:
    """The space as the tables of a file."""
    return {
        name: {key: list(value) if key == "choices" else value for key, value in vars(domain).items()}
        for name, domain in space.items()
    }


@cache
def former_fields(cls: type = TrainConfig, prefix: str = "") -> Mapping[str, str]:
    """The present dotted path of every field that had another one in an earlier version."""
    found = {prefix + old: prefix + new for old, new in former_names(cls).items()}
    for name, hint in typing.get_type_hints(cls).items():
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            found |= former_fields(hint, f"{prefix}{name}.")
    return found


def with_current_names(
    values: Mapping[str, Value], where: str = "", hint: Callable[[str], None] | None = None
) -> dict[str, Value]:
    """The values with fields under their present names; `hint` gets one line for each that had a former one."""
    names = {old: new for old, new in former_fields().items() if old in values and new not in values}
    if hint is not None:
        for old, new in names.items():
            hint(f"{where}: '{old}' is now called '{new}'")
    return {names.get(name, name): value for name, value in values.items()}


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


def _flatten(tables: dict[str, Any], prefix: str = "") -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for key, value in tables.items():
        if isinstance(value, dict) and value and not value.keys() & _DOMAIN_KEYS:
            found |= _flatten(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = value
    return found


def _read_domain(table: object, hint: Any, where: str) -> Domain:  # noqa: ANN401
    """Read a range or choices and convert them to the field's type."""
    if not isinstance(table, dict):
        raise UserError(f"{where}: expected {{low = ..., high = ...}} or {{choices = [...]}}, got {table!r}")
    if "choices" in table:
        return _read_choices(table, hint, where)
    domain = from_dict(Range, table, where)
    low, high = (decode(hint, value, f"{where}.{key}") for key, value in (("low", domain.low), ("high", domain.high)))
    for key, value in (("low", low), ("high", high)):
        if isinstance(value, bool | str) or not math.isfinite(value):
            raise UserError(f"{where}.{key}: a range needs finite numbers, got {value!r}; use choices for other values")
    if not low < high:
        raise UserError(f"{where}: low = {low} must be less than high = {high}")
    if domain.log and low <= 0:
        raise UserError(f"{where}: a logarithmic range needs low above 0, got {low}")
    return Range(low, high, domain.log)


def _read_choices(table: dict[str, Any], hint: Any, where: str) -> Choices:  # noqa: ANN401
    for key in table.keys() - {"choices"}:
        raise UserError(f"{where}: give choices or a range, not both; remove {key}")
    values = table["choices"]
    if not isinstance(values, list | tuple) or not values:
        raise UserError(f"{where}.choices: expected a list of at least one value, got {values!r}")
    found = tuple(decode(hint, value, f"{where}.choices[{i}]") for i, value in enumerate(values))
    if repeated := [value for i, value in enumerate(found) if value in found[:i]]:
        raise UserError(f"{where}.choices: {repeated[0]!r} is listed twice")
    return Choices(found)


def check_limits(name: str, domain: Domain, where: str, check: Callable[[Settings], object]) -> None:
    """Check the limits of a domain before anything is trained; `check` raises a `UserError` for bad settings."""
    for value in domain.limits:
        try:
            check({name: value})
        except UserError as error:
            if str(error).startswith(name):
                raise UserError(f"{where}: {error}") from error
            raise UserError(f"{where}.{name}: {value!r} cannot be searched: {error}") from error
