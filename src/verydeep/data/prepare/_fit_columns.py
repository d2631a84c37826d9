"""Deciding from the training rows what each column of a table is, and fitting its encoding."""

import re
from typing import Literal

import numpy as np

from verydeep.data._config import DataConfig
from verydeep.data.own._table import Table
from verydeep.data.own._text_column import TextColumn
from verydeep.data.own._written import (
    DATE_FORMS,
    Form,
    has_decimal_comma,
    is_ambiguous_date,
    is_ambiguous_group,
    parse_all,
    parse_number,
    recognise,
)
from verydeep.data.prepare._columns import (
    PERIODS,
    CategoryColumn,
    DateColumn,
    IgnoredColumn,
    NumberColumn,
    TablePreparation,
    raise_all,
)
from verydeep.errors import UserError, shorten

_MAX_CATEGORIES = 1000
_FEW_ROWS = 10  # in fewer rows, different values are no sign of an identifier
_ROW_NUMBERS = 100  # in fewer rows, consecutive numbers may well be measured
_ID_NAME = re.compile(r"(?i:(^|.*[^a-z])(id|uuid|guid|index|row))|.*[a-z](Id|ID)")

Kind = Form | Literal["category"] | IgnoredColumn


def fit_table(train: Table, config: DataConfig) -> TablePreparation:
    """Decide what each column is and fit its encoding to the training rows; one error names all unusable columns."""
    if config.preprocess not in ("paper", "standardise", "none"):
        raise UserError(
            f"{train.path}: data.preprocess = '{config.preprocess}' is for images; a table can be standardised"
        )
    kinds: dict[str, Kind] = {}
    errors = []
    for name in train.columns:
        try:
            kinds[name] = _kind_of(train, name, config)
        except UserError as error:
            errors.append(error)
    raise_all(train, errors)
    ignored = tuple(kind for kind in kinds.values() if isinstance(kind, IgnoredColumn))
    if len(ignored) == len(kinds):
        reasons = "; ".join(f"column {column.name!r}: {column.reason}" for column in ignored[:5])
        raise UserError(f"{train.path}: no columns left to learn from: {reasons}")
    forms: dict[str, Form] = {n: k for n, k in kinds.items() if not isinstance(k, IgnoredColumn) and k != "category"}
    numbers = {name: form for name, form in forms.items() if form not in DATE_FORMS}
    dates = {name: form for name, form in forms.items() if form in DATE_FORMS}
    standardise = config.preprocess != "none"
    return TablePreparation(
        _fit_numbers(train, numbers, standardise),
        tuple(_fit_category(train, name) for name, kind in kinds.items() if kind == "category"),
        tuple(_fit_date(train, name, form, standardise) for name, form in dates.items()),
        ignored,
    )


def _kind_of(train: Table, name: str, config: DataConfig) -> Kind:
    column = train.cells(name)
    if name in config.categorical or (isinstance(column, TextColumn) and column.is_category):
        return _declared_category(train, name)
    if isinstance(column, TextColumn):
        form = recognise(column.distinct, column.decimal, config.date_order)
    else:
        form = "iso date" if column.dtype.kind == "M" else "number"
    if name in config.numeric:
        if form is None or form in DATE_FORMS:
            train.numbers(name)  # raises at the first cell that is not a number
        return form or "number"
    if form is None and isinstance(column, TextColumn) and column.distinct:
        return _kind_of_words(train, name, column, config)
    form = form or "number"  # also without any values
    return _useless(train, name, train.numbers(name, form), form) or form


def _declared_category(train: Table, name: str) -> Kind:
    count = len(set(train.as_text(name).distinct))
    if count > _MAX_CATEGORIES:
        raise UserError(
            f"{train.path}: column {name!r} has {count} different values, too many for categories; "
            "list it in data.ignore if it is free text or an identifier"
        )
    return "category" if count else IgnoredColumn(name, "no values in the training rows")


def _useless(train: Table, name: str, values: np.ndarray, form: Form) -> IgnoredColumn | None:
    """Why nothing can be learnt from a column of numbers or dates, if so."""
    missing = np.isnan(values)
    present = values[~missing]
    if not len(present):
        return IgnoredColumn(name, "no values in the training rows")
    if (present == present[0]).all() and not missing.any():
        return IgnoredColumn(name, f"the same value, {train.text(name)[0][:60]}, in all training rows")
    if form != "number" or values[0] % 1 != 0:
        return None
    override = f"to use it, list it in data.numeric: [{name!r}]"
    if len(values) >= _ROW_NUMBERS and (values - train.rows == values[0] - train.rows[0]).all():
        return IgnoredColumn(name, f"row numbers; {override}")
    if len(values) >= _FEW_ROWS and _ID_NAME.fullmatch(name) and _all_distinct_integers(values):
        return IgnoredColumn(name, f"an identifier, different in every row; {override}")
    return None


def _all_distinct_integers(values: np.ndarray) -> bool:
    return not (values % 1).any() and len(np.unique(values)) == len(values)


