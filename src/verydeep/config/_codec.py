"""Convert dataclasses to plain dictionaries and back, guided by the types of their fields.

A field holds a bool, int, float, str, a Literal of those, a dataclass, a tuple of one of these, or a union of them. If
a union has several dataclasses, the key `kind` of the dictionary names the class.
"""

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from verydeep.config._suggest import former_names, suggest_setting, suggest_table
from verydeep.errors import UserError, unknown

T = TypeVar("T")


def dotted(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one table whose keys are dotted paths."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        found |= dotted(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return found


def to_dict(config: Any) -> dict[str, Any]:  # noqa: ANN401 - any dataclass
    """Convert a dataclass to plain dictionaries, lists and scalars, as JSON and TOML have them.

    Args:
        config: Any dataclass whose fields `from_dict` can read.

    Example:
        >>> from verydeep.config import to_dict
        >>> from verydeep.training import OptimConfig
        >>> to_dict(OptimConfig(lr=0.1))["lr"]
        0.1
    """
    hints = typing.get_type_hints(type(config))
    return {f.name: _encode(hints[f.name], getattr(config, f.name)) for f in dataclasses.fields(config)}


def renamed(old: str, default: Any) -> Any:  # noqa: ANN401 - a field of any type
    """Declare a dataclass field that `from_dict` also reads under an earlier name.

    Args:
        old: The earlier name.
        default: The default value.
    """
    return dataclasses.field(default=default, metadata={"formerly": old})


def formerly(values: Mapping[Any, Any], default: Any) -> Any:  # noqa: ANN401 - a field of any type
    """Declare a dataclass field that `from_dict` also reads with values of earlier versions.

    Args:
        values: What each earlier value is now.
        default: The default value.
    """
    return dataclasses.field(default=default, metadata={"former values": values})


def from_dict(cls: type[T], values: object, where: str = "config", hint: Callable[[str], None] | None = None) -> T:
    """Build a dataclass from plain values, such as those of a TOML or JSON file.

    Args:
        cls: The dataclass.
        values: Its fields by name, or by their names in earlier versions.
        where: What error messages call the source of the values, such as the name of a file; empty for none.
        hint: Called with a one-line message for each field given under an earlier name.

    Returns:
        An instance of `cls`.

    Raises:
        UserError: A setting is unknown, missing or of the wrong type; the message names it.

    Example:
        >>> from verydeep.config import from_dict
        >>> from verydeep.training import TrainConfig
        >>> from_dict(TrainConfig, {"epochs": 3, "optim": {"lr": 0.1}}).optim.lr
        0.1
        >>> from_dict(TrainConfig, {"lr": 0.1}, "mine.toml")
        Traceback (most recent call last):
        ...
        verydeep.errors.UserError: mine.toml: unknown setting 'lr'; did you mean 'lr' in [optim]?
    """
    try:
        return _build(cls, values, where, "", hint)
    except _UnknownSettingError as error:
        raise UserError(f"{where}: {error.message(cls)}" if where else error.message(cls)) from None


class _UnknownSettingError(UserError):
    """A table has a key that its dataclass does not have."""

    def __init__(self, key: str, value: object, table: str, cls: type) -> None:
        self.key, self.value, self.table, self.cls = key, value, table, cls

    def message(self, root: type) -> str:
        """Name the key and the setting that was probably meant, in the same table or in another of `root`."""
        inside = f" in [{self.table}]" if self.table else ""
        kind = "table" if isinstance(self.value, dict) else "setting"
        return f"unknown {kind} '{self.key}'{inside}; {self._hint(root)}"

    def _hint(self, root: type) -> str:
        listed = "[" in self.table  # a table in a list: its settings have no dotted path from the root
        full = f"{self.table}.{self.key}" if self.table and not listed else self.key
        path = suggest_setting(full, self.cls if listed else root)
        if (path is None or isinstance(self.value, dict)) and (table := suggest_table(self.key, self.cls)):
            return f"did you mean [{self.table}.{table}]?" if self.table else f"did you mean [{table}]?"
        if path is None:
            return f"known: {', '.join(field.name for field in dataclasses.fields(self.cls) if field.init)}"
        table, _, last = path.rpartition(".")
        if listed or table == self.table:
            return f"did you mean '{last}'?"
        if table:
            return f"did you mean '{last}' in [{table}]?"
        return f"did you mean '{last}' outside of any table? It belongs before the first [table]"


def _build(cls: type[T], values: object, where: str, table: str, hint: Callable[[str], None] | None = None) -> T:
    """Build `cls` from the table with the dotted path `table`, which is empty for the file as a whole."""
    place = _place(where, table)
    if not isinstance(values, dict):
        raise UserError(f"{place}: expected a table of settings, got {_shown(values)}")
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}  # type: ignore[arg-type]
    for old, new in former_names(cls).items():
        if old in values and new in values:
            raise UserError(f"{place}: '{old}' is now called '{new}'; both are given, keep '{new}'")
        if old in values:
            values = {new if key == old else key: value for key, value in values.items()}
            if hint is not None:
                hint(f"{place}: '{old}' is now called '{new}'")
    for key in values:
        if key not in fields:
            raise _UnknownSettingError(str(key), values[key], table, cls)
    required = (f.name for f in fields.values() if f.default is f.default_factory is dataclasses.MISSING)
    missing = [name for name in required if name not in values]
    if missing:
        raise UserError(f"{place}: missing {', '.join(repr(name) for name in missing)}")
    values = {key: _present_value(fields[key], value) for key, value in values.items()}
    hints = typing.get_type_hints(cls)
    return cls(
        **{key: _decode(hints[key], value, where, f"{table}.{key}" if table else key) for key, value in values.items()}
    )


