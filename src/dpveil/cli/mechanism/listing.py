"""`dpveil mechanism list`: the available mechanisms."""

from __future__ import annotations

from typing import Any

from dpveil.cli import say
from dpveil.cli.options import AsJson


def list_command(json: AsJson = False) -> int:
    """List every mechanism for numbers: what it does, what it can promise, and where it comes from.

    \b
    Example:
      dpveil mechanism list
    """
    from dpveil.mechanisms.scalar import TABLE

    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "relations": list(kind.relations),
            "both_ends": kind.finite_only,
            "summary": kind.summary,
            "source": kind.source,
        }
        for name, kind in TABLE.items()
    ]
    if json:
        say.document({"mechanisms": rows})
        return 0
    for row in rows:
        ends = "a range with both ends" if row["both_ends"] else "any range"
        say.answer(f"{row['name']}  {row['summary']}")
        say.answer(f"    takes: {ends}; holds: {' or '.join(row['relations'])}")
        say.answer(f"    source: {row['source']}")
    return 0
