"""Results of the papers' experiments, from the tables that `make reproduction` wrote."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).parents[3] / "reproduction"
Row = dict[str, str]


def plots() -> dict[str, bytes]:
    """Return every plot and table by its path within the site."""
    found = sorted((*FOLDER.glob("*/*.png"), *FOLDER.glob("*/*.csv")))
    return {f"{path.parent.name}/{path.name}": path.read_bytes() for path in found}


def rows(paper: str, table: str, **wanted: str) -> list[Row]:
    text = (FOLDER / paper / f"{table}.csv").read_text(encoding="utf-8")
    every = csv.DictReader(text.splitlines())
    return [row for row in every if all(row[name] == value for name, value in wanted.items())]


def interval(row: Row, measure: str) -> str:
    """Return a mean and half the width of its interval, such as `0.123 ± 0.004`."""
    mean, low, high = (float(row[f"{measure}{end}"]) for end in ("", "_low", "_high"))
    digits = 3 if measure == "ssim" else 0
    return f"{mean:.{digits}f} ± {(high - low) / 2:.{digits}f}"


def over_x(name: str, columns: Sequence[tuple[str, Sequence[Row]]], measure: str) -> str:
    """Return a table with a row for every x and a column for every series."""
    xs = list(dict.fromkeys(row["x"] for _, found in columns for row in found))
    lines = [
        "| " + " | ".join([name, *(title for title, _ in columns)]) + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for x in xs:
        cells = [next((interval(row, measure) for row in found if row["x"] == x), "") for _, found in columns]
        lines.append("| " + " | ".join([x, *cells]) + " |")
    return "\n".join(lines)


def defaults(measure: str) -> str:
    """Return Reilly & Fan's methods with the parameters of table I, by ε."""
    found = rows("reilly-fan-2021", "results", sweep="table I over epsilon")
    series = dict.fromkeys(row["series"] for row in found if row["x"])
    columns = [(one, [row for row in found if row["series"] == one and row["x"]]) for one in series]
    return over_x("ε", columns, measure)


def mechanisms(measure: str, first: str, second: str) -> str:
    """Return the difference of two of Croft's mechanisms, blurred, by ε, at every block."""
    columns = []
    for block in ("4", "8", "16"):
        names = (f"{name}, b = {block}, blurred" for name in (first, second))
        pair = dict(zip(("first", "second"), names, strict=True))
        columns.append((f"b = {block}", rows("croft-2022", "differences", **pair)))
    return over_x("ε", columns, measure)


def whole(paper: str, table: str) -> str:
    found = rows(paper, table)
    lines = ["| " + " | ".join(found[0]) + " |", "|---" * len(found[0]) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row.values()) + " |" for row in found)])


PARTS = {
    "errata_e1_ratios": lambda: whole("errata-e1", "log-ratio"),
    "errata_e1_prices": lambda: whole("errata-e1", "price"),
    "half_infinite_errors": lambda: whole("half-infinite", "errors"),
    "reproduced_defaults_ssim": lambda: defaults("ssim"),
    "reproduced_defaults_mse": lambda: defaults("mse"),
    "reproduced_win_ssim": lambda: mechanisms("ssim", "exponential", "Laplace"),
    "reproduced_win_mse": lambda: mechanisms("mse", "exponential", "Laplace"),
    "reproduced_clip_ssim": lambda: mechanisms("ssim", "published exponential", "published, clipped"),
}


def percent(row: Row | None) -> str:
    """Return a row's mean with its interval in per cent, or nothing for None."""
    if row is None:
        return ""
    mean, low, high = (100 * float(row[name]) for name in ("mean", "low", "high"))
    return f"{mean:.1f} ({low:.1f} to {high:.1f})"
