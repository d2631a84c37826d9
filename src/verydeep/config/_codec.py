"""Convert dataclasses to plain dictionaries and back, guided by the types of their fields.

A field holds a bool, int, float, str, a Literal of those, a dataclass, a tuple of one of these, or a union of them. If
a union has several dataclasses, the key `kind` of the dictionary names the class.
"""

import dataclasses
import types
import typing
from collections.abc import Callable
from typing import Any, TypeVar

from verydeep.errors import UserError, unknown

T = TypeVar("T")


def to_dict(config: Any) -> dict[str, Any]:  # noqa: ANN401 - any dataclass
    """Convert a configuration to plain dictionaries, lists and scalars, for JSON or TOML.

    Args:
        config: A dataclass, such as `TrainConfig` or `MLPConfig`.

    Example:
        >>> from verydeep.config import to_dict
        >>> from verydeep.models import MLPConfig
        >>> to_dict(MLPConfig("plain", depth=4))["input_shape"]
        [1, 28, 28]
    """
    hints = typing.get_type_hints(type(config))
    return {f.name: _encode(hints[f.name], getattr(config, f.name)) for f in dataclasses.fields(config)}


def renamed(old: str, default: Any) -> Any:  # noqa: ANN401 - a field of any type
    """Declare a dataclass field that can still be read under its old name."""
    return dataclasses.field(default=default, metadata={"formerly": old})


def from_dict(cls: type[T], values: object, where: str = "config", hint: Callable[[str], None] | None = None) -> T:
    """Build a configuration from a dictionary, such as one read from a JSON or TOML file.

    Args:
        cls: The dataclass.
        values: Its fields by name, or by their names in earlier versions.
        where: The name of the file, for error messages.
        hint: Called with a one-line message for each field given under an earlier name.

    Raises:
        UserError: If a key is unknown or missing, or a value has the wrong type.

    Example:
        >>> from verydeep.config import from_dict
        >>> from verydeep.models import MLPConfig
        >>> from_dict(MLPConfig, {"kind": "plain", "depth": 4}).depth
        4
    """
    if not isinstance(values, dict):
        raise UserError(f"{where}: expected a table of keys, got {_shown(values)}")
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}  # type: ignore[arg-type]
    for old, new in former_names(cls).items():
        if old in values and new in values:
            raise UserError(f"{where}: '{old}' is now called '{new}'; both are given, keep '{new}'")
        if old in values:
            values = {new if key == old else key: value for key, value in values.items()}
            if hint is not None:
                hint(f"{where}: '{old}' is now called '{new}'")
    for key in values:
        if key not in fields:
            raise unknown(f"key in {where}", key, fields)
    required = (f.name for f in fields.values() if f.default is f.default_factory is dataclasses.MISSING)
    missing = [name for name in required if name not in values]
    if missing:
        raise UserError(f"{where}: missing {', '.join(repr(name) for name in missing)}")
    hints = typing.get_type_hints(cls)
    return cls(**{key: decode(hints[key], value, f"{where}.{key}") for key, value in values.items()})


def former_names(cls: type) -> dict[str, str]:
    """Map the former names of fields to their present ones."""
    return {f.metadata["formerly"]: f.name for f in dataclasses.fields(cls) if "formerly" in f.metadata}


def _encode(hint: Any, value: Any) -> Any:  # noqa: ANN401
    if dataclasses.is_dataclass(value):
        several = len(_dataclasses(hint)) > 1
        return ({"kind": type(value).__name__} if several else {}) | to_dict(value)
    if isinstance(value, tuple):
        items = next((a for a in _alternatives(hint) if typing.get_origin(a) is tuple), tuple[Any, ...])
        return [_encode(typing.get_args(items)[0], item) for item in value]
    return value


def decode(hint: Any, value: Any, where: str) -> Any:  # noqa: ANN401
    """Convert a value to the annotated type `hint`; the error says what was expected at `where`."""
    if isinstance(value, dict):
        return from_dict(*_dataclass_for(hint, value, where), where)
    for alternative in _alternatives(hint):
        if typing.get_origin(alternative) is tuple and isinstance(value, list | tuple):
            item = typing.get_args(alternative)[0]
            return tuple(decode(item, v, f"{where}[{i}]") for i, v in enumerate(value))
        if typing.get_origin(alternative) is typing.Literal:
            if value in typing.get_args(alternative):
                return value
        elif alternative is float and (type(value) is float or _is_small_int(value)):
            return float(value)
        elif type(value) is alternative:
            return value
    raise UserError(f"{where}: expected {_named(hint)}, got {_shown(value)}")


def _dataclass_for(hint: Any, value: dict[str, Any], where: str) -> tuple[type, dict[str, Any]]:  # noqa: ANN401
    choices = {cls.__name__: cls for cls in _dataclasses(hint)}
    if not choices:
        raise UserError(f"{where}: expected {_named(hint)}, got a table")
    if len(choices) == 1:
        return next(iter(choices.values())), value
    if value.get("kind") not in choices:
        raise unknown(f"kind in {where}", value.get("kind"), choices)
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
