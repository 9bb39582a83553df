"""Preparation of one record's value for a query: missing values are replaced, others clipped.

Every rule looks at one record and public facts only, so that a replaced record changes the answer by at most
the query's sensitivity.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np

from dpveil.core.numbers import Number, exact, show
from dpveil.errors import DataError, InvalidParameter
from dpveil.mechanisms.scalar import Range

MISSING: Final = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
"""Texts that mean a missing value, in any case."""
NAMED: Final = 10
"""Row numbers that an error lists at most."""


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


def listed(values: Iterable[Any]) -> list[Any]:
    """Return the values of a column as a list, one per row. Raises `InvalidParameter` for anything else."""
    kind = getattr(getattr(values, "dtype", None), "kind", "")
    given = values.tolist() if hasattr(values, "tolist") else values
    if isinstance(given, str | bytes | dict | set | frozenset) or not isinstance(given, Iterable):
        raise InvalidParameter(
            "values", type(values).__name__, "is not a column", hint="give a list of values"
        )
    if kind in ("M", "m"):  # tolist() makes numbers of some dates
        raise InvalidParameter(
            "values", None, "are dates or times", hint="give numbers, such as days or years"
        )
    found = list(given)
    if not found:
        raise InvalidParameter("values", None, "are none", hint="give at least one row")
    if any(
        isinstance(value, (list, tuple, dict, set, np.ndarray)) and value is not np.ma.masked
        for value in found
    ):
        raise InvalidParameter("values", None, "are not a column", hint="give one value for each row")
    return found


def bounds(allowed: Any) -> Range:
    """Return the public range of a column's values. Raises `InvalidParameter` unless it has two ends and no
    gaps.
    """
    given = Range.of(allowed)
    if not given.finite or given.gaps:
        raise InvalidParameter(
            "range",
            str(given),
            "does not bound the values" if not given.finite else "has gaps, which values may lie in",
            hint="give both ends, from what is publicly known and never from the data, such as 0:120",
        )
    return given


def clipped(values: Sequence[Any], allowed: Range, stand_in: Number | None) -> list[Fraction]:
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
