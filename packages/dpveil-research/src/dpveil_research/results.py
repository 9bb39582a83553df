"""Rows of results: means with the ends of their intervals, and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

Row = dict[str, str]


def columns(measure: str) -> tuple[str, str, str]:
    """Return the column names of a mean and of the ends of its interval."""
    return measure, f"{measure}_low", f"{measure}_high"


def estimate(measure: str, numbers: Sequence[float], form: str = ".6g") -> Row:
    """Return a mean and both ends of its interval as columns.

    >>> estimate("ssim", (0.5, 0.25, 0.75))
    {'ssim': '0.5', 'ssim_low': '0.25', 'ssim_high': '0.75'}
    """
    return {name: f"{value:{form}}" for name, value in zip(columns(measure), numbers, strict=True)}


def to_csv(table: Sequence[Row]) -> bytes:
    """Return the rows as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(table[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return text.getvalue().encode()
