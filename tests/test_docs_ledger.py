"""The ledger reached its goals when its kept benchmark was measured, and its page leads there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GOALS = {"SQLite": 500, "PostgreSQL": 1000}


@pytest.mark.parametrize(("database", "goal"), GOALS.items())
@pytest.mark.parametrize("callers", ["4 threads", "16 threads", "4 processes"])
def test_several_callers_reached_the_goal_when_it_was_measured(
    database: str, goal: int, callers: str
) -> None:
    kept = json.loads((ROOT / "benchmarks" / "results" / "ledger.json").read_text(encoding="utf-8"))["rows"]
    [row] = [row for row in kept if row["callers"] == f"{database}, {callers}"]
    assert row["debits a second, disk"] >= goal


def test_the_page_leads_to_the_figures() -> None:
    page = (ROOT / "docs" / "ledger.md").read_text(encoding="utf-8")
    assert "(benchmarks.md#ledger)" in page
