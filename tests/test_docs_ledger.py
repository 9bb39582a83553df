"""The page of the ledger says how fast it is from the table that its benchmark kept."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
GOALS = {"SQLite": 500, "PostgreSQL": 1000}


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return importlib.import_module("make_ledger")


def test_the_page_has_every_rate_that_was_kept(page: Any) -> None:
    kept = json.loads((ROOT / "benchmarks" / "results" / "ledger.json").read_text(encoding="utf-8"))["rows"]
    table = [line.strip("| ").split(" | ") for line in page.speed().splitlines()]
    assert table[0][1:] == ["SQLite", "PostgreSQL"]
    for line in table[2:]:
        for database, figure in zip(table[0][1:], line[1:], strict=True):
            [row] = [row for row in kept if row["callers"] == f"{database}, {line[0]}"]
            assert int(figure.replace("\u202f", "")) == row["debits a second, disk"]
    assert len(table) == 2 + 6
    assert "{{ ledger_speed }}" in (ROOT / "docs" / "ledger.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("database", "goal"), GOALS.items())
def test_several_callers_reached_the_goal_when_it_was_measured(page: Any, database: str, goal: int) -> None:
    rates = page.rates()[database]
    assert all(rates[callers] >= goal for callers in ("4 threads", "16 threads", "4 processes"))
