"""What the service's page says was tried: figures of the kept soak, and of `make fuzz-service`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import kill_service

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "service.md").read_text(encoding="utf-8").partition("## What was tried")[2]


def kept() -> dict[str, Any]:
    text = (ROOT / "benchmarks" / "results" / "service_soak.json").read_text(encoding="utf-8")
    return json.loads(text)


def plain(text: str) -> str:
    return re.sub(r"[\u202f\s]+", " ", re.sub(r"(?<=\d)\u202f(?=\d)", "", text))


def test_the_soak_lost_nothing_and_is_the_one_that_the_page_tells_of() -> None:
    record = kept()
    rows, notes = record["rows"], record["notes"]
    half = rows[len(rows) // 2 :]
    assert "0 lost, 0 unpaid" in notes
    made = re.search(r"^(\d+) debits, (\d+) files$", "\n".join(notes), re.MULTILINE)
    assert made
    assert made[1] == made[2]
    assert f"{made[1]} releases in {rows[-1]['minute']:.0f} minutes" in plain(PAGE)
    for name in ("server", "workers"):
        least = [row[f"{name} MiB, least"] for row in half]
        assert f"{min(least):.0f} to {max(least):.0f} MiB" in plain(PAGE)
    assert {row["open files"] for row in half} == {half[0]["open files"]}


def test_the_page_and_make_try_as_much() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    files, rounds = (
        re.search(rf"--{name} (\d+)$", made, re.MULTILINE)
        for name, made in (
            ("files", makefile[makefile.index("fuzz_service.py") :]),
            ("rounds", makefile),
        )
    )
    assert files
    assert rounds
    keys = int(rounds[1]) * kill_service.CLIENTS * kill_service.EACH
    assert f"- {files[1]} damaged uploads" in plain(PAGE).replace(" - ", "\n- ")
    assert f"in {rounds[1]} rounds" in plain(PAGE)
    assert f"{keys} releases and retried" in plain(PAGE)
