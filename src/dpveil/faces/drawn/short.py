"""Hair that leaves the ears free."""

from __future__ import annotations

import numpy as np

from dpveil.faces.drawn.canvas import Canvas
from dpveil.faces.drawn.head import Head
from dpveil.faces.drawn.locks import STRANDS, cap, strands
from dpveil.faces.drawn.shapes import closed, ellipse, scalloped, stroke


def bald(canvas: Canvas, head: Head) -> None:
    """Draw a bald head, older ones with hair at the sides."""
    w = head.wide
    if head.person.age in ("45-59", "60-74", "75+"):
        for sign in (-1, 1):
            patch = np.array(
                [
                    (w - 1.0, 3.5),
                    (w + 1.0, -0.5),
                    (w + 1.2, -7),
                    (w - 0.6, -13.5),
                    (w - 1.9, -9),
                    (w - 2.0, -1),
                ]
            )
            canvas.fill("hair", closed(patch * (sign, 1)))
    shine = closed([(-10.5, -24), (-6.5, -27), (-5.0, -26), (-9, -22.5)])
    canvas.fill("shine", shine, within=("skin",))


def buzz(canvas: Canvas, head: Head) -> None:
    """Draw hair that is clipped short."""
    line = [(14.8, -15.5), (8, -19.2), (0, -20.2), (-8, -19.2), (-14.8, -15.5)]
    canvas.fill("hair", cap(head, 0.7, 0.5, line, 1.0))


def side(canvas: Canvas, head: Head) -> None:
    """Draw short hair with a parting."""
    v = head.person.of("volume")
    line = [(15.2, -13.5), (11.0, -18.6), (2, -20.2), (-6.5, -17.2), (-12.2, -19.6), (-15.4, -13.0)]
    canvas.fill("hair", cap(head, 3.2 + 0.5 * v, 1.3, line, 1.5))
    canvas.fill("hair-dark", stroke([(-11.8, -19.8), (-11.0, -26.0), (-7.5, -32.5)], 0.9), within=STRANDS)
    strands(
        canvas, [[(-8, -20), (0, -25), (12, -26)], [(-8, -25), (0, -29.5), (11, -29.8)]], 1.3, "hair-light"
    )
    strands(
        canvas, [[(17, -14), (19.5, -8), (19.3, -2)], [(2, -21.5), (9, -22.5), (15, -18)]], 1.1, "hair-dark"
    )


def quiff(canvas: Canvas, head: Head) -> None:
    """Draw short sides with a quiff."""
    v = head.person.of("volume")
    line = [(15.0, -13.8), (10.5, -19.4), (0, -21.4), (-10.5, -19.4), (-15.0, -13.8)]
    canvas.fill("hair", cap(head, 1.0, 0.9, line, 0.5))
    top = [
        (-14.8, -17.5), (-15.8, -26), (-9, -33.0 - 0.4 * v), (2, -35.2 - 0.4 * v), (11, -33.2 - 0.4 * v),
        (16.2, -27), (15.0, -18.5), (8, -21.8), (0, -22.6), (-8, -21.0),
    ]  # fmt: skip
    canvas.fill("hair", closed(top))
    lines = [
        [(-11, -21), (-7, -29), (3, -33)],
        [(-3, -23), (1, -29), (10, -32)],
        [(6, -23), (9, -27), (14, -28)],
    ]
    strands(canvas, lines, 1.3, "hair-light")
    strands(
        canvas,
        [[(-14, -18), (-12, -24), (-6, -28)], [(w := head.wide - 0.4, -13), (w, -6), (w, 0)]],
        1.0,
        "hair-dark",
    )


def curly(canvas: Canvas, head: Head) -> None:
    """Draw short curls."""
    v, w = head.person.of("volume"), head.wide
    spots = [
        (-17.5, -13), (-17.4, -19.5), (-12.8, -25), (-7.0, -28.8), (0, -30.0), (7.0, -28.8), (12.8, -25),
        (17.4, -19.5), (17.5, -13), (-12.5, -20.5), (-6.5, -24), (0, -24.6), (6.5, -24), (12.5, -20.5),
        (-w + 0.6, -8.0), (w - 0.6, -8.0),
    ]  # fmt: skip
    size = 4.8 + 0.3 * v
    for x, y in spots:
        canvas.fill("hair", scalloped(x, y, size, size, 5, 0.10))
    for sign in (-1, 1):
        canvas.fill("hair", ellipse(sign * (w - 0.3), -2.5, 2.1, 4.5))
    for n, (x, y) in enumerate(spots[:14]):
        ring = [(x - 2.3, y + 0.6), (x - 1.0, y - 1.9), (x + 1.7, y - 1.4), (x + 1.9, y + 1.0)]
        canvas.fill("hair-light" if n % 2 else "hair-dark", stroke(ring, 0.8), within=STRANDS)


def afro_back(canvas: Canvas, head: Head) -> None:
    """Draw the round outline of an afro."""
    v = head.person.of("volume")
    canvas.fill("hair", scalloped(0, -9.0, 24.8 + 0.6 * v, 24.8 + 0.6 * v, 26, 0.04))


def afro(canvas: Canvas, head: Head) -> None:
    """Draw the hairline of an afro."""
    line = [(16.0, -11.5), (12.0, -17.2), (0, -19.6), (-12.0, -17.2), (-16.0, -11.5)]
    canvas.fill("hair", cap(head, 3.0, 3.0, line, 0.0))
    for x, y in (
        (-19, -22),
        (-10, -29),
        (1, -31.5),
        (12, -29),
        (20, -21),
        (-22.5, -11),
        (23, -9),
        (-4, -25),
        (7, -24),
    ):
        ring = [(x - 1.8, y + 0.8), (x - 0.8, y - 1.3), (x + 1.5, y - 0.8)]
        canvas.fill("hair-light" if x < 3 else "hair-dark", stroke(ring, 0.8), within=STRANDS)


def receding(canvas: Canvas, head: Head) -> None:
    """Draw a receding hairline."""
    line = [
        (16.3, -13.0),
        (14.8, -21.5),
        (9.0, -27.0),
        (3.5, -23.4),
        (-3.5, -23.4),
        (-9.0, -27.0),
        (-14.8, -21.5),
        (-16.3, -13.0),
    ]
    canvas.fill("hair", cap(head, 1.8, 1.2, line, 1.0))
    strands(
        canvas, [[(-7, -27), (0, -30), (8, -29)], [(-18, -16), (-19.5, -9), (-19.4, -2)]], 0.9, "hair-light"
    )


def pixie(canvas: Canvas, head: Head) -> None:
    """Draw short hair that is combed across the forehead."""
    v = head.person.of("volume")
    line = [(16.4, -7.5), (14.0, -14.5), (6, -17.5), (-4, -13.6), (-11, -10.6), (-15.8, -7.0)]
    canvas.fill("hair", cap(head, 3.2 + 0.5 * v, 1.9, line, 4.0))
    lines = [[(7, -30), (-2, -24), (-11, -12.5)], [(9, -27), (2, -21), (-5, -15.5)]]
    strands(canvas, lines, 1.2, "hair-light")
    strands(
        canvas, [[(12, -26), (16, -19), (17.6, -10)], [(10, -31), (17, -25), (20, -14)]], 1.1, "hair-dark"
    )
