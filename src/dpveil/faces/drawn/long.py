"""Hair that falls beside the face or is tied up, and a scarf over it."""

from __future__ import annotations

import numpy as np

from dpveil.faces.drawn.canvas import Canvas
from dpveil.faces.drawn.head import Head
from dpveil.faces.drawn.locks import STRANDS, cap, strands
from dpveil.faces.drawn.shapes import both_sides, closed, ellipse, mirrored, stroke


def long_back(canvas: Canvas, head: Head) -> None:
    """Draw long straight hair behind the shoulders."""
    v = head.person.of("volume")
    right = [
        (0, -35.2), (12.2, -32.6), (21.6 + v, -22), (24.6 + v, -5), (23.4 + v, 10), (19.6, 24),
        (16.4, 36), (15.8, 44.5), (12.5, 48.0), (6, 46), (0, 44),
    ]  # fmt: skip
    canvas.fill("hair", closed(both_sides(right)))
    canvas.fill(
        "hair-dark", closed(both_sides([(0, 10), (13, 14), (13.5, 30), (12.0, 42), (0, 43)])), within=STRANDS
    )


def part(canvas: Canvas, head: Head, low: float, over: float = 3.4) -> None:
    """Draw parted hair that frames the face and ends `low` below the eyes."""
    p, w = head.person, head.wide
    at = 4.5 * p.of("part") - 2.0
    for sign in (-1.0, 1.0):
        out = w + 3.6 + 0.8 * p.of("volume")
        outer = [
            (at - 0.4 * sign, -31.3 - over),
            (sign * 11.6, -29.6 - over * 0.8),
            (sign * 19.4, -23.2),
            (sign * out, -8),
            (sign * (out - 0.4), 8),
        ]
        ends = [(sign * (out - 1.6), low), (sign * (w - 2.0), low)]
        inner = head.turned(
            [(sign * (w - 0.8), 8), (sign * (w - 3.2), -6), (sign * (w - 7.0), -15.5)], -9.0
        ).tolist()
        root = head.turned([(at, -21.5)], -9.0).tolist()
        canvas.fill("hair", closed(np.array([*outer, *ends, *inner, *root])))
        strands(
            canvas,
            [[(at + 3 * sign, -27), (sign * 13, -25), (sign * (w + 0.5), -12)]],
            1.5,
            "hair-light" if sign < 0 else "hair-dark",
        )
        strands(
            canvas,
            [[(sign * (w + 1.8), -12), (sign * (w + 2.4), 0), (sign * (w + 1.6), low - 2)]],
            1.2,
            "hair-dark" if sign > 0 else "hair-light",
        )


def long(canvas: Canvas, head: Head) -> None:
    """Draw long straight hair beside the face."""
    part(canvas, head, 24.0)


def wavy_back(canvas: Canvas, head: Head) -> None:
    """Draw long waves behind the shoulders."""
    v = head.person.of("volume")
    right = [
        (0, -34.8), (12.2, -32.4), (21.8, -23), (25.2 + v, -9), (23.4 + v, 1), (25.0 + v, 11),
        (20.2, 20), (20.4, 26), (15.8, 34), (16.4, 41), (12.5, 46.5), (6, 45), (0, 44),
    ]  # fmt: skip
    canvas.fill("hair", closed(both_sides(right)))
    canvas.fill(
        "hair-dark", closed(both_sides([(0, 10), (13, 14), (13.5, 28), (11, 42), (0, 43)])), within=STRANDS
    )


def wavy(canvas: Canvas, head: Head) -> None:
    """Draw waves beside the face."""
    part(canvas, head, 15.0, 3.2)
    for sign in (-1, 1):
        waves = [
            [(sign * 22.5, 6), (sign * 20.8, 13), (sign * 21.4, 20)],
            [(sign * 19.0, 24), (sign * 17.0, 31), (sign * 17.4, 38)],
        ]
        strands(canvas, waves, 1.3, "hair-light" if sign < 0 else "hair-dark")


