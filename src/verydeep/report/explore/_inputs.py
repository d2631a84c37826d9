"""What the page needs to know about inputs: raw samples, how they are shown, and how they are prepared."""

from base64 import b64encode
from typing import Any

import numpy as np
import torch
from torch import Tensor

from verydeep.data import (
    PERIODS,
    ArrayPreparation,
    CategoryColumn,
    DateColumn,
    NumberColumn,
    Table,
    TablePreparation,
    contrast_factor,
)
from verydeep.errors import UserError
from verydeep.report.explore._ink import describe_ink

_FEW_LEVELS = 64  # grey levels of small integers, such as scikit-learn's digits, are not out of 255


def describe_inputs(
    preparation: ArrayPreparation | TablePreparation | None, raw: Tensor | Table, x: Tensor, whole: Tensor | Table
) -> dict[str, Any]:
    """Describe raw samples and their preparation, as plain values.

    Args:
        preparation: How the network's inputs are prepared.
        raw: The samples of the page, as they were read.
        x: The same samples, prepared.
        whole: All samples they were drawn from, for the ranges of fields.
    """
    if preparation is None:
        raise UserError("the run was trained on tensors given in Python, so the page could not prepare its input")
    if isinstance(preparation, TablePreparation):
        assert isinstance(raw, Table)
        assert isinstance(whole, Table)
        columns = [_column(column, whole) for column in preparation.columns]
        rows = [_cells(column, raw) for column in preparation.columns]
        return {"kind": "row", "columns": columns, "rows": [list(row) for row in zip(*rows, strict=True)]}
    assert isinstance(raw, Tensor)
    assert isinstance(whole, Tensor)
    if len(preparation.shape) == 1:
        return _describe_vector(preparation, raw, x)
    return _describe_image(preparation, raw, x)


def encode(values: np.ndarray) -> str:
    """Encode an array as base64 text."""
    return b64encode(np.ascontiguousarray(values).tobytes()).decode()


def _column(column: NumberColumn | CategoryColumn | DateColumn, whole: Table) -> dict[str, Any]:
    common: dict[str, Any] = {"name": column.name, "fill": column.fill, "gaps": column.gaps}
    if isinstance(column, CategoryColumn):
        return common | {"kind": "category", "values": column.values}
    values = whole.numbers(column.name, column.form)
    common |= {"mean": column.mean, "deviation": column.deviation, **_range(values, column.fill)}
    if isinstance(column, DateColumn):
        return common | {"kind": "date", "periods": [PERIODS[cycle] for cycle in column.cycles]}
    return common | {"kind": "boolean" if column.form == "boolean" else "number", "percent": column.form == "percent"}


def _range(values: np.ndarray, fill: float) -> dict[str, Any]:
    there = values[np.isfinite(values)]
    there = there if len(there) else np.array([fill])
    return {"low": float(there.min()), "high": float(there.max()), "whole": bool((there % 1 == 0).all())}


def _cells(column: NumberColumn | CategoryColumn | DateColumn, table: Table) -> list[Any]:
    if isinstance(column, CategoryColumn):
        cells = table.as_text(column.name)
        return list(cells.expand(cells.normalised, None, object))
    return [None if np.isnan(v) else v for v in table.numbers(column.name, column.form).tolist()]


def _describe_vector(preparation: ArrayPreparation, raw: Tensor, x: Tensor) -> dict[str, Any]:
    """A vector of numbers: a row whose columns have numbers for names."""
    values = raw.double().numpy()
    mean, deviation = preparation.mean or (0.0,), preparation.deviation or (1.0,)
    full = preparation.full or 1.0
    columns = []
    for i in range(preparation.shape[0]):
        spread = _range(values[:, i], 0.0)
        centre, scale = mean[i % len(mean)] * full, deviation[i % len(deviation)] * full
        fitted = {"mean": centre, "deviation": scale, "fill": float(np.median(values[:, i])), "gaps": False}
        columns.append({"kind": "number", "name": f"value {i + 1}", "percent": False, **fitted, **spread})
    rows = [[float(f"{value:.9g}") for value in row] for row in values]  # nine digits are exact for float32
    found: dict[str, Any] = {"kind": "row", "columns": columns, "rows": rows}
    if preparation.contrast or preparation.whitening:
        found |= _only_prepared(x, "its values are normalised together")
    return found


def _describe_image(preparation: ArrayPreparation, raw: Tensor, x: Tensor) -> dict[str, Any]:
    shape = preparation.shape if len(preparation.shape) == 3 else (1, *preparation.shape[-2:])
    pixels = raw.numpy()
    if raw.dtype == torch.uint8:
        white = 255.0 if pixels.max(initial=0) > _FEW_LEVELS else float(max(pixels.max(initial=0), 1))
        black, values = 0.0, pixels
    else:
        values = pixels.astype("<f4")
        black, white = float(values.min(initial=0)), float(values.max(initial=1))
    found: dict[str, Any] = {
        "kind": "image",
        "shape": shape,
        "black": black,
        "white": white,
        "bytes": raw.dtype == torch.uint8,
        "pixels": encode(values),
        "full": preparation.full,
        "contrast": preparation.contrast,
        "factor": None
        if preparation.contrast_norm is None
        else contrast_factor(preparation.contrast_norm, preparation.shape),
        "mean": encode(np.array(preparation.mean, "<f8")),
        "deviation": encode(np.array(preparation.deviation, "<f8")),
        "ink": describe_ink(pixels.reshape(-1, *shape), black, white) if shape[0] == 1 else None,
    }
    if preparation.whitening:
        found |= _only_prepared(x, "its images are whitened, by a matrix that is too large for this page")
    elif len(preparation.shape) > 3 or np.prod(preparation.shape) != np.prod(shape):
        found |= _only_prepared(x, f"its samples have the shape {preparation.shape}")
    return found


def _only_prepared(x: Tensor, reason: str) -> dict[str, Any]:
    """The prepared samples themselves, for a preparation that the page cannot do."""
    return {"prepared": encode(x.float().numpy().astype("<f4")), "refused": reason}
