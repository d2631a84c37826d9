"""Write plain dictionaries as TOML; Python's standard library only reads it."""

import json
import math
from typing import Any


def to_toml(values: dict[str, Any]) -> str:
    """Convert a dictionary to a TOML document.

    Args:
        values: Tables, lists and scalars. Keys with the value None are left out, since TOML has no null.

    Example:
        >>> from verydeep.config import to_toml
        >>> print(to_toml({"epochs": 3, "optim": {"lr": 0.1, "clip": None}}))
        epochs = 3
        <BLANKLINE>
        [optim]
        lr = 0.1
        <BLANKLINE>
    """
    lines = [f"{_key(key)} = {_scalar(value)}" for key, value in values.items() if _is_plain(value)]
    for key, value in values.items():
        if isinstance(value, dict):
            lines += _table([key], value)
    return "\n".join(lines).strip("\n") + "\n"


def _table(path: list[str], values: dict[str, Any]) -> list[str]:
    lines = ["", f"[{'.'.join(map(_key, path))}]"]
    lines += [f"{_key(key)} = {_scalar(value)}" for key, value in values.items() if _is_plain(value)]
    for key, value in values.items():
        if isinstance(value, dict):
            lines += _table([*path, key], value)
    return lines


def _is_plain(value: object) -> bool:
    return value is not None and not isinstance(value, dict)


def _key(key: str) -> str:
    bare = key and all(c.isascii() and (c.isalnum() or c in "-_") for c in key)
    return key if bare else _text(key)


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_scalar, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # TOML has inf, -inf and nan
    return repr(value)


def _text(text: str) -> str:
    """Quote a string: JSON's escapes are valid in TOML, except for one character that JSON does not escape."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
