"""What an interrupted run has told, and what is there: each photo in one class, each debit accounted for."""

from __future__ import annotations

import csv
import json
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from shards_made import Given, picture, shard

from dpveil.ledger import Ledger, Limit

URL = "sqlite:///budget.db"
PAID = ("--ledger", URL, "--subject", "album", "--json", "--manifest", "rows.csv")
METHOD = ("--method", "dp-pix", "--epsilon", "1", "--block", "4", "--neighbourhood", "16")
SHAPES = ("folder", "one", "shard")
"""What is released: photos of a folder, a single one, or those of a shard."""


def originals(shape: str, count: int, side: int) -> str:
    """Write originals, and a ledger that pays for them all; return the input's path."""
    with Ledger(URL, create=True) as ledger:
        ledger.set_limit("album", Limit("pure", epsilon=10**6))
    Path("in").mkdir()
    if shape == "shard":
        members: Given = [(f"{each}.png", picture(side + each)) for each in range(count)]
        shard("in/all.tar", members)
        return "in"
    for each in range(count):
        Image.fromarray(np.full((side, side + each, 3), 100, np.uint8)).save(f"in/{each}.png")
    return "in/0.png" if shape == "one" else "in"


def inputs(shape: str, count: int) -> list[str]:
    names = {"folder": "in/{}.png", "one": "in/{}.png", "shard": "in/all.tar/{}.png"}
    return [names[shape].format(each) for each in range(1 if shape == "one" else count)]


def debits() -> tuple[int, int]:
    """Return how many releases were paid for, and of how many of them no file is known."""
    with Ledger(URL) as ledger:
        found = ledger.check()
    return found.debits, found.unstored


def releases() -> int:
    """Return how many releases there are, in files, in shards and waiting for one."""
    loose = [*Path("out").rglob("*.png")] if Path("out").exists() else []
    packed = [name for path in Path().glob("out/*.tar") for name in _members(path) if name.endswith(".png")]
    return len(loose) + len(packed)


def _members(path: Path) -> Iterable[str]:
    with tarfile.open(path) as opened:
        return opened.getnames()


def check(out: str, expected: list[str], paid: int, held: int, *, lost: bool) -> None:
    """Compare the report of a run with its inputs, manifest, files and ledger.

    `paid` debits and `held` releases were there before. If nothing is told, nothing was done. Unless some may
    be `lost`, whatever was paid for is released.
    """
    now, unstored = debits()
    if not out:
        assert (now, releases()) == (paid, held)
        return
    document: dict[str, list[dict[str, Any]]] = json.loads(out)
    rows = [(status, entry["input"]) for status, found in document.items() for entry in found]
    assert sorted(name for _, name in rows) == sorted(expected), "a photo is in no class, or in two"
    with Path("rows.csv").open(newline="") as file:
        assert sorted((row["status"], row["input"]) for row in csv.DictReader(file)) == sorted(rows)
    discarded = [entry["input"] for found in document.values() for entry in found if lost_(entry)]
    assert not {*discarded} & {entry["input"] for entry in document["untried"]}
    assert now - paid == len(document["released"]) + len(discarded), "a debit is not told, or told twice"
    assert releases() - held == len(document["released"])
    assert not discarded or lost
    assert unstored <= now - releases()
    Path("rows.csv").unlink()


def lost_(entry: dict[str, Any]) -> bool:
    return bool(entry.get("paid_and_discarded"))
