"""What the tests of scale share: photos, finders that end their process, and a look at store and ledger."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np

import dpveil
from dpveil.errors import NoRegion
from dpveil.io import encode
from dpveil.regions import Finder

PIX = {"method": "dp-pix", "epsilon": 1, "block": 8}


class Dark(Finder):
    """The whole photo, unless it is black."""

    description = "dark"

    def __call__(self, photo: Any) -> list[Any]:
        if not photo.image.any():
            raise NoRegion("there is nobody in this photo")
        return [dpveil.Region.whole(photo)]


class Deadly(Finder):
    """The whole photo; a white one ends the process."""

    description = "deadly"

    def __call__(self, photo: Any) -> list[Any]:
        if photo.image.min() == 255:
            os._exit(9)
        return [dpveil.Region.whole(photo)]


class Endless(Finder):
    """The whole photo, of which a white one takes for ever."""

    description = "endless"

    def __call__(self, photo: Any) -> list[Any]:
        while photo.image.min() == 255:
            time.sleep(1)
        return [dpveil.Region.whole(photo)]


def png(number: int, side: int = 16) -> bytes:
    """Return a photo of its own for each number."""
    levels = (np.arange(side * side) * 7) % 251
    levels[:4] = [number % 256, number // 256 % 256, number // 65536, 9]
    return encode(levels.astype(np.uint8).reshape(side, side, 1), "png")


def plain(level: int) -> bytes:
    """Return a photo of one grey level."""
    return encode(np.full((16, 16, 1), level, np.uint8), "png")


def releases(store: Path) -> set[str]:
    """Return the names of all releases in a store, each of which must verify."""
    found = sorted((store / "releases").rglob("*.png"))
    assert {dpveil.verify(path).status for path in found} <= {"consistent"}
    return {f"{path.parent.name}/{path.name}" for path in found}


def paid(ledger: Any) -> tuple[int, int]:
    """Return how many debits a ledger has, and how many of them are without a release."""
    events = [entry.event for entry in ledger.history() if entry.kind in ("debit", "stored")]
    debits = {(e.unit, e.draw) for e in events if not hasattr(e, "sha256")}
    stored = {(e.unit, e.draw) for e in events if hasattr(e, "sha256")}
    assert stored <= debits
    return len(debits), len(debits - stored)
