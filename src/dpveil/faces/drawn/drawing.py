"""A whole head, layer by layer from the back."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float32, UInt8

from dpveil.core.region import Box
from dpveil.faces.drawn import features, hair
from dpveil.faces.drawn import head as heads
from dpveil.faces.drawn.beard import beard
from dpveil.faces.drawn.canvas import Canvas, Colour
from dpveil.faces.drawn.head import Head
from dpveil.faces.drawn.palette import colours
from dpveil.faces.drawn.traits import Person
from dpveil.faces.geometry.align import Similarity

FINER: Final = 4
"""Samples along a pixel's side."""
LARGE: Final = 8.0
"""Pixels of a unit from which half as many are enough."""
SAMPLES: Final = 1 << 22
"""Samples that are drawn at once: a large head is drawn in bands of rows."""


def draw(
    person: Person, box: Box, to: Similarity, cloth: Colour | None = None, *, bust: bool = True
) -> tuple[Float32[np.ndarray, "h w"], UInt8[np.ndarray, "h w 3"]]:
    """Return how much of a head covers each pixel of `box` (0 to 1), and its colours there.

    `to` takes positions of `shapes` to pixels; `cloth` is the colour of what is worn, by default the
    person's own. With `bust` it ends in an arc, else the shoulders go on below.
    """
    finer = FINER if to.scale < LARGE else FINER // 2
    rows = max(1, SAMPLES // (finer * finer * box.w))
    alpha, image = np.empty((box.h, box.w), np.float32), np.empty((box.h, box.w, 3), np.uint8)
    head, palette = Head(person), colours(person, cloth)
    for top in range(0, box.h, rows):
        band = Box(box.x, box.y + top, box.w, min(rows, box.h - top))
        canvas = Canvas(band, to, finer)
        paint(canvas, head, bust=bust)
        alpha[top : top + band.h], image[top : top + band.h] = canvas.shown(palette)
    return alpha, image


def paint(canvas: Canvas, head: Head, *, bust: bool) -> None:
    """Draw every layer of a head."""
    style = head.person.hair
    if style in hair.BEHIND:
        hair.BEHIND[style](canvas, head)
    heads.neck(canvas, head, bust=bust)
    if style not in hair.COVERING:
        heads.ears(canvas, head)
    heads.face(canvas, head)
    heads.lines(canvas, head)
    beard(canvas, head)
    features.nose(canvas, head)
    features.mouth(canvas, head)
    features.eyes(canvas, head)
    hair.BEFORE[style](canvas, head)
    features.glasses(canvas, head)
