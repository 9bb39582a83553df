"""What the tests of drawn heads share: people, a head in a box, and a hash of a sheet of them."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np

from dpveil.core.region import Box
from dpveil.faces.drawn.drawing import draw
from dpveil.faces.drawn.figure import DrawnHead
from dpveil.faces.drawn.traits import Person, drawn
from dpveil.faces.geometry.align import Frame, Similarity
from dpveil.noise.bits import SeededBits

SIDE = 160


def person(**traits: Any) -> Person:
    return replace(Person(), **traits)


def people(count: int, seed: int = 3) -> list[Person]:
    bits = SeededBits(seed)
    return [drawn(bits, {}) for _ in range(count)]


def units(side: int) -> Similarity:
    """Return what takes positions of `shapes` to the pixels of a square that holds a head."""
    return Similarity(side / 100, 0.0, side / 2 - 0.5, 0.44 * side - 0.5)


def picture(one: Person, side: int = SIDE) -> np.ndarray:
    """Return a head before grey."""
    alpha, image = draw(one, Box(0, 0, side, side), units(side))
    return 128 + alpha[..., None] * (image - np.float32(128))


def sheet() -> str:
    """Return the hash of 48 heads of three sizes, each in a turned place, as a portrait and as a crop."""
    found, frame = hashlib.sha256(), Frame(128)
    for side in (24, 64, 200):
        box, place = Box(0, 0, side, side), Similarity(250 / side, 0.3, -23.0, -99.0)
        outside = np.full((side * 3 // 2, side, 3), 90, np.uint8)
        hidden = np.arange(len(outside))[:, None] + 0 * np.arange(side) < side
        for one in people(16, seed=side):
            head = DrawnHead(one)
            alone = head.alone(side, side + 9)
            for part in (*head.on(place, frame, box, outside, hidden), alone, head.crop(frame)):
                found.update(part.tobytes())
    return found.hexdigest()


if __name__ == "__main__":
    print(sheet())
