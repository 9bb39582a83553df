"""The page on evaluating methods: the table of attacks, and the kept run on AT&T."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from PIL import Image

from dpveil.bench.bounds import up
from dpveil.bench.dataset_layouts import LAYOUTS
from dpveil.bench.league import PROMISES, settings_in_words
from dpveil.bench.synthetic_photos import DRAWN, DrawnItem
from dpveil.bench.table import STRONGEST
from dpveil.bench.utility import UTILITIES
from dpveil.core.rationals import exact
from dpveil.core.registry import ATTACKS

RUN = Path(__file__).parent.parent / "benchmarks" / "results" / "evaluate-att"
STRENGTH = RUN.parent / "attack_strength.json"
SEVERAL = ("averaged",)  # what labels of attacks on several releases of a photo begin with
SHOWN = ("pixels", "network", "embedding")
"""Attacks whose rates have a column: a discriminant, a network, and one who knows clean photos alone."""
WIDE = 220  # columns of a photo in the sheet of drawn ones
KEY = ("method", "parameters")


def attacks() -> str:
    head = "| attack | what it does | reads | needs |\n|---|---|---|---|\n"
    made = (ATTACKS[name]() for name in ATTACKS.rows)
    rows = (
        (f"`{one.name}`", one.summary, ", ".join(one.reads), ", ".join(f"`{extra}`" for extra in one.extras))
        for one in made
    )
    return head + "\n".join(f"| {' | '.join(row)} |" for row in rows)


def layouts() -> str:
    head = "| layout | whom a photo shows |\n|---|---|\n"
    return head + "\n".join(f"| {one.name} | {one.identity} |" for one in LAYOUTS)


def drawn() -> str:
    head = "| data set | what it shows | subjects × photos | rows × columns |\n|---|---|---|---|\n"
    rows = (
        (f"`{name}`", kind.summary, "{} × {}".format(*kind.usual), "{} × {}".format(*_size(kind)))
        for name, kind in DRAWN.items()
    )
    return head + "\n".join(f"| {' | '.join(row)} |" for row in rows)


def sheet() -> bytes:
    """Return two photos of each of two people of every drawn data set, as PNG."""
    bands = []
    for kind in DRAWN.values():
        photos = [kind.of(number, photo).read().image for number in (1, 2) for photo in (0, 1)]
        height, width, _ = photos[0].shape
        wide = [np.broadcast_to(photo, (height, width, 3)) for photo in photos]
        size = (WIDE, round(WIDE * height / width))
        bands.append(np.hstack([cv2.resize(one, size, interpolation=cv2.INTER_AREA) for one in wide]))
    buffer = io.BytesIO()
    Image.fromarray(np.vstack(bands)).save(buffer, "PNG")
    return buffer.getvalue()


def _size(kind: type[DrawnItem]) -> tuple[int, ...]:
    return kind.of(0, 0).read().image.shape[:2]


def measures() -> str:
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
        bounds = [exact(one["bound"]) for one in own if one["bound"]]
        settings = settings_in_words(row)
        told = f"`{row['method']}`{f' ({settings})' if settings else ''}"
        promise = PROMISES.get(row["kind"], row["kind"]) + (f", {row['relation']}" if row["relation"] else "")
        rate = f"{percent(row['success'])} [{percent(row['low'])}, {percent(row['high'])}]"
        bound = f"{up(100 * min(bounds), 1)} %" if bounds else ""
        near = f"{float(ssim[tuple(row[key] for key in KEY)]):.2f}"
        lines.append(f"| {told} | {promise} | {rate} | {top['attack']} | {near} | {bound} |")
    return head + "\n".join(lines)


def strength() -> str:
    """Return how many photos attacks name on AT&T, by one release and by four, and what a paper reports."""
    rows = {row.pop("attack"): row for row in json.loads(STRENGTH.read_text(encoding="utf-8"))["rows"]}
    paper = rows.pop("network of Reilly & Fan")
    names = [f"`{name}`" for name in SHOWN]
    words = ["releases", "strongest of one release [95 %]", *names, "strongest of four", "Reilly & Fan"]
    lines = [words, ["---"] * len(words), *(_strength(setting, rows, paper[setting]) for setting in paper)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _strength(setting: str, rows: dict[str, Any], paper: float | str) -> list[str]:
    found = {name: row[setting] for name, row in rows.items() if row[setting]}
    many = [found.pop(name) for name in list(found) if name.startswith(SEVERAL)]
    best = max(found, key=lambda name: found[name][0])
    rate, low, high = map(percent, found[best])
    each = [percent(found[name][0]) if name in found else "" for name in SHOWN]
    told = "the photos as they are" if setting == "nothing" else setting
    several = percent(max(value for value, _, _ in many))
    return [
        told,
        f"{rate} [{low}, {high}] by `{best}`",
        *each,
        several,
        f"{100 * float(paper):.0f} %" if paper else "",
    ]


def percent(share: str | float) -> str:
    return f"{100 * float(share):.1f} %"


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