def bob_back(canvas: Canvas, head: Head) -> None:
    """Draw a bob's outline."""
    v = head.person.of("volume")
    right = [
        (0, -35.2),
        (12.2, -32.6),
        (21.6 + v, -22),
        (24.9 + v, -4),
        (24.8 + v, 11),
        (21.4, 23),
        (16.5, 27),
        (8, 25),
        (0, 24),
    ]
    canvas.fill("hair", closed(both_sides(right)))


def bob(canvas: Canvas, head: Head) -> None:
    """Draw a bob, parted or with a fringe."""
    if head.person.of("part") > 0.2:
        fringe(canvas, head)
    else:
        part(canvas, head, 22.0)


def fringe(canvas: Canvas, head: Head) -> None:
    """Draw a straight fringe."""
    w = head.wide
    line = [
        (w - 3.2, -2),
        (w - 4.6, -10.4),
        (10, -11.6),
        (0, -12.2),
        (-10, -11.6),
        (-w + 4.6, -10.4),
        (-w + 3.2, -2),
    ]
    inner = head.turned(line, -6.0).tolist()
    right = [
        (11.6, -33.0),
        (19.8, -24.0),
        (w + 4.2, -8),
        (w + 3.8, 8),
        (w + 2.4, 21),
        (w - 0.8, 21),
        (w - 1.0, 8),
    ]
    left = mirrored(right)[::-1].tolist()
    canvas.fill("hair", closed(np.array([(0, -35.5), *right, *inner, *left])))
    lines = [[(x * 0.7, -30), (x * 0.95, -21), (x, -13)] for x in (-11, -4, 4, 11)]
    strands(canvas, lines[:2], 1.1, "hair-light")
    strands(canvas, lines[2:], 1.1, "hair-dark")


def bun_back(canvas: Canvas, head: Head) -> None:
    """Draw a bun on top."""
    canvas.fill("hair", ellipse(0.8, -31.2, 9.0, 4.9))
    canvas.fill("hair-dark", stroke([(-4, -34.4), (1, -32.9), (7, -33.6)], 1.0), within=STRANDS)


def bun(canvas: Canvas, head: Head) -> None:
    """Draw hair that is combed back."""
    line = [(15.6, -12.0), (11.5, -18.0), (0, -20.6), (-11.5, -18.0), (-15.6, -12.0)]
    canvas.fill("hair", cap(head, 0.2, 0.9, line, 1.0))
    lines = [
        [(x, -19.5 + abs(x) * 0.22), (x * 0.72, -25), (x * 0.3 + 1, -30.5)] for x in (-13, -6.5, 0, 6.5, 13)
    ]
    strands(canvas, lines[:3], 0.9, "hair-light")
    strands(canvas, lines[3:], 0.9, "hair-dark")


def scarf_back(canvas: Canvas, head: Head) -> None:
    """Draw the outline of a headscarf."""
    right = [
        (0, -35.5),
        (12.2, -32.6),
        (21.8, -22),
        (24.6, -4),
        (23.4, 13),
        (17.0, 31),
        (15.5, 42),
        (10, 47),
        (0, 48),
    ]
    canvas.fill("hair", closed(both_sides(right)))


def scarf(canvas: Canvas, head: Head) -> None:
    """Draw a headscarf around the face."""
    w, c = head.wide, head.chin
    hole = [
        (0, -19.5),
        (10.5, -17.2),
        (w - 3.4, -7),
        (w - 2.2, 6),
        (w - 5.0, 19),
        (8.5, c - 3.4),
        (0, c - 1.0),
    ]
    inner = closed(head.turned(both_sides(hole), -10.0))
    outer = [
        (0, -35.5),
        (12.2, -32.6),
        (21.8, -22),
        (24.6, -4),
        (23.4, 13),
        (17.0, 31),
        (16.4, 43),
        (10, 47.6),
        (0, 48.4),
    ]
    canvas.fill("hair", closed(both_sides(outer)), inner)
    folds = [
        [(-16, 22), (-6, 38), (10, 42)],
        [(-19, 12), (-12, 36), (2, 48)],
        [(-20, -16), (-10, -27), (6, -29)],
    ]
    strands(canvas, folds, 1.2, "hair-dark")
    strands(canvas, [[(18, 20), (12, 36), (-4, 41)], [(-16, -22), (-4, -31.5), (9, -31)]], 1.2, "hair-light")
