"""The tables of the papers' experiments that the repository keeps, and the pages about them."""

from __future__ import annotations

import csv
from functools import cache
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
