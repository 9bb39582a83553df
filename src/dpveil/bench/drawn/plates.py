"""Licence plates that are drawn: the text is the identity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import cv2
import numpy as np

from dpveil.bench.drawn.base import DrawnItem, levels, shares
from dpveil.core.arrays import Float32
from dpveil.core.photo import Photo

SIZE: Final = (80, 200)
"""Rows and columns of a photo."""
LETTERS: Final = "ABCDEFGHJKLMNPRSTUVWXYZ"
"""Letters that are not taken for digits."""
PATTERN: Final = "LL DD LLL"
"""Letters and digits of a plate."""
PLATE: Final = (52, 240)
"""Rows and columns of the plate before it is seen at an angle."""
SHIFT: Final = 0.09
"""Largest shift of a corner, in sides of the photo."""
GRAIN: Final = 6.0


@dataclass(frozen=True)
class DrawnPlate(DrawnItem):
    """A photo of a licence plate: its text stays, and angle, light, dirt and focus vary."""

    kind: ClassVar[str] = "drawn-plates"
    usual: ClassVar[tuple[int, int]] = (40, 5)
    subject: ClassVar[str] = "plates"
    summary: ClassVar[str] = "licence plates; angle, light, dirt and focus vary"

    @property
    def text(self) -> str:
        """The text on the plate."""
        drawn = iter(shares(self.own, len(PATTERN)))
        digit = {"L": LETTERS, "D": "0123456789"}
        return "".join(
            " " if one == " " else digit[one][int(next(drawn) * len(digit[one]))] for one in PATTERN
        )

    def read(self) -> Photo:
        """Return the photo, uint8 sRGB of `SIZE`."""
        bits = self.moment
        moved, (bright, side, focus, dirt, paint) = shares(bits, 8).reshape(4, 2), shares(bits, 5)
        height, width = SIZE
        inner = np.array([[0.06, 0.2], [0.94, 0.2], [0.94, 0.8], [0.06, 0.8]])
        to = (inner + SHIFT * (2 * moved - 1)) * [width, height]
        rows, columns = PLATE
        corners = np.array([[0, 0], [columns, 0], [columns, rows], [0, rows]], np.float32)
        view = cv2.getPerspectiveTransform(corners, to.astype(np.float32))
        body = np.array([70, 74, 82]) + 90 * (paint - 0.3) * np.array([0.9, 1.0, 1.1])
        image = np.broadcast_to(body, (*SIZE, 3)).astype(np.float32)
        plate = face(self.text)
        seen = cv2.warpPerspective(plate, view, (width, height), flags=cv2.INTER_AREA)
        there = cv2.warpPerspective(np.ones(PLATE, np.float32), view, (width, height))[..., None]
        image = image * (1 - there) + seen * there
        specks = cv2.resize(shares(bits, 200).reshape(10, 20), (width, height), interpolation=cv2.INTER_CUBIC)
        image = image * (1 - 0.35 * dirt * np.clip(specks - 0.6, 0, 1)[..., None] / 0.4)
        image = cv2.GaussianBlur(image, (0, 0), 0.4 + 0.9 * focus)
        across = np.linspace(-1, 1, width)[None, :, None]
        lit = image * (0.6 + 0.5 * bright) * (1 + 0.2 * (2 * side - 1) * across)
        return levels(np.asarray(lit, np.float64), bits, GRAIN)


def face(text: str) -> Float32[np.ndarray, "52 240 3"]:
    """Return a plate with a text, seen from ahead."""
    rows, columns = PLATE
    plate = np.full((rows, columns, 3), 236, np.uint8)
    cv2.rectangle(plate, (0, 0), (columns - 1, rows - 1), (40, 40, 40), 3)
    cv2.rectangle(plate, (3, 3), (22, rows - 4), (28, 60, 150), -1)
    step = (columns - 34) / len(text)
    for place, letter in enumerate(text):
        (wide, high), _ = cv2.getTextSize(letter, cv2.FONT_HERSHEY_SIMPLEX, 1.15, 3)
        at = round(28 + step * (place + 0.5) - wide / 2), (rows + high) // 2
        cv2.putText(plate, letter, at, cv2.FONT_HERSHEY_SIMPLEX, 1.15, (24, 24, 28), 3, cv2.LINE_AA)
    return np.asarray(plate, np.float32)
