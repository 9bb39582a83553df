"""How fast the ledger is, from the table that `benchmarks/ledger.py` kept."""

from __future__ import annotations

import json
from pathlib import Path

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results" / "ledger.json"
CALLERS = ("one caller", "one caller, in two steps", "4 threads", "16 threads", "4 processes", "16 processes")
DATABASES = ("SQLite", "PostgreSQL")
COLUMN = "debits a second, disk"


def rates(path: Path = RESULTS) -> dict[str, dict[str, int]]:
    """Return debits a second on a disk, by database and callers."""
    rows = {row["callers"]: row[COLUMN] for row in json.loads(path.read_text(encoding="utf-8"))["rows"]}
    return {name: {each: rows[f"{name}, {each}"] for each in CALLERS} for name in DATABASES}


def speed() -> str:
    """Return the rates as a table."""
    found = rates()
    lines = [f"| debits a second | {' | '.join(DATABASES)} |", "|---" * 3 + "|"]
    for each in CALLERS:
        lines.append(f"| {each} | {' | '.join(_figure(found[name][each]) for name in DATABASES)} |")
    return "\n".join(lines)


def _figure(value: int) -> str:
    return f"{value:,}".replace(",", "\u202f" if value >= 10_000 else "")
