"""The figures of the page on text are those of the kept benchmark."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "text.md").read_text(encoding="utf-8")
ROWS = json.loads((ROOT / "benchmarks" / "results" / "text_recall.json").read_text(encoding="utf-8"))["rows"]
COLUMNS = (("6", "8", "10", "12"), ("16", "24", "48", "96"), ("10°", "30°"), ("45°", "90°"), ("180°",))
"""Sizes and angles whose lines the page counts together."""


def cell(row: dict[str, str], names: tuple[str, ...]) -> str:
    """Return how many lines were found of how many, over some columns of a row."""
    told = [row[name if "°" in name else f"{name} px"] for name in names]
    counts = [tuple(map(int, each.split("/"))) for each in told if each != "-"]
    return f"{sum(n for n, _ in counts)}/{sum(m for _, m in counts)}" if counts else "–"


def table() -> list[str]:
    """Return the lines of the page's table."""
    cells = [[row["search"], row["text"], *(cell(row, names) for names in COLUMNS)] for row in ROWS]
    return [f"| {' | '.join(each)} |" for each in cells]


def test_the_table_of_the_page_is_what_was_measured() -> None:
    shown = re.findall(r"^\| (?:text|plates|presidio) \| .*$", PAGE, re.MULTILINE)
    assert shown == table()


def test_scenes_without_text_are_told() -> None:
    others = {row["search"]: row["boxes without text"] for row in ROWS}
    assert f"`text` gave {others['text']} boxes, `plates` {others['plates']}" in PAGE.replace("\n", " ")
