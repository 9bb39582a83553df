"""The head itself: outline, ears, neck and garment."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from dpveil.faces.drawn.canvas import Canvas
from dpveil.faces.drawn.shapes import Given, Points, both_sides, closed, curve, ellipse, mirrored, stroke
from dpveil.faces.drawn.traits import Person

YAW: Final = {"left": -17.0, "frontal": 0.0, "right": 17.0}
"""Degrees by which a head is turned, towards the right of the picture."""
SWAY: Final = 5.0
"""Degrees more or less, by the measure `turn`."""
SKINS: Final = ("skin", "shade", "blush", "deep", "crease", "stubble")


@dataclass(frozen=True)
class Head:
    """The measures of a person's head, and what a turn does to positions on it."""

    person: Person

    @cached_property
    def male(self) -> float:
        """1 or 0: how far the jaw, brows and neck are those of most men."""
        return float(self.person.gender == "male")

    @cached_property
    def wide(self) -> float:
        """Half the width of the face at the cheekbones."""
        return 20.3 + 0.5 * self.male + 0.9 * self.person.of("width")

    @cached_property
    def chin(self) -> float:
        """How far below the eyes the chin lies."""
        return 34.2 + 0.9 * self.male + 1.3 * self.person.of("length")

    @cached_property
    def yaw(self) -> float:
        """The turn in radians."""
        return math.radians(YAW[self.person.pose] + SWAY * self.person.of("turn"))

    def turned(self, points: Given, out: float = 0.0) -> Points:
        """Return where positions on the front of the face are seen; `out` is how far they stick out of it."""
        at = np.asarray(points, np.float64)
        deep = 17.0 * np.sqrt(np.clip(1 - (at[:, 0] / 25.0) ** 2, 0, 1)) + out
        x = at[:, 0] * math.cos(self.yaw) + deep * math.sin(self.yaw) * 0.78
        return np.stack([x, at[:, 1]], axis=1)

    @cached_property
    def outline(self) -> Points:
        """The face from the top of the skull to the chin."""
        p, w, c = self.person, self.wide, self.chin
        jaw = 14.9 + 1.5 * self.male + 1.3 * p.of("jaw")
        chin = 5.6 + 1.0 * self.male + 1.1 * p.of("chin")
        right = [
            (0, -31.5),
            (9.0, -29.6),
            (15.9, -23.0),
            (w - 1.0, -10),
            (w, 3),
            (0.62 * w + 0.38 * jaw + 0.9, 14.5),
            (jaw, 22.5),
            (0.5 * (jaw + chin) + 0.8, c - 5.2),
            (chin, c - 0.9),
            (0, c),
        ]
        at = both_sides(right)
        lean = np.interp(at[:, 1], [-31.5, 0, 18, c], [0.0, 1.0, 6.0, 11.5])
        return closed(at + np.stack([lean * math.sin(self.yaw), np.zeros(len(at))], axis=1))


def ears(canvas: Canvas, head: Head) -> None:
    """Draw both ears, behind the face."""
    size = 1 + 0.12 * head.person.of("ears")
    for side in (-1, 1):
        far = side * (head.wide + 0.9) * math.cos(head.yaw) - 3.5 * math.sin(head.yaw)
        x, y = far, 3.5
        out = [(-2.2, -4.6), (1.2, -6.2), (3.0, -3.4), (2.3, 1.6), (0.8, 5.6), (-1.4, 5.0), (-2.6, 0)]
        shape = np.array(out) * size * (side, 1)
        canvas.fill("skin" if side < 0 else "shade", closed(np.add(shape, (x, y))))
        inner = np.array([(0.2, -3.6), (1.7, -2.2), (1.2, 1.0), (-0.2, 3.0), (0.1, 0.4)]) * size * (side, 1)
        canvas.fill("crease" if side < 0 else "deep", closed(np.add(inner, (x, y))))
        _earring(canvas, head.person, x + side * 0.5, y + 6.0 * size)


def _earring(canvas: Canvas, person: Person, x: float, y: float) -> None:
    if person.earrings != "none" and person.hair != "scarf":
        canvas.fill("metal", ellipse(x, y, 1.0, 1.0, 16))
    if person.earrings == "drop" and person.hair != "scarf":
        canvas.fill("metal", closed([(x, y + 0.8), (x + 1.2, y + 4.2), (x, y + 5.6), (x - 1.2, y + 4.2)]))


