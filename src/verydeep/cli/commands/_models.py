"""`verydeep models`: the networks that can be created by name, or one of them layer by layer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

from verydeep.cli._options import Json, positional, read_options
from verydeep.terminal import echo

if TYPE_CHECKING:
    from rich.text import Text

    from verydeep.models import ModelInfo

_COLUMNS = ("network", "layers", "parameters", "MACs", "published %")
_EXPENDABLE = ("MACs", "layers", "published %")  # left out of narrow tables, in order


@dataclass(frozen=True)
class ModelsOptions:
    """List the networks that can be created by name, or show one of them layer by layer."""

    name: Annotated[str | None, positional("NAME")] = None
    """Show this network layer by layer."""
    json: Json = False


OPTIONS = {"models": ModelsOptions}


def main(arguments: list[str]) -> None:
    """Run the command."""
    options = read_options(ModelsOptions, "models", arguments)
    from verydeep.models import list_models

    rows = list_models() if options.name is None else _named(options.name, list_models())
    if options.json:
        echo(json.dumps([vars(row) for row in rows], indent=1, ensure_ascii=False))
    elif options.name is None:
        _print_table(rows)
    else:
        _print_network(rows)


def _named(name: str, rows: list[ModelInfo]) -> list[ModelInfo]:
    from verydeep.errors import unknown

    found = [row for row in rows if row.name == name]
    if not found:
        raise unknown("model", name, {row.name for row in rows})
    return found


def _print_table(rows: list[ModelInfo]) -> None:
    from rich.text import Text

    from verydeep.cli._console import console, print_columns
    from verydeep.training import PREFIX, list_pretrained

    lines: list[dict[str, Text]] = []
    for (source, dataset), group in groupby(rows, lambda row: (row.source, row.dataset)):
        lines += [dict.fromkeys(_COLUMNS, Text())] if lines else []
        lines.append(dict.fromkeys(_COLUMNS, Text()) | {"network": Text(f"{source}, {dataset}", "bold")})
        lines += [dict(zip(_COLUMNS, map(Text, _cells(row)), strict=True)) for row in group]
    hidden = print_columns(lines, ("network", "published %"), _EXPENDABLE)
    console.print("\nMACs: multiply-adds per sample. Accuracies are the published ones, not ours.", highlight=False)
    counted = (
        "Layers, as the paper counts them: fully connected networks without the classifier, convolutional ones with it."
    )
    console.print(counted, highlight=False)
    console.print("* partly inferred: see verydeep models NAME.", highlight=False)
    trained = ", ".join(f"{PREFIX}{name}" for name in list_pretrained())
    console.print(f"Trained networks, for every command that takes a run: {trained}", highlight=False)
    if hidden:
        console.print(f"A wider terminal also shows {' and '.join(hidden)}.", highlight=False)


def _cells(row: ModelInfo) -> tuple[str, ...]:
    name = f"{_call(row)}{' *' if row.inferred else ''}"
    return name, str(row.layers), f"{row.parameters:,}", f"{row.multiply_adds / 1e6:,.1f} M", row.published


def _print_network(rows: list[ModelInfo]) -> None:
    from verydeep.cli._console import console
    from verydeep.cli._status import load_torch

    for row in rows:
        size = f"{row.layers} layers, {row.parameters:,} parameters, {row.multiply_adds:,} multiply-adds"
        console.print(f"{_call(row)}: {size}; {row.dataset}, {row.source}", highlight=False)
        if row.published:
            console.print(f"  published accuracy: {row.published} %", highlight=False)
        if row.inferred:
            console.print(f"  inferred: {row.inferred}", highlight=False)
    load_torch()
    import torch

    from verydeep.models import create_model

    with torch.device("meta"):
        console.print(repr(create_model(rows[0].name, **rows[0].overrides)), highlight=False, markup=False)


def _call(row: ModelInfo) -> str:
    return " ".join([row.name, *(f"{key}={value}" for key, value in row.overrides.items())])
