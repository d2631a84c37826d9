"""`verydeep schema`: a JSON schema with which editors complete and check configuration files."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from verydeep.cli._help import field_texts
from verydeep.cli._options import option, read_options
from verydeep.terminal import echo


@dataclass(frozen=True)
class SchemaOptions:
    """Print a JSON schema of configuration files, with which editors complete and check them.

    In a configuration, a first line such as #:schema schema.json names the file.
    """

    out: Annotated[Path | None, option("FILE.json", aliases=("-o",))] = None
    """Write it to this file instead of printing it."""


OPTIONS = {"schema": SchemaOptions}


def main(arguments: list[str]) -> None:
    """Run the command."""
    from verydeep.files import write_atomic

    options = read_options(SchemaOptions, "schema", arguments)
    text = json.dumps(config_schema(), indent=1, ensure_ascii=False) + "\n"
    if options.out is None:
        echo(text, end="")
    else:
        write_atomic(options.out, text)


def config_schema() -> dict[str, Any]:
    """The schema of a configuration file for `verydeep train` or `verydeep search`."""
    from verydeep.search import Options
    from verydeep.training import TrainConfig

    schema = _table(TrainConfig)
    search = _table(Options)
    search["properties"]["space"] = {"type": "object", "description": "The settings that vary, by name."}
    schema["properties"] |= {
        "extends": {"type": "string", "description": "Take settings that are not given from this configuration."},
        "search": search,
    }
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": "verydeep configuration", **schema}


def _table(cls: type) -> dict[str, Any]:
    """The schema of a dataclass; earlier names of its fields are accepted."""
    hints = typing.get_type_hints(cls)
    texts = field_texts(cls)
    properties: dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        if field.init:
            value = _value(hints[field.name])
            former = field.metadata.get("former values")
            if former:
                value = {"anyOf": [value, {"enum": list(former)}]}
            properties[field.name] = value | ({"description": texts[field.name]} if field.name in texts else {})
            if "formerly" in field.metadata:
                properties[field.metadata["formerly"]] = value | {"description": f"Now called {field.name}."}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _value(hint: Any) -> dict[str, Any]:  # noqa: ANN401 - a type
    """The schema of a value; None is no value that a file can hold."""
    kinds = [_kind(part) for part in _alternatives(hint) if part is not types.NoneType]
    kinds = [kind for place, kind in enumerate(kinds) if kind and kind not in kinds[:place]]
    return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}


def _kind(hint: Any) -> dict[str, Any]:  # noqa: ANN401 - a type
    if dataclasses.is_dataclass(hint):
        return _table(typing.cast("type", hint))
    if typing.get_origin(hint) is typing.Literal:
        return {"enum": list(typing.get_args(hint))}
    if typing.get_origin(hint) is tuple:
        item = _value(typing.get_args(hint)[0])
        listed: dict[str, Any] = {"type": "array", "items": item}
        return {"anyOf": [item, listed]} if hint == tuple[str, ...] else listed
    return {
        bool: {"type": "boolean"},
        int: {"type": "integer"},
        float: {"type": "number"},
        str: {"type": "string"},
    }.get(hint, {})


def _alternatives(hint: Any) -> list[Any]:  # noqa: ANN401 - a type
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return [a for part in typing.get_args(hint) for a in _alternatives(part)]
    return [hint]
