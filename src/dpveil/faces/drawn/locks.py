"""What hair and beards are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from dpveil.faces.drawn.canvas import Canvas
from dpveil.faces.drawn.head import Head
from dpveil.faces.drawn.shapes import Given, Points, closed, mirrored, stroke

STRANDS: Final = ("hair", "beard")


def cap(head: Head, over: float, side: float, line: Given, down: float = 2.0) -> Points:
    """Return hair on the skull: `over` is how thick on top, `side` at the temples; `line` is the hairline
    from the right to the left, and sideburns end `down` below the eyes.
    """
    w = head.wide
    right = [
        (9.4, -29.9 - over),
        (16.9 + 0.6 * side, -23.4 - 0.75 * over),
        (w - 0.4 + side, -10.5),
        (w + 0.75 * side, down),
    ]
    left = mirrored(right)[::-1]
    inner = [(w - 2.4, down + 0.3), (w - 2.9, -6.0), *line, (-w + 2.9, -6.0), (-w + 2.4, down + 0.3)]
    front = head.turned(np.array(inner), -8.0) if len(inner) else np.empty((0, 2))
    return closed(np.concatenate([[(0, -31.8 - over)], right, front, left]))


def strands(canvas: Canvas, lines: Sequence[Given], width: float, name: str) -> None:
    """Draw light or dark strands, where there is hair."""
    for line in lines:
        canvas.fill(name, stroke(line, width, (0.1, 0.1)), within=STRANDS)