def neck(canvas: Canvas, head: Head, *, bust: bool) -> None:
    """Draw the neck with the shadow of the chin, and what is worn: a `bust` that ends in an arc, or shoulders
    that go on.
    """
    half = 8.3 + 1.7 * head.male
    right = [(half - 0.2, 20), (half, 33), (half + 0.5, 39), (half + 3.0, 43.5), (half + 4.0, 47)]
    canvas.fill("skin", np.concatenate([curve(right), mirrored(curve(right))[::-1]]))
    canvas.fill("shade", head.outline * (0.96, 1.0) + (1.4, 5.6), within=("skin",))
    side = [(half + 2, 20), (half + 3, 46), (3.6, 50), (4.6, 38), (4.6, 20)]
    canvas.fill("shade", closed(side), within=("skin",))
    _garment(canvas, head, half, bust)


def _garment(canvas: Canvas, head: Head, half: float, bust: bool) -> None:
    kind = head.person.garment
    edge, low = half + 2.4, {"crew": 44.6, "shirt": 45.2, "vee": 45.6}[kind] + 0.5 * head.person.of("garment")
    middle = [(0, low), (2.0, low - 0.9)] if kind == "vee" else [(0, low), (edge * 0.6, low - 1.5)]
    line = both_sides_open([*middle, (edge, 40.9)])
    round_bust = curve([(edge, 40.9), (14.9, 42.9), (16.0, 45.0), (10.5, 47.6), (0, 48.4)])
    shoulders = np.concatenate(
        [curve([(edge, 40.9), (25, 44.0), (37, 50.0), (42, 60.0)]), [(43, 4000), (0, 4000)]]
    )
    rest = np.array(round_bust if bust else shoulders)[1:]
    canvas.fill("cloth", np.concatenate([line, rest, mirrored(rest)[-2::-1]]))
    canvas.fill(
        "cloth-dark", closed([(12.5, 40), (44, 44), (44, 4001), (9, 4001), (13.0, 52)]), within=("cloth",)
    )
    if kind == "shirt":
        for side in (-1, 1):
            flap = np.array([(half + 0.6, 38.4), (half + 3.8, 41.5), (half - 2.0, 47.4), (0.2, low + 0.2)])
            canvas.fill("cloth-light", flap * (side, 1))
    else:
        canvas.fill("cloth-dark" if kind == "crew" else "cloth-light", _band(line, 1.6))


def both_sides_open(right: Given) -> Points:
    """Return a line that is symmetric, from the left end to the right one."""
    half = curve(right)
    return np.concatenate([mirrored(half)[::-1], half[1:]])


def _band(line: Points, width: float) -> Points:
    return np.concatenate([line, np.add(line, (0, width))[::-1]])


def face(canvas: Canvas, head: Head) -> None:
    """Draw the face without features: light from the left, and a shaded side."""
    canvas.fill("shade", head.outline)
    lit = head.outline * (0.985, 1.0) - (2.6, 0.9)
    canvas.fill("skin", lit, within=("shade",))
    strength = 0.9 + 0.3 * head.person.of("cheeks")
    for side in (-1, 1):
        ((x, y),) = head.turned([(side * 12.3, 13.2)]).tolist()
        canvas.fill("blush", ellipse(x, y, 4.6 * strength, 3.0 * strength), within=("skin",))


def lines(canvas: Canvas, head: Head) -> None:
    """Draw the lines of an older face."""
    years = {"18-29": 0, "30-44": 0, "45-59": 1, "60-74": 2, "75+": 3}[head.person.age]
    for side in (-1, 1) if years else ():
        fold = [(side * 5.2, 14.8), (side * 8.0, 18.2), (side * 9.0, 22.2)]
        canvas.fill("crease", stroke(head.turned(fold), 0.55 + 0.2 * years), within=SKINS)
        bag = [(side * 6.8, 4.6), (side * 10.2, 5.9), (side * 13.4, 4.6)]
        canvas.fill("crease", stroke(head.turned(bag), 0.35 + 0.2 * years), within=SKINS)
        for bend in (-0.9, 0.9) if years > 1 else ():
            crow = [(side * 15.6, 0.3 + bend), (side * 17.6, 0.2 + 2.2 * bend)]
            canvas.fill("crease", stroke(head.turned(crow), 0.6), within=SKINS)
    for height in (-14.6, -17.4, -20.2)[: max(0, years)]:
        wave = [(-7.5, height + 0.4), (-3, height - 0.4), (2, height + 0.2), (7.5, height - 0.3)]
        canvas.fill("crease", stroke(head.turned(wave), 0.35 + 0.2 * years), within=SKINS)
