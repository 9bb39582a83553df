"""Beards and moustaches."""

from __future__ import annotations

import numpy as np

from dpveil.faces.drawn.canvas import Canvas
from dpveil.faces.drawn.head import SKINS, Head
from dpveil.faces.drawn.locks import strands
from dpveil.faces.drawn.shapes import both_sides, closed, mirrored


def beard(canvas: Canvas, head: Head) -> None:
    """Draw a beard, before the mouth."""
    kind = head.person.beard
    if kind in ("full", "short", "stubble"):
        _jaw(canvas, head, "stubble" if kind == "stubble" else "beard", 2.2 if kind == "full" else 0.5)
    if kind == "goatee":
        c = head.chin
        patch = [
            (-4.4, 26.6),
            (0, 25.8),
            (4.4, 26.6),
            (6.0, c - 3.5),
            (3.6, c + 1.4),
            (0, c + 2.4),
            (-3.6, c + 1.4),
            (-6.0, c - 3.5),
        ]
        canvas.fill("beard", closed(head.turned(patch, -6.0)))
    if kind in ("goatee", "moustache", "full"):
        top = [(0, 16.9), (4.0, 17.2), (7.6, 20.2), (8.6, 23.0), (5.4, 21.4), (1.5, 20.4), (0, 20.6)]
        canvas.fill("beard", closed(head.turned(both_sides(top), 1.0)))


def _jaw(canvas: Canvas, head: Head, name: str, out: float) -> None:
    w, c = head.wide, head.chin
    rim = head.outline[head.outline[:, 1] > 1.5]
    middle = np.array([rim[:, 0].mean(), 12.0])
    away = rim - middle
    grown = rim + away / np.hypot(*away.T)[:, None] * out * np.clip((rim[:, 1:] - 4) / 14, 0, 1)
    right = [(w - 1.4, 2.0), (w - 2.9, 8.0), (w - 5.2, 15.6), (10.6, 18.2), (6.4, 17.0), (0, 16.8)]
    cheek = np.concatenate([np.array(right), mirrored(right)[-2::-1]])
    order = np.argsort(np.arctan2(away[:, 0], -away[:, 1]) % (2 * np.pi))
    shape = np.concatenate([grown[order], head.turned(cheek[::-1], -4.0)])
    if name == "stubble":
        canvas.fill(name, shape, within=SKINS)
    else:
        canvas.fill(name, shape)
        strands(
            canvas,
            [[(-11, 24), (-8, 30), (-3, c - 0.5)], [(-14, 16), (-13.5, 22), (-10, 28)]],
            0.9,
            "beard-light",
        )
        strands(canvas, [[(12, 22), (9, 30), (4, c - 0.5)]], 0.9, "beard-dark")