def _present_value(field: dataclasses.Field[Any], value: Any) -> Any:  # noqa: ANN401
    """A value of an earlier version as it is now."""
    former = field.metadata.get("former values", {})
    return former[value] if type(value) in map(type, former) and value in former else value


def _place(where: str, table: str) -> str:
    separator = ": " if where and table and not table.startswith("[") else ""
    return f"{where}{separator}{table}"


def _encode(hint: Any, value: Any) -> Any:  # noqa: ANN401
    if dataclasses.is_dataclass(value):
        several = len(_dataclasses(hint)) > 1
        return ({"kind": type(value).__name__} if several else {}) | to_dict(value)
    if isinstance(value, tuple):
        items = next((a for a in _alternatives(hint) if typing.get_origin(a) is tuple), tuple[Any, ...])
        return [_encode(typing.get_args(items)[0], item) for item in value]
    return value


def decode(hint: Any, value: Any, where: str) -> Any:  # noqa: ANN401
    """Convert a plain value to an annotated type.

    Args:
        hint: The type, such as `float | None`, a `Literal` or a dataclass.
        value: A scalar, a list or a dictionary.
        where: What error messages call the value.

    Example:
        >>> from verydeep.config import decode
        >>> decode(tuple[int, ...], [1, 2], "sizes")
        (1, 2)
    """
    try:
        return _decode(hint, value, where, "")
    except _UnknownSettingError as error:
        raise UserError(f"{where}: {error.message(error.cls)}") from None


def _decode(hint: Any, value: Any, where: str, path: str) -> Any:  # noqa: ANN401
    place = _place(where, path)
    if isinstance(value, dict):
        return _build(*_dataclass_for(hint, value, place), where, path)
    for alternative in _alternatives(hint):
        if alternative == tuple[str, ...] and isinstance(value, str | None):  # one name instead of a list, or none
            return () if value is None else (value,)
        if typing.get_origin(alternative) is tuple and isinstance(value, list | tuple):
            item = typing.get_args(alternative)[0]
            return tuple(_decode(item, v, where, f"{path}[{i}]") for i, v in enumerate(value))
        if typing.get_origin(alternative) is typing.Literal:
            if value in typing.get_args(alternative):
                return value
        elif alternative is float and (type(value) is float or _is_small_int(value)):
            return float(value)
        elif type(value) is alternative:
            return value
    raise UserError(f"{place}: expected {_named(hint)}, got {_shown(value)}")


def _dataclass_for(hint: Any, value: dict[str, Any], place: str) -> tuple[type, dict[str, Any]]:  # noqa: ANN401
    choices = {cls.__name__: cls for cls in _dataclasses(hint)}
    if not choices:
        raise UserError(f"{place}: expected {_named(hint)}, got a table")
    if len(choices) == 1:
        return next(iter(choices.values())), value
    if value.get("kind") not in choices:
        raise unknown(f"kind in {place}", value.get("kind"), choices)
    return choices[value["kind"]], {k: v for k, v in value.items() if k != "kind"}


def _is_small_int(value: Any) -> bool:  # noqa: ANN401
    return type(value) is int and abs(value) < 2**53  # exact as a float


def _alternatives(hint: Any) -> tuple[Any, ...]:  # noqa: ANN401
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return tuple(a for part in typing.get_args(hint) for a in _alternatives(part))
    return (hint,)


def _dataclasses(hint: Any) -> list[type]:  # noqa: ANN401
    return [a for a in _alternatives(hint) if dataclasses.is_dataclass(a) and isinstance(a, type)]


def _named(hint: Any) -> str:  # noqa: ANN401
    names = []
    for a in _alternatives(hint):
        if typing.get_origin(a) is typing.Literal:
            names += [repr(v) for v in typing.get_args(a)]
        elif typing.get_origin(a) is tuple:
            names.append(f"a list of {_named(typing.get_args(a)[0])}")
        elif a is not types.NoneType:
            names.append("a table" if dataclasses.is_dataclass(a) else a.__name__)
    return " or ".join(names)


def _shown(value: object) -> str:
    return f"{type(value).__name__} {str(value)[:40]!r}"
