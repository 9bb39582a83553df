"""The features of a face: eyes, brows, nose, mouth, glasses."""

from __future__ import annotations

import numpy as np

from dpveil.faces.drawn.canvas import Canvas
from dpveil.faces.drawn.head import SKINS, Head
from dpveil.faces.drawn.shapes import Points, closed, curve, ellipse, stroke, superellipse

GROUND = (*SKINS, "white", "iris", "pupil", "lash", "brow")


def eyes(canvas: Canvas, head: Head) -> None:
    """Draw both eyes with their brows."""
    for side in (-1.0, 1.0):
        _eye(canvas, head, side)
        _brow(canvas, head, side)


def _eye(canvas: Canvas, head: Head, side: float) -> None:
    p = head.person
    wide, high = 4.3 + 0.35 * p.of("eyes"), 2.55 + 0.45 * p.of("lids") - 0.3 * (p.age in ("60-74", "75+"))
    slant = 0.35 + 0.5 * p.of("slant")
    x = side * (10.0 + 0.3 * p.of("width"))

    def placed(points: list[tuple[float, float]]) -> Points:
        return head.turned(np.array(points) * (side, 1) + (x, 0))

    upper = [
        (-wide, 0.7),
        (-wide * 0.5, -high * 0.72),
        (0.2, -high),
        (wide * 0.62, -high * 0.62),
        (wide, -slant),
    ]
    lower = [(wide * 0.55, high * 0.62), (0, high * 0.84), (-wide * 0.6, high * 0.62)]
    ball = closed(placed(upper + lower))
    canvas.fill("white", ball)
    ((at_x, at_y),) = head.turned([(x, -0.15)], 1.0)
    at_x += 0.25 * np.sin(head.yaw)
    canvas.fill("iris", ellipse(at_x, at_y, 2.35, 2.45), within=("white",))
    canvas.fill("pupil", ellipse(at_x, at_y, 1.2, 1.25), within=("iris",))
    canvas.fill("white", ellipse(at_x - 0.85, at_y - 0.95, 0.62, 0.62, 16), within=("iris", "pupil"))
    thick = 0.95 + 0.35 * (p.gender == "female")
    lid = [(upper[0][0] + 0.2, upper[0][1]), *upper[1:-1], (wide + 0.5, -slant - 0.3)]
    canvas.fill("lash", stroke(placed(lid), thick, (0.3, 0.9)))
    if p.gender == "female":
        lash = [(wide * 0.7, -high * 0.45), (wide + 0.7, -slant - 0.7), (wide + 1.5, -slant - 1.7)]
        canvas.fill("lash", stroke(placed(lash), 0.9, (0.9, 0.1)))
    fold = [(-wide * 0.75, -high * 0.62 - 0.9), (0.2, -high - 1.35), (wide * 0.95, -slant - 1.6)]
    canvas.fill("crease", stroke(placed(fold), 0.6, (0.2, 0.5)), within=SKINS)


def _brow(canvas: Canvas, head: Head, side: float) -> None:
    p = head.person
    thick = 1.55 + 0.75 * head.male + 0.4 * p.of("brows")
    arch, high = 1.3 + 0.8 * p.of("arch") - 0.3 * head.male, -7.5 + 0.5 * head.male - 0.5 * p.of("brows")
    line = [(4.8, high + 0.1), (8.6, high - 0.6 * arch), (12.2, high - arch), (16.0, high + 0.5)]
    canvas.fill("brow", stroke(head.turned(np.array(line) * (side, 1)), thick, (0.75, 0.1)))


def nose(canvas: Canvas, head: Head) -> None:
    """Draw the nose: its shaded side, its tip and the wings."""
    p = head.person
    low, half = 13.5 + 0.9 * p.of("nose") + 0.4 * head.male, 3.7 + 0.55 * p.of("bridge") + 0.3 * head.male
    flank = [
        (1.0, 3.2), (1.7, 6.2), (half * 0.75, low - 3.2), (half, low - 1.2), (half * 0.7, low + 0.2),
        (0.2, low + 0.8), (1.3, low - 2.6), (0.7, 6.0),
    ]  # fmt: skip
    canvas.fill("crease", closed(head.turned(flank, 2.2)), within=SKINS)
    under = [
        (-half, low - 1.4),
        (-half * 0.62, low + 0.15),
        (0, low + 0.95),
        (half * 0.62, low + 0.15),
        (half, low - 1.4),
    ]
    canvas.fill("deep", stroke(head.turned(under, 2.2), 1.0, (0.5, 0.5)))