def _kind_of_words(train: Table, name: str, column: TextColumn, config: DataConfig) -> Kind:
    """What a column is that holds neither numbers nor dates, or the error if it was probably meant to."""
    distinct = column.distinct
    wrong = _not_quite_numbers(train, name, column, config)
    if wrong is not None:
        raise wrong
    present = int(column.counts.sum())
    if len(distinct) == 1 and present == len(train):
        return IgnoredColumn(name, f"the same value, {shorten(distinct[0])}, in all training rows")
    if len(distinct) == present >= _FEW_ROWS:
        return IgnoredColumn(
            name, f"text that is different in every row; to use it, list it in data.categorical: [{name!r}]"
        )
    if len(distinct) > _MAX_CATEGORIES:
        return IgnoredColumn(name, f"text with {len(distinct):,} different values, too many for categories")
    return "category"


def _not_quite_numbers(train: Table, name: str, column: TextColumn, config: DataConfig) -> UserError | None:
    """The error for a column that was probably meant to hold numbers or dates."""
    place, distinct = f"{train.path}: column {name!r}", column.distinct
    example = shorten(distinct[0])
    if column.decimal == "." and parse_all(distinct, "grouped") is not None and is_ambiguous_group(distinct):
        found = next(value for value in distinct if "," in value)
        return UserError(
            f"{place}: {shorten(found)} may have a thousands separator or a decimal comma; write it without the "
            "separator, or set data.decimal = ','"
        )
    if column.decimal == "." and has_decimal_comma(distinct):
        found = next(value for value in distinct if "," in value)
        return UserError(f"{place}: {shorten(found)} has a decimal comma; set data.decimal = ','")
    if column.decimal == "," and parse_all(distinct, "number") is not None:
        return UserError(f"{place}: {example} has a decimal point; leave data.decimal out, or write a comma")
    if is_ambiguous_date(distinct, config.date_order):
        return UserError(
            f"{place}: {example} may have the day or the month first; set data.date_order = 'day' or 'month'"
        )
    numbers = [parse_number(value, column.decimal) is not None for value in column.values]
    is_number, is_word = column.expand(numbers, False, bool), column.expand(~np.array(numbers), False, bool)
    identifiers = len(distinct) == column.counts.sum() >= _FEW_ROWS and 2 * is_number.sum() < len(is_number)
    if not is_number.any() or identifiers:
        return None
    word, number = int(np.flatnonzero(is_word)[0]), int(np.flatnonzero(is_number)[0])
    cells = column.text()
    return UserError(
        f"{train.place(word, name)}: {shorten(cells[word])} is not a number, but {train.row(number)} "
        f"holds {shorten(cells[number])}; correct it, or list the column in data.categorical"
    )


def _fit_numbers(train: Table, forms: dict[str, Form], standardise: bool) -> tuple[NumberColumn, ...]:
    if not forms:
        return ()
    values = np.stack([train.numbers(name, form) for name, form in forms.items()], axis=1)
    missing = np.isnan(values)
    gaps = missing.any(axis=0)
    fills = [_median(column, gap) for column, gap in zip(values.T, gaps, strict=True)]
    np.copyto(values, fills, where=missing)
    means, deviations = _standard(values) if standardise else (np.zeros(len(forms)), np.ones(len(forms)))
    fitted = zip(forms.items(), fills, means.tolist(), deviations.tolist(), gaps.tolist(), strict=True)
    return tuple(NumberColumn(name, fill, mean, dev, form, gap) for (name, form), fill, mean, dev, gap in fitted)


def _fit_date(train: Table, name: str, form: Form, standardise: bool) -> DateColumn:
    days = train.numbers(name, form)
    missing = np.isnan(days)
    fill = _median(days, bool(missing.any()))
    means, deviations = _standard(np.where(missing, fill, days)[:, None])
    present = days[~missing]
    covered = [cycle for cycle, period in PERIODS.items() if np.ptp(present) >= period]
    cycles = [cycle for cycle in covered if cycle != "day" or np.ptp(present % 1) > 0]
    mean, deviation = (float(means[0]), float(deviations[0])) if standardise else (0.0, 1.0)
    return DateColumn(name, fill, mean, deviation, form, tuple(cycles), bool(missing.any()))


def _fit_category(train: Table, name: str) -> CategoryColumn:
    column = train.as_text(name)
    counts: dict[str, int] = {}
    for value, count in zip(column.normalised, column.counts.tolist(), strict=True):
        if count:
            counts[value] = counts.get(value, 0) + count
    most = max(counts.values())
    fill = min(value for value, count in counts.items() if count == most)
    return CategoryColumn(name, fill, tuple(sorted(counts)), bool((column.codes < 0).any()))


def _median(values: np.ndarray, gaps: bool) -> float:
    return float(np.median(values[~np.isnan(values)] if gaps else values))


def _standard(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean and the standard deviation of each column; 1 for constant ones."""
    from sklearn.preprocessing import StandardScaler  # type: ignore[import-untyped]

    scaler = StandardScaler().fit(values)
    return scaler.mean_, scaler.scale_
