"""`verydeep models`: the networks that can be created by name, or one of them layer by layer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import tyro

from verydeep.cli._options import read_options

if TYPE_CHECKING:
    from verydeep.models import ModelInfo


@dataclass(frozen=True)
class ModelsOptions:
    """List the networks that can be created by name, or show one of them layer by layer."""

    name: tyro.conf.Positional[str | None] = None
    """Show this network."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> None:
        from verydeep.models import list_models

        rows = list_models() if self.name is None else _named(self.name, list_models())
        if self.json:
            print(json.dumps([vars(row) for row in rows], indent=1, ensure_ascii=False))
        elif self.name is None:
            _print_table(rows)
        else:
            _print_network(rows)


def main(arguments: list[str]) -> None:
    """Run the command."""
    read_options(ModelsOptions, "models", arguments).run()


def _named(name: str, rows: list[ModelInfo]) -> list[ModelInfo]:
    from verydeep.errors import unknown

    found = [row for row in rows if row.name == name]
    if not found:
        raise unknown("model", name, {row.name for row in rows})
    return found


def _print_table(rows: list[ModelInfo]) -> None:
    from rich.table import Table

    from verydeep.cli._console import console

    for number, ((source, dataset), group) in enumerate(groupby(rows, lambda row: (row.source, row.dataset))):
        table = Table(
            show_header=number == 0,
            box=None,
            padding=(0, 2, 0, 0),
            pad_edge=False,
            title_justify="left",
            title_style="bold",
        )
        table.title = f"{source}, {dataset}"
        table.add_column("  network", width=28, no_wrap=True)
        for name, width in (("layers", 6), ("parameters", 10), ("MACs", 7)):
            table.add_column(name, width=width, justify="right")
        table.add_column("published %", no_wrap=True)
        for row in group:
            name = f"  {_call(row)}{' *' if row.inferred else ''}"
            table.add_row(name, str(row.layers), f"{row.parameters:,}", _millions(row.multiply_adds), row.published)
        console.print(table, "")
    console.print("MACs: multiply-adds per sample. Accuracies are the published ones, not ours.")
    console.print("* partly inferred: see verydeep models NAME.")


def _millions(number: int) -> str:
    return f"{number / 1e6:,.1f} M"


def _print_network(rows: list[ModelInfo]) -> None:
    import torch

    from verydeep.cli._console import console
    from verydeep.models import create_model

    for row in rows:
        size = f"{row.layers} layers, {row.parameters:,} parameters, {row.multiply_adds:,} multiply-adds"
        console.print(f"{_call(row)}: {size}; {row.dataset}, {row.source}", highlight=False)
        if row.published:
            console.print(f"  published accuracy: {row.published} %", highlight=False)
        if row.inferred:
            console.print(f"  inferred: {row.inferred}", highlight=False)
    with torch.device("meta"):
        console.print(repr(create_model(rows[0].name, **rows[0].overrides)), highlight=False, markup=False)


def _call(row: ModelInfo) -> str:
    return " ".join([row.name, *(f"{key}={value}" for key, value in row.overrides.items())])
