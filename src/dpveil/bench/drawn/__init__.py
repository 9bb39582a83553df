"""Photos that are drawn by dpveil's own code, so that a benchmark runs without any data: one file a kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dpveil.bench.drawn.base import MOST, DrawnEye, DrawnItem
from dpveil.bench.drawn.people import DrawnPerson
from dpveil.bench.drawn.plates import DrawnPlate
from dpveil.bench.drawn.scenes import DrawnScene

DRAWN: Final[Mapping[str, type[DrawnItem]]] = {
    kind.kind: kind for kind in (DrawnPerson, DrawnEye, DrawnPlate, DrawnScene)
}
"""The drawn data sets."""

__all__ = ["DRAWN", "MOST", "DrawnEye", "DrawnItem", "DrawnPerson", "DrawnPlate", "DrawnScene", "drawn"]


def drawn(kind: str, count: int | None, photos: int | None) -> list[DrawnItem]:
    """Return the photos of as many subjects of a kind, with as many of each."""
    made = DRAWN[kind]
    numbers, each = (
        min(asked or usual, most)
        for asked, usual, most in zip((count, photos), made.usual, MOST, strict=True)
    )
    return [made.of(number, photo) for number in range(numbers) for photo in range(each)]
