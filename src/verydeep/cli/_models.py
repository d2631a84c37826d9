from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import tyro

if TYPE_CHECKING:
    from verydeep.models import ModelInfo


@dataclass(frozen=True)
class Models:
    """List every network that can be created by name, or show one of them layer by layer."""

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
    tyro.cli(Models, prog="verydeep models", args=arguments).run()


def _named(name: str, rows: list[ModelInfo]) -> list[ModelInfo]:
    from verydeep.errors import unknown

    found = [row for row in rows if row.name == name]
    if not found:
        raise unknown("model", name, {row.name for row in rows})
    return found


def _print_table(rows: list[ModelInfo]) -> None:
    from rich.table import Table

    from verydeep.cli._console import console

    table = Table("network", "layers", "parameters", "multiply-adds", "set", "published accuracy %", "source")
    for column in table.columns[1:4]:
        column.justify = "right"
    for row in rows:
        mark = " *" if row.inferred else ""
        table.add_row(
            _call(row),
            str(row.layers),
            f"{row.parameters:,}",
            f"{row.multiply_adds:,}",
            row.dataset,
            row.published,
            row.source + mark,
        )
    console.print(table)
    console.print("* partly inferred; verydeep models NAME says what. Accuracies are the publications', not ours.")


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
