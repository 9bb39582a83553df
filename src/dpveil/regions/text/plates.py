"""Plates: text that stands like that of a licence plate, by its shape, contrast and length, unread."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from jaxtyping import Float, UInt8

from dpveil.core.origin import PLATE
from dpveil.core.parameters import Between
from dpveil.core.photo import Photo
from dpveil.regions.boxes import box_around
from dpveil.regions.text.finder import Text, lines
from dpveil.regions.things import Rows
from dpveil.regions.tiling import resized

MARGIN: Final = Fraction(1, 4)
"""Default margin: a plate has an edge around its text."""
ASPECT: Final = (1.2, 9.0)
"""Width by height of the upright box around the text of a plate, also of one that is tilted."""
LENGTH: Final = (3, 12)
"""Number of letters that stand apart, with dashes, seals and what joins two of them."""
LEGIBLE: Final = 56
UPRIGHT: Final = 3.0
"""Height in pixels, and width by height, of boxes in which letters stand apart; a box around a line is more
than twice as high as its letters. In others they are not counted, and the text is taken for that of a plate.
"""
TALL: Final = 0.2
"""Height of a letter at least, relative to the box."""
CONTRAST: Final = 40
"""Levels by which letters and ground differ at least; those of text on a plate differ by design."""
HEIGHT: Final = 96
"""Rows of the text in which letters are counted."""


@dataclass(frozen=True, kw_only=True)
class Plates(Text):
    """One box for every line of text that stands like that of a plate; plates that are missed stay.

    Nothing is read: a line counts if its box is as wide as that of a plate (between 1.2 and 9 times its
    height), if its letters and their ground are of clearly different levels, and if it has 3 to 12 letters,
    as far as they stand apart. So other short text counts as well. `threshold`, `margin` and `smallest` are
    those of `Text`. Raises `InvalidParameter`. Source: docs, "Text and other objects".

    >>> Plates().description
    'plates'
    """

    kind = PLATE
    noun, word, usual = "plate", "plates", MARGIN

    margin: Between = Between(0, 2, hint="0.25 adds a quarter on each side", default=MARGIN)

    def rows(self, photo: Photo) -> list[tuple[str, Rows]]:
        """Return the lines of a photo that stand like those of a plate."""
        found = lines(photo, float(self.threshold), self.smallest)
        return [(PLATE, np.array([row for row in found if _stands(row, photo)]).reshape(-1, 5))]


def _stands(row: Float[np.ndarray, " 5"], photo: Photo) -> bool:
    if not ASPECT[0] <= row[2] / row[3] <= ASPECT[1]:
        return False
    crop = photo.image[box_around(row, photo, Fraction(0)).slices]
    return like_plate(crop)


def like_plate(crop: UInt8[np.ndarray, "h w c"]) -> bool:
    """Return whether a box around a line of text has the contrast and the number of letters of a plate.

    >>> like_plate(np.full((40, 160, 3), 200, np.uint8))
    False
    """
    import cv2

    height, width = crop.shape[:2]
    large = resized(crop, HEIGHT, max(1, round(width * HEIGHT / height)))
    grey = cv2.cvtColor(large, cv2.COLOR_RGB2GRAY)
    _, light = cv2.threshold(grey, 0, 1, cv2.THRESH_BINARY | cv2.THRESH_OTSU)
    if light.all() or not light.any():
        return False
    if float(grey[light > 0].mean()) - float(grey[light == 0].mean()) < CONTRAST:
        return False
    if height < LEGIBLE or width < UPRIGHT * height:
        return True
    return any(LENGTH[0] <= _letters(ink) <= LENGTH[1] for ink in (light, 1 - light))


def _letters(ink: UInt8[np.ndarray, "h w"]) -> int:
    """Return how many parts of an image are as tall as letters, and no wider than that by far."""
    import cv2

    _, _, found, _ = cv2.connectedComponentsWithStats(ink)
    tall, wide = found[1:, cv2.CC_STAT_HEIGHT], found[1:, cv2.CC_STAT_WIDTH]
    return int(np.count_nonzero((tall >= TALL * HEIGHT) & (wide <= 1.5 * HEIGHT)))
