"""Columns of tables: read from CSV files, and as exact numbers within a public range.

What is wrong with a value is told in the private part of an error alone, as it is about the data.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np

from dpveil.core.guarantee import count_noun
from dpveil.core.rationals import Number, exact, show
from dpveil.errors import DataError, InvalidParameter, suggestion
from dpveil.mechanisms.scalar import Range

MISSING: Final = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
"""Texts that mean a missing value, in any case."""
NAMED: Final = 10  # row numbers that an error lists at most


def column(path: Path | str, name: str, *, delimiter: str = ",") -> list[str]:
    """Return the texts of one column of a UTF-8 CSV file, one per row under the header line.

    Empty lines are skipped, except in a table with one column, where they are missing values. Raises
    `DataError` if the file cannot be read or contains no table, and `InvalidParameter` for a name that is not
    in its header and for a bad delimiter.
    """
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise InvalidParameter("delimiter", delimiter, "is not one character", hint="such as , or ;")
    file = " ".join(str(path).split())
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as text:
            header, *lines = list(csv.reader(text, delimiter=delimiter, strict=True)) or [[]]
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror or 'no file'}") from None
    except UnicodeDecodeError:
        raise DataError(f"{file} is not text in UTF-8", hint="save it as CSV in UTF-8") from None
    except csv.Error as error:
        raise DataError(f"{file} is not a CSV table", private=f"{file}: {error}") from None
    titles = [title.strip() for title in header]
    rows = [line for line in lines if line or len(titles) == 1]
    if not any(titles) or not rows:
        raise DataError(f"{file} has no {'rows under its header' if any(titles) else 'header line'}")
    if (count := titles.count(name.strip())) != 1:
        problem = "is the name of several columns" if count else "is not in the table"
        hint = f"{suggestion(name, titles)}it has {', '.join(titles)}, parted by {delimiter!r}"
        raise InvalidParameter("column", name, problem, hint=hint)
    for number_, row in enumerate(rows, 1):
        if row and len(row) != len(titles):
            raise DataError(
                f"{file} is not a table: not every row has as many cells as the header, {len(titles)}",
                hint="quote cells that hold the delimiter, or give {delimiter}",
                arguments={"delimiter": "delimiter="},
                private=f"{file}: row {number_} under the header has {count_noun(len(row), 'cell')}",
            )
    return [row[titles.index(name.strip())].strip() if row else "" for row in rows]


def is_missing(value: Any) -> bool:
    """Return whether a value is missing: None, NaN, NA, masked, or one of the texts in `MISSING`."""
    if isinstance(value, str):
        return value.strip().lower() in MISSING
    if value is None or value is np.ma.masked:
        return True
    try:
        return bool(value != value)
    except (TypeError, ArithmeticError):  # pandas' NA and a signalling NaN cannot be compared
        return True


def as_list(values: Iterable[Any]) -> list[Any]:
    """Return the values of a column as a list, one per row. Raises `InvalidParameter` for anything else."""
    given = values.tolist() if hasattr(values, "tolist") else values
    plain = isinstance(given, Iterable) and not isinstance(given, str | bytes | dict | set | frozenset)
    if not plain:
        raise InvalidParameter("values", type(values).__name__, "is not a column", hint="give a list")
    found = list(given)
    if getattr(getattr(values, "dtype", None), "kind", "") in ("M", "m"):  # tolist() makes numbers of dates
        raise InvalidParameter("values", None, "are dates or times", hint="give numbers, such as days")
    if not found:
        raise InvalidParameter("values", None, "are none", hint="give at least one row")
    if any(isinstance(v, list | tuple | dict | set | np.ndarray) and v is not np.ma.masked for v in found):
        raise InvalidParameter("values", None, "are not a column", hint="give one value for each row")
    return found


def bounds(allowed: Any) -> Range:
    """Return the public range of a column. Raises `InvalidParameter` unless it has two ends and no gaps."""
    given = Range.of(allowed)
    if not given.finite or given.gaps:
        raise InvalidParameter(
            "range",
            str(given),
            "does not bound the values" if not given.finite else "has gaps, which values may lie in",
            hint="give both ends, from what is publicly known and never from the data, such as 0:120",
        )
    return given


def clip_values(values: Sequence[Any], allowed: Range, stand_in: Number | None) -> list[Fraction]:
    """Return every row's number, clipped to the range; missing ones become `stand_in`.

    Raises `DataError` for missing values without a stand-in and for values that are not numbers, naming the
    rows only in its private part; `InvalidParameter` for a stand-in out of range.
    """
    low, high = allowed.low, allowed.high
    if low is None or high is None:
        raise InvalidParameter("range", str(allowed), "has no end", hint="give both ends")
    instead = None if stand_in is None else exact(stand_in, "missing")
    if instead is not None and instead not in allowed:
        raise InvalidParameter(
            "missing",
            show(instead),
            f"is not in the range {allowed}",
            hint=f"such as {show((low + high) / 2)}",
        )
    gone = [row for row, value in enumerate(values, 1) if is_missing(value)]
    if gone and instead is None:
        raise DataError(
            "values are missing",
            hint="say what they count as, a public number in the range, with {missing}",
            arguments={"missing": "missing="},
            private=f"missing in {_rows(gone)} of {len(values)}",
        )
    numbers = [instead if is_missing(value) else number(value, row) for row, value in enumerate(values, 1)]
    return [min(max(one, low), high) for one in numbers if one is not None]


def number(value: Any, row: int) -> Fraction:
    """Return one row's number, exactly. Raises `DataError` for anything else, infinities included."""
    try:
        return exact(value)
    except InvalidParameter:
        raise DataError(
            "a value is not a number",
            hint="numbers are written as 12, 0.5, 1e-3 or 1/3, without thousands separators",
            private=f"row {row} holds {str(value)[:40]!r}",
        ) from None


def _rows(rows: Sequence[int]) -> str:
    more = f" and {len(rows) - NAMED} more" if len(rows) > NAMED else ""
    return f"row{'s' * (len(rows) > 1)} " + ", ".join(map(str, rows[:NAMED])) + more
