"""QR and bar codes, which are found by OpenCV, whether or not they can be read."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from dpveil.core.arrays import Float64, UInt8
from dpveil.core.numbers import to_json
from dpveil.core.origin import CODE
from dpveil.core.parameters import Between
from dpveil.core.photo import Photo
from dpveil.regions.things import Rows, Things, merge_boxes
from dpveil.regions.tiling import resize_rgb

MARGIN: Final = Fraction(1, 10)
"""Default margin: codes have a quiet zone around them."""
LONG_SIDES: Final = (960, 1920, 3840)
"""Longer sides, in pixels, of the photos that are searched: bar codes have to be neither small nor large."""
ENLARGED: Final = 2.0
"""Photos are enlarged at most so many times."""
JOINED: Final = 0.5
"""Share of a box that is in another one, from which both are one code."""
LEAST: Final = 8.0
"""Shorter side of a code, in pixels of the searched photo, below which it is taken for texture."""


@dataclass(frozen=True, kw_only=True)
class Codes(Things):
    """One upright box around every QR code and bar code; codes that are missed stay in the clear.

    Nothing is read. Each box is extended by `margin`, 0 to 2, times its shorter side. Raises
    `InvalidParameter`. Source: docs, "Text and other objects"; OpenCV, `QRCodeDetectorAruco` and
    `barcode.BarcodeDetector`.

    >>> Codes(margin=0.5).description
    'codes margin=0.5'
    """

    kind = CODE
    noun = "code"

    margin: Between = Between(0, 2, hint="0.1 adds a tenth on each side", default=MARGIN)

    @property
    def description(self) -> str:
        """Return "codes", and the margin if it is not the default."""
        return "codes" if self.margin == MARGIN else f"codes margin={to_json(self.margin)}"

    @property
    def box_margin(self) -> Fraction:
        """The margin."""
        return self.margin

    def rows(self, photo: Photo) -> list[tuple[str, Rows]]:
        """Return the codes of a photo."""
        longest = max(photo.width, photo.height)
        sides = sorted({min(side, round(ENLARGED * longest)) for side in LONG_SIDES})
        found = [_search_scale(photo, side / longest) for side in sides]
        return [(CODE, merge_boxes(np.concatenate(found), JOINED))]


def _search_scale(photo: Photo, ratio: float) -> Rows:
    height, width = (max(1, round(side * ratio)) for side in photo.image.shape[:2])
    corners = _corners(resize_rgb(photo.image, height, width))
    low, high = corners.min(axis=1, initial=np.inf), corners.max(axis=1, initial=-np.inf)
    large = (high - low).min(axis=1, initial=np.inf) >= LEAST
    scale = np.array([photo.width / width, photo.height / height])
    low, high = low[large] * scale, high[large] * scale
    return np.concatenate([low, high - low, np.ones((len(low), 1))], axis=1)


def _corners(image: UInt8[np.ndarray, "h w 3"]) -> Float64[np.ndarray, "n 4 2"]:
    import cv2

    found = [np.zeros((0, 4, 2))]
    for detector in (cv2.QRCodeDetectorAruco(), cv2.barcode.BarcodeDetector()):
        seen, corners = detector.detectMulti(image)
        if seen:
            found.append(np.asarray(corners, np.float64).reshape(-1, 4, 2))
    return np.concatenate(found)
