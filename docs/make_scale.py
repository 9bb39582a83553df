"""What clusters cost and what kills left, from `benchmarks/results/scale.json` and `scale_kills.json`.

    python docs/make_scale.py

prints the tables. The page *Clusters* shows them, and the plot.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from make_plots import INK, LINE, SOFT, WARM, png
from matplotlib.figure import Figure


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table of Markdown."""
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
FAMILIES = {"--jobs": (INK, "s"), "Ray": (LINE, "o")}
Row = dict[str, Any]


@cache
def kept(name: str) -> list[Row]:
    """Return the rows of a kept benchmark."""
    return list(json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["rows"])


def ways() -> str:
    """Return what an image takes, by way and number of workers."""
    names = [name for name in kept("scale")[0] if name not in ("ms an image", "MB of a worker")]
    return table(names, [[str(row[name]) for name in names] for row in kept("scale")])


def kills() -> str:
    """Return what was found after everything was killed."""
    [row] = kept("scale_kills")
    return table(["", "number"], [[name, plain(value)] for name, value in row.items()])


def plot() -> bytes:
    """Return images a second by the number of workers, of both kinds of photos, beside as many times one."""
    kinds = list(dict.fromkeys(row["photos"] for row in kept("scale")))
    figure = Figure(figsize=(7.6, 3.6), dpi=150, layout="constrained")
    for shown, kind in zip(figure.subplots(1, len(kinds)), kinds, strict=True):
        for family, (colour, mark) in FAMILIES.items():
            rows = [row for row in kept("scale") if row["photos"] == kind and row["way"].startswith(family)]
            rate = {int(row["way"].split()[1]): row["images a second"] for row in rows}
            shown.plot(list(rate), list(rate.values()), f"-{mark}", color=colour, lw=2, label=family)
            if family == "Ray":
                shown.plot([1, 2], [rate[1], 2 * rate[1]], "--", color=SOFT, lw=1.2, label="twice one worker")
        shown.axvline(2, color=WARM, lw=0.8, ls=":")
        shown.set(title=f"{kind.partition(',')[0]} pixels", xticks=(1, 2, 3), xlim=(0.8, 3.2))
        shown.set_ylim(bottom=0)
        shown.grid(color="#e4e2dc", lw=0.8)
        shown.spines[["top", "right"]].set_visible(False)
        shown.set_xlabel("workers, on two cores", color=INK)
    figure.axes[0].set_ylabel("images a second", color=INK)
    figure.axes[0].legend(frameon=False, loc="lower right")
    return png(figure)


PARTS = {"scale_ways": ways, "scale_kills": kills}

if __name__ == "__main__":
    for part in PARTS.values():
        print(part(), end="\n\n")
