"""The tables of the papers' experiments that the repository keeps, and the pages about them."""

from __future__ import annotations

import csv
from functools import cache
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "reproduction"
Row = dict[str, str]
DOCS = (ROOT / "packages" / "dpveil-research" / "docs", ROOT / "docs")


@cache
def page(name: str) -> str:
    [path] = [docs / f"{name}.md" for docs in DOCS if (docs / f"{name}.md").exists()]
    return path.read_text(encoding="utf-8")


@cache
def kept_rows(folder: str, table: str = "results") -> tuple[Row, ...]:
    return tuple(read((FOLDER / folder / f"{table}.csv").read_bytes()))


def read(content: bytes) -> list[Row]:
    return list(csv.DictReader(content.decode().splitlines()))


def kept_row(folder: str, table: str = "results", **wanted: str) -> Row:
    """Return the one row that has these values."""
    found = [
        one for one in kept_rows(folder, table) if all(one[name] == value for name, value in wanted.items())
    ]
    assert len(found) == 1, (wanted, len(found))
    return found[0]


def claimed(text: str, claim: str) -> str:
    """Return the line of a page about a claim."""
    (line,) = (one for one in text.splitlines() if one.startswith(f"| {claim} |"))
    return line


Three = tuple[float, float, float]


def ends(row: Row, measure: str) -> Three:
    """Return a mean and both ends of its interval."""
    mean, low, high = (float(row[f"{measure}{end}"]) for end in ("", "_low", "_high"))
    return mean, low, high


def curve(
    folder: str, measure: str, table: str = "results", *, x: str = "x", **wanted: str
) -> dict[float, float]:
    """Return the means of the rows with these values by x; a level line has x = nan."""
    found = [
        row
        for row in kept_rows(folder, table)
        if all(row[n] == v for n, v in wanted.items()) and row[measure]
    ]
    assert found, wanted
    return {float(row[x] or "nan"): float(row[measure]) for row in found}


def signs(folder: str, measure: str, table: str = "differences", **wanted: str) -> dict[float, int]:
    """Return by x whether a difference is surely above (1) or below (-1) zero, or neither (0)."""
    low, high = (curve(folder, f"{measure}_{end}", table, **wanted) for end in ("low", "high"))
    return {x: (low[x] > 0) - (high[x] < 0) for x in low}


def rises(values: dict[float, float]) -> bool:
    """Return whether a curve rises with x at every point."""
    numbers = [values[x] for x in sorted(values)]
    return all(a < b for a, b in pairwise(numbers))


def falls(values: dict[float, float]) -> bool:
    """Return whether a curve falls with x at every point."""
    return rises({x: -value for x, value in values.items()})


def least(values: dict[float, float]) -> float:
    """Return the x of the smallest value."""
    return min(values, key=lambda x: values[x])
