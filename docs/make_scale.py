"""What clusters cost and what kills left, from `benchmarks/results/scale.json` and `scale_kills.json`.

    python docs/make_scale.py

prints the tables, which the page *Clusters* shows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    every = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in every)


def plain(value: float) -> str:
    """Return a number of about two digits.

    >>> plain(0.0123), plain(7.25), plain(123.4), plain(54321)
    ('0.012', '7.2', '123', '54\u202f321')
    """
    if value < 10:
        return f"{value:.2g}"
    return f"{value:,.0f}".replace(",", "\u202f" if value >= 9999.5 else "")


RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"
Row = dict[str, Any]


@cache
def kept(name: str) -> list[Row]:
    return list(json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["rows"])


def ways() -> str:
    names = [name for name in kept("scale")[0] if name not in ("ms an image", "MB of a worker")]
    return table(names, [[str(row[name]) for name in names] for row in kept("scale")])


def kills() -> str:
    [row] = kept("scale_kills")
    return table(["", "number"], [[name, plain(value)] for name, value in row.items()])


PARTS = {"scale_ways": ways, "scale_kills": kills}

if __name__ == "__main__":
    for part in PARTS.values():
        print(part(), end="\n\n")
