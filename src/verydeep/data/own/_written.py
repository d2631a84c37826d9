"""How the cells of a column are written: as numbers, percentages, dates or words.

One function, `recognise`, decides this from the distinct texts of a column, so it does not matter which reader split
the file into cells, nor how often a value occurs.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Literal

import numpy as np

MISSING = {"", "na", "n/a", "nan", "null", "?"}
"""Cells without a value, in lower case."""

Form = Literal["number", "grouped", "percent", "boolean", "iso date", "day-first date", "month-first date"]
"""How the values of a numeric or date column are written; `grouped` numbers have thousands separators."""

DATE_FORMS: tuple[Form, ...] = ("iso date", "day-first date", "month-first date")
DateOrder = Literal["day", "month"]

_BOOLEANS = {"false": 0.0, "true": 1.0}
_GROUPED = {".": re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?"), ",": re.compile(r"[+-]?\d{1,3}(\.\d{3})+(,\d*)?")}
_TIME = r"(?:[T ](\d\d?):(\d\d)(?::(\d\d)(\.\d+)?)?(?: ?([AaPp])[Mm])?(Z|[+-]\d\d:?\d\d)?)?"
_ISO = re.compile(r"(\d{4})([-/.])(\d\d?)\2(\d\d?)" + _TIME)
_NUMERIC = re.compile(r"(\d\d?)([-/.])(\d\d?)\2(\d{4})" + _TIME)
_DAY_NAME = re.compile(r"(\d\d?)[ .-]*([A-Za-z]{3,9})\.?[ ,-]*(\d{4})" + _TIME)
_NAME_DAY = re.compile(r"([A-Za-z]{3,9})\.?[ -]*(\d\d?),?[ -]+(\d{4})" + _TIME)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FULL_MONTHS = (
    *("january", "february", "march", "april", "june", "july", "august"),
    *("september", "october", "november", "december", "sept"),
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_cell(text: str) -> str | None:
    """The text of a cell without surrounding blanks; None if it is missing."""
    stripped = text.strip()
    return None if len(stripped) < 5 and stripped.lower() in MISSING else stripped


def parse_number(text: str, decimal: str = ".") -> float | None:
    """The value of a plain number, None for other text; 1_000 is text, although Python's `float` accepts it."""
    if "_" in text:
        return None
    if decimal == ",":
        if "." in text:
            return None
        text = text.replace(",", ".")
    try:
        return float(text)
    except ValueError:
        return None


def parse(text: str, form: Form, decimal: str = ".") -> float | None:
    """The value of a cell that is written in a form; None if it is not. Dates are days since 1970-01-01."""
    if form == "number":
        return parse_number(text, decimal)
    if form == "boolean":
        return _BOOLEANS.get(text.lower())
    if form == "percent":
        return parse_number(text[:-1].rstrip(), decimal) if text.endswith("%") else None
    if form == "grouped":
        if _GROUPED[decimal].fullmatch(text):
            text = text.replace("," if decimal == "." else ".", "")
        return parse_number(text, decimal)
    return _parse_date(text, form)


def parse_all(texts: Sequence[str], form: Form, decimal: str = ".") -> np.ndarray | None:
    """The values of all cells, float64; None if any of them is not written in this form."""
    if form == "number" and decimal == ".":
        return plain_numbers(texts)
    values = np.empty(len(texts))
    for i, text in enumerate(texts):
        value = parse(text, form, decimal)
        if value is None:
            return None
        values[i] = value
    return values


def plain_numbers(texts: Sequence[str]) -> np.ndarray | None:
    """All texts as float64, the fast way; None if any is not a plain number."""
    try:
        numbers = np.fromiter(map(float, texts), np.float64, len(texts))
    except ValueError:
        return None
    return None if "_" in "".join(texts) else numbers


def recognise(texts: Sequence[str], decimal: str = ".", order: DateOrder | None = None) -> Form | None:
    """How the distinct values of a column are written; None for words. Dates whose order is unclear are words too."""
    if not texts:
        return None
    forms: Iterable[Form] = ("number", "boolean", "percent", *_date_forms(order))
    for form in forms:
        if parse(texts[0], form, decimal) is not None and parse_all(texts, form, decimal) is not None:
            return form if form not in DATE_FORMS or not is_ambiguous_date(texts, order) else None
    if parse_all(texts, "grouped", decimal) is not None and not is_ambiguous_group(texts, decimal):
        return "grouped"
    return None


def is_ambiguous_group(texts: Iterable[str], decimal: str = ".") -> bool:
    """Whether a separator before three digits may as well be the decimal one: 1,234 may, 1,234.5 and 1,234,567 not."""
    separators = [sum(text.count(mark) for mark in ".,") for text in texts if _GROUPED[decimal].fullmatch(text)]
    return bool(separators) and max(separators) < 2


def is_ambiguous_date(texts: Sequence[str], order: DateOrder | None = None) -> bool:
    """Whether all values are dates both with the day and with the month first, such as 3/4/2020."""
    day, month = (parse_all(texts, form) for form in DATE_FORMS[1:])
    return order is None and day is not None and month is not None and not np.array_equal(day, month)


def has_decimal_comma(texts: Iterable[str]) -> bool:
    """Whether all values are numbers if a comma is read as the decimal point, and some have one."""
    listed = list(texts)
    return any("," in text for text in listed) and all(parse_number(text, ",") is not None for text in listed)


def _date_forms(order: DateOrder | None) -> tuple[Form, ...]:
    return ("iso date", *(form for form in DATE_FORMS[1:] if order is None or form.startswith(order)))


def _parse_date(text: str, form: Form) -> float | None:
    if form == "iso date":
        match = _ISO.fullmatch(text)
        return _days(match, 1, 3, 4, 5) if match else None
    match = _NUMERIC.fullmatch(text)
    if match:
        if match[2] == "." and form != "day-first date":  # 3.4.2020 always has the day first
            return None
        return _days(match, 4, 3, 1, 5) if form == "day-first date" else _days(match, 4, 1, 3, 5)
    match = _DAY_NAME.fullmatch(text)
    if match:
        return _days(match, 3, 2, 1, 4)
    match = _NAME_DAY.fullmatch(text)
    return _days(match, 3, 1, 2, 4) if match else None


def _days(match: re.Match[str], year: int, month: int, day: int, time: int) -> float | None:
    """Days since 1970 of a matched date; each number is that of a group, `time` the first of six."""
    name = match[month].lower()
    number = int(name) if name.isdigit() else _month_number(name)
    hour, minute, second, fraction, half, zone = match.groups()[time - 1 : time + 5]
    hours = int(hour or 0)
    if half is not None:
        if not 1 <= hours <= 12:
            return None
        hours = hours % 12 + (12 if half in "pP" else 0)
    try:
        moment = datetime(
            int(match[year]), number, int(match[day]), hours, int(minute or 0), int(second or 0), tzinfo=UTC
        )
    except ValueError:
        return None
    seconds = (moment - _EPOCH).total_seconds() + float(fraction or 0)
    if zone not in (None, "Z"):
        minutes = int(zone[1:3]) * 60 + int(zone[-2:])
        seconds -= 60 * minutes * (-1 if zone[0] == "-" else 1)
    return seconds / 86_400


def _month_number(name: str) -> int:
    return _MONTHS.index(name[:3]) + 1 if name in _MONTHS or name in _FULL_MONTHS else 0
