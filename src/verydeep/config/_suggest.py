"""Which setting a wrong name was meant to be, for error messages of files, options and Python."""

import dataclasses
import functools
import re
import typing
from difflib import get_close_matches
from typing import Any, TypeVar

T = TypeVar("T")
_SIMILAR = 0.65  # below, "dataset" would suggest "target"


def setting_names(config_class: type, prefix: str = "") -> list[str]:
    """The dotted paths of all settings of a configuration, such as `epochs` and `optim.lr`."""
    hints, names = typing.get_type_hints(config_class), list[str]()
    for field in dataclasses.fields(config_class):
        hint = hints[field.name]
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            names += setting_names(hint, f"{prefix}{field.name}.")
        else:
            names.append(prefix + field.name)
    return names


def suggest_setting(name: str, config_class: type) -> str | None:
    """The setting that a name which does not exist probably means.

    A setting whose own name is the same, in whichever table, comes before one that is merely spelt similarly, and a
    setting of the same table before one of another.

    Args:
        name: The wrong name, with dots or hyphens as in a file or on the command line: `lr`, `optim.dept`.
        config_class: The dataclass of the configuration.

    Returns:
        The dotted path of the setting, or None if nothing is similar.

    Example:
        >>> from verydeep.config import suggest_setting
        >>> from verydeep.training import TrainConfig
        >>> suggest_setting("lr", TrainConfig)
        'optim.lr'
        >>> suggest_setting("learning-rate", TrainConfig)
        'optim.lr'
        >>> suggest_setting("model.dept", TrainConfig)
        'model.depth'
    """
    table, _, last = name.lower().replace("-", "_").rpartition(".")
    paths = setting_names(config_class)
    same = [path for path in paths if _last(path) == last] or [
        path for path in paths if _abbreviates(_last(path), last)
    ]
    if same:
        return _nearest(table, same)
    inside = [path for path in paths if table and _table(path) == table]
    for candidates in (inside, paths):
        if near := get_close_matches(last, sorted({_last(path) for path in candidates}), n=1, cutoff=_SIMILAR):
            return _nearest(table, [path for path in candidates if _last(path) == near[0]])
    return None


def explains_unknown(cls: type[T]) -> type[T]:
    """Decorate a dataclass: its TypeError for an unknown argument says which setting was probably meant.

    Example:
        >>> from verydeep.training import TrainConfig
        >>> TrainConfig(lr=0.1)
        Traceback (most recent call last):
        ...
        TypeError: TrainConfig has no argument 'lr'; did you mean TrainConfig(optim=OptimConfig(lr=0.1))?
    """
    plain: Any = cls.__init__
    names = {field.name for field in dataclasses.fields(cls) if field.init}  # type: ignore[arg-type]

    @functools.wraps(plain)
    def init(self: T, *args: object, **values: object) -> None:
        for name, value in values.items():
            if name not in names:
                raise TypeError(f"{cls.__name__} has no argument '{name}'{_python_hint(cls, name, value)}")
        plain(self, *args, **values)

    cls.__init__ = init  # type: ignore[method-assign, assignment]
    return cls


def former_names(cls: type) -> dict[str, str]:
    """Map the former names of fields to their present ones."""
    return {f.metadata["formerly"]: f.name for f in dataclasses.fields(cls) if "formerly" in f.metadata}


def suggest_table(name: str, cls: type) -> str | None:
    """The table of a configuration that a wrong name probably means: `schedule` for `scheduler`."""
    hints = typing.get_type_hints(cls)
    tables = [field.name for field in dataclasses.fields(cls) if dataclasses.is_dataclass(hints[field.name])]
    return next(iter(get_close_matches(name, tables, n=1, cutoff=_SIMILAR)), None)


def _python_hint(cls: type, name: str, value: object) -> str:
    if name in former_names(cls):
        return f"; it is now called '{former_names(cls)[name]}'"
    path = suggest_setting(name, cls)
    if path is None:
        return f" (it has {', '.join(field.name for field in dataclasses.fields(cls))})"
    *tables, last = path.split(".")
    shown, inner = f"{last}={value!r}", cls
    classes = [inner := _field_class(inner, table) for table in tables]
    for table, table_class in reversed(list(zip(tables, classes, strict=True))):
        shown = f"{table}={table_class.__name__}({shown})"
    return f"; did you mean {cls.__name__}({shown})?"


def _field_class(cls: type, name: str) -> Any:  # noqa: ANN401 - a dataclass
    return typing.get_type_hints(cls)[name]


def _abbreviates(short: str, long: str) -> bool:
    """Whether one name consists of the initials of the other: lr and learning_rate, weight_decay and wd."""
    return any(
        "_" in words and "".join(re.findall(r"(?:^|_)(\w)", words)) == initials
        for words, initials in ((short, long), (long, short))
    )


def _nearest(table: str, paths: list[str]) -> str:
    """The path whose table is most similar to the given one; of several, the first in the least nested table."""
    if near := get_close_matches(table, [_table(path) for path in paths], n=1) if table else []:
        return next(path for path in paths if _table(path) == near[0])
    return min(paths, key=lambda path: path.count("."))


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _table(path: str) -> str:
    return path.rpartition(".")[0]
