"""The page on evaluating methods: the table of attacks, and the kept run on AT&T."""

from __future__ import annotations

import csv
from pathlib import Path

from dpveil.bench.layouts import LAYOUTS
from dpveil.bench.league import PROMISES, settings_in_words
from dpveil.bench.table import STRONGEST
from dpveil.bench.utility import UTILITIES
from dpveil.core.registry import ATTACKS

RUN = Path(__file__).parent.parent / "benchmarks" / "results" / "evaluate-att"
KEY = ("method", "parameters")


def attacks() -> str:
    """Return the table of attacks."""
    head = "| attack | what it does | reads | needs |\n|---|---|---|---|\n"
    made = (ATTACKS[name]() for name in ATTACKS.rows)
    rows = (
        (f"`{one.name}`", one.summary, ", ".join(one.reads), ", ".join(f"`{extra}`" for extra in one.extras))
        for one in made
    )
    return head + "\n".join(f"| {' | '.join(row)} |" for row in rows)


def layouts() -> str:
    """Return the table of layouts of data sets."""
    head = "| layout | whom a photo shows |\n|---|---|\n"
    return head + "\n".join(f"| {one.name} | {one.identity} |" for one in LAYOUTS)


def measures() -> str:
    """Return the table of what is measured of releases."""
    head = "| measure | unit | better | what it says | needs |\n|---|---|---|---|---|\n"
    rows = (
        (f"`{one.name}`", one.unit, one.better, one.summary, ", ".join(f"`{extra}`" for extra in one.extras))
        for one in UTILITIES.values()
    )
    return head + "\n".join(f"| {' | '.join(row)} |" for row in rows)


def att() -> str:
    """Return the table of the kept run: the strongest attack on each setting, and what is left."""
    table, measures = (_read(RUN / name) for name in ("results.csv", "utility.csv"))
    ssim = {tuple(row[key] for key in KEY): row["mean"] for row in measures if row["measure"] == "ssim"}
    head = "| method | promise | named [95 %] | by | SSIM | bound |\n|---|---|---|---|---|---|\n"
    lines = []
    for row in (one for one in table if one["attack"] == STRONGEST):
        own = [
            one for one in table if all(one[key] == row[key] for key in KEY) and one["attack"] != STRONGEST
        ]
        top = max(own, key=lambda one: float(one["success"]))
        bounds = [float(one["bound"]) for one in own if one["bound"]]
        settings = settings_in_words(row)
        told = f"`{row['method']}`{f' ({settings})' if settings else ''}"
        promise = PROMISES.get(row["kind"], row["kind"]) + (f", {row['relation']}" if row["relation"] else "")
        rate = f"{percent(row['success'])} [{percent(row['low'])}, {percent(row['high'])}]"
        bound = f"{100 * min(bounds):.0f} %" if bounds else ""
        near = f"{float(ssim[tuple(row[key] for key in KEY)]):.2f}"
        lines.append(f"| {told} | {promise} | {rate} | {top['attack']} | {near} | {bound} |")
    return head + "\n".join(lines)


def percent(text: str) -> str:
    """Return a share as a percentage."""
    return f"{100 * float(text):.1f} %"


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