def mouth(canvas: Canvas, head: Head) -> None:
    """Draw the mouth: still, smiling, or smiling with teeth."""
    p = head.person
    half, full = 7.3 + 0.8 * p.of("mouth"), 1 + 0.25 * p.of("lips") + 0.2 * (p.gender == "female")
    y = 21.8 + 0.25 * (head.chin - 34.7)
    if p.smile == "no":
        _still(canvas, head, half * 0.86, full, y)
    elif p.mouth == "closed":
        _closed(canvas, head, half, full, y)
    else:
        _open(canvas, head, half, full, y)


def _still(canvas: Canvas, head: Head, half: float, full: float, y: float) -> None:
    upper = [
        (-half, y - 0.3),
        (-2.2, y - 1.25 * full),
        (0, y - 0.75 * full),
        (2.2, y - 1.25 * full),
        (half, y - 0.3),
    ]
    lower = [(half * 0.55, y + 1.7 * full), (0, y + 2.2 * full), (-half * 0.55, y + 1.7 * full)]
    canvas.fill("lip", closed(head.turned(upper + lower, 1)))
    line = [
        (-half - 0.4, y - 0.6),
        (-half * 0.5, y + 0.25),
        (0, y + 0.45),
        (half * 0.5, y + 0.25),
        (half + 0.4, y - 0.6),
    ]
    canvas.fill("lip-dark", stroke(head.turned(line, 1), 0.8, (0.6, 0.6)))


def _closed(canvas: Canvas, head: Head, half: float, full: float, y: float) -> None:
    line = [(-half, y - 1.3), (-half * 0.5, y + 0.5), (0, y + 0.95), (half * 0.5, y + 0.5), (half, y - 1.3)]
    upper = [
        (-half * 0.95, y - 1.0),
        (-2.1, y - 0.9 * full),
        (0, y - 0.45 * full),
        (2.1, y - 0.9 * full),
        (half * 0.95, y - 1.0),
    ]
    lower = [(half * 0.55, y + 2.0 * full), (0, y + 2.7 * full), (-half * 0.55, y + 2.0 * full)]
    canvas.fill("lip", closed(head.turned(upper + lower, 1)))
    canvas.fill("lip-dark", stroke(head.turned(line, 1), 0.95, (0.5, 0.5)))
    _corners(canvas, head, half, y - 1.4)


def _open(canvas: Canvas, head: Head, half: float, full: float, y: float) -> None:
    top = [(-half, y - 1.6), (-half * 0.5, y - 0.5), (0, y - 0.1), (half * 0.5, y - 0.5), (half, y - 1.6)]
    bottom = [(half * 0.68, y + 2.5), (0, y + 4.3), (-half * 0.68, y + 2.5)]
    shape = closed(head.turned(top + bottom, 1))
    rim = np.array(top + bottom)
    centre = rim.mean(axis=0)
    canvas.fill("lip", closed(head.turned(centre + (rim - centre) * (1.03, 1.0 + 0.30 * full), 1)))
    canvas.fill("mouth", shape)
    ((middle, _),) = head.turned([(0, y + 4.2)], 1).tolist()
    canvas.fill("tongue", ellipse(middle, y + 4.2, half * 0.5, 1.9), within=("mouth",))
    teeth = curve(top)
    band = np.concatenate([teeth, (teeth * (0.9, 1) + (0, 2.3))[::-1]])
    canvas.fill("teeth", head.turned(band, 1), within=("mouth", "tongue"))
    _corners(canvas, head, half, y - 1.8)


def _corners(canvas: Canvas, head: Head, half: float, y: float) -> None:
    for side in (-1, 1):
        dent = [
            (side * (half + 0.2), y + 1.3),
            (side * (half + 1.0), y + 0.1),
            (side * (half + 0.8), y - 1.1),
        ]
        canvas.fill("crease", stroke(head.turned(dent, 1), 0.75), within=SKINS)


def glasses(canvas: Canvas, head: Head) -> None:
    """Draw glasses, over brows and eyes."""
    kind = head.person.glasses
    if kind == "none":
        return
    rim = {"round": 1.1, "square": 1.5, "thin": 0.7}[kind]
    for side in (-1, 1):
        a, b, power = {"round": (7.2, 6.6, 2.2), "square": (7.7, 5.7, 4.2), "thin": (7.4, 5.2, 3.0)}[kind]
        x, y = side * 10.2, 0.8
        outer, inner = (
            head.turned(superellipse(x, y, a + more, b + more, power), 2.5) for more in (rim / 2, -rim / 2)
        )
        canvas.fill("glass", inner, within=SKINS)
        canvas.fill("frame", outer, inner)
        temple = [(side * (10.2 + a), -1.0), (side * (head.wide - 0.2), -0.6)]
        canvas.fill("frame", stroke(head.turned(temple, 1.0), rim, (1, 1)))
    bridge = [(-3.2, 0.4), (0, -0.9), (3.2, 0.4)]
    canvas.fill("frame", stroke(head.turned(bridge, 3.5), rim, (1, 1)))
