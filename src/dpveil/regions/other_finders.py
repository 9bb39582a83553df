"""Finders of what is no face: boxes of kinds, found once for each photo; among them QR and bar codes."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final
from weakref import WeakKeyDictionary

import numpy as np

from dpveil.core.array_types import Float, Float64, UInt8
from dpveil.core.certificate import MOST_REGIONS
from dpveil.core.parameters import Between
from dpveil.core.photo import Photo
from dpveil.core.rationals import to_json
from dpveil.core.region import Region
from dpveil.core.region_origin import CODE, Origin
from dpveil.errors import NoRegion, RegionError
from dpveil.opencv import cv2
from dpveil.regions.finder import Finder, Order, reading_order
from dpveil.regions.given_regions import box_around
from dpveil.regions.tiling import resize_rgb

NOTHING_FOUND_HINT: Final = (
    "give a box with {regions}; {if_none} copy releases it as it is, {method} fill with {regions} whole hides"
    " all of it"
)
"""The remedy where nothing is found."""
ARGUMENTS: Final = {name: name for name in ("regions", "if_none", "method")}
"""The arguments that NOTHING_FOUND_HINT names."""
Rows = Float[np.ndarray, "n 5"]
"""Detections: left, top, width and height in pixels of the photo, and a score."""
CACHE: Final[WeakKeyDictionary[Photo, dict[str, tuple[Region, ...]]]] = WeakKeyDictionary()
"""What was found in photos in memory, by the description of the finder."""


class NonFaceFinder(Finder):
    """A finder of what is no face: methods that replace faces cover what it finds with grey.

    Finding is a function of the photo's pixels, and certificates say so. It is done once for each photo.
    """

    noun: ClassVar[str]
    """What is missing where nothing is found, as in "no text was found"."""
    margin: Any
    """The margin on each side of a box, relative to its shorter side."""

    @abstractmethod
    def rows(self, photo: Photo) -> list[tuple[str, Rows]]:
        """Return what is seen in a photo by the name of its kind (`Origin.kind`).

        Boxes may be partly outside of the photo. Raises `RegionError` if the search fails.
        """

    def __call__(self, photo: Photo) -> list[Region]:
        """Return what is found, numbered by kind; raises `NoRegion` if nothing is, and `RegionError`."""
        found = self.find(photo)
        if not found:
            raise NoRegion(self.absence, hint=NOTHING_FOUND_HINT, arguments=ARGUMENTS)
        return list(found)

    @property
    def absence(self) -> str:
        return f"no {self.noun} was found"

    def in_order(self, photo: Photo, order: Order) -> list[Region]:
        """Return the same in reading order: a release shows the whole boxes, so their order tells no more."""
        return self(photo)

    def find(self, photo: Photo) -> tuple[Region, ...]:
        own = CACHE.setdefault(photo, {})
        if self.description not in own:
            own[self.description] = tuple(self._regions(photo))
        return own[self.description]

    def _regions(self, photo: Photo) -> list[Region]:
        kinds = self.rows(photo)
        if sum(len(rows) for _, rows in kinds) > MOST_REGIONS:
            hint = "protect larger boxes around it, or the whole photo"
            raise RegionError(f"more than {MOST_REGIONS:,} places of {self.noun} were found", hint=hint)
        regions = []
        for kind, rows in kinds:
            for number, n in enumerate(reading_order(rows), 1):
                aside = float(self.margin) * rows[n, 2:4].min()
                box = box_around(rows[n, :4] + np.array([-1, -1, 2, 2]) * aside, photo, Fraction(0))
                regions.append(Region(box, origin=Origin(kind, self.description, number=number, found=True)))
        return regions


def merge_boxes(rows: Rows, share: float) -> Rows:
    """Return the rows with those joined of which at least a `share` of the smaller box is in the larger one.

    What is joined becomes the box around both, with the better score, so that no pixel of a box is lost.

    >>> merge_boxes(np.array([[0, 0, 10, 10, 0.5], [1, 1, 10, 9, 0.9], [30, 0, 10, 10, 0.4]]), 0.7).tolist()
    [[0.0, 0.0, 11.0, 10.0, 0.9], [30.0, 0.0, 10.0, 10.0, 0.4]]
    """
    kept = np.zeros((0, 5))
    for row in rows[np.argsort(-rows[:, 2] * rows[:, 3], kind="stable")]:
        start, stop = row[:2], row[:2] + row[2:4]
        common = np.minimum(stop, kept[:, :2] + kept[:, 2:4]) - np.maximum(start, kept[:, :2])
        inside = np.prod(np.maximum(common, 0), axis=1) >= share * row[2] * row[3]
        if not inside.any():
            kept = np.vstack([kept, row])
            continue
        other = kept[first := int(inside.argmax())]
        left = np.minimum(start, other[:2])
        size = np.maximum(stop, other[:2] + other[2:4]) - left
        kept[first] = [*left, *size, max(row[4], other[4])]
    return kept


MARGIN: Final = Fraction(1, 10)  # default margin: codes have a quiet zone around them
LONG_SIDES: Final = (960, 1920, 3840)
"""Longer sides, in pixels, of the photos that are searched: bar codes have to be neither small nor large."""
ENLARGED: Final = 2.0  # photos are enlarged at most so many times
JOINED: Final = 0.5  # share of a box that is in another one, from which both are one code
LEAST_SIDE: Final = 8.0
"""Shorter side of a code, in pixels of the searched photo, below which it is taken for texture."""


@dataclass(frozen=True, kw_only=True)
class Codes(NonFaceFinder):
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
        return "codes" if self.margin == MARGIN else f"codes margin={to_json(self.margin)}"

    def rows(self, photo: Photo) -> list[tuple[str, Rows]]:
        longest = max(photo.width, photo.height)
        sides = sorted({min(side, round(ENLARGED * longest)) for side in LONG_SIDES})
        found = [_search_scale(photo, side / longest) for side in sides]
        return [(CODE, merge_boxes(np.concatenate(found), JOINED))]


def _search_scale(photo: Photo, ratio: float) -> Rows:
    height, width = (max(1, round(side * ratio)) for side in photo.image.shape[:2])
    corners = _corners(resize_rgb(photo.image, height, width))
    low, high = corners.min(axis=1, initial=np.inf), corners.max(axis=1, initial=-np.inf)
    large = (high - low).min(axis=1, initial=np.inf) >= LEAST_SIDE
    scale = np.array([photo.width / width, photo.height / height])
    low, high = low[large] * scale, high[large] * scale
    return np.concatenate([low, high - low, np.ones((len(low), 1))], axis=1)


def _corners(image: UInt8[np.ndarray, "h w 3"]) -> Float64[np.ndarray, "n 4 2"]:
    found = [np.zeros((0, 4, 2))]
    for detector in (cv2.QRCodeDetectorAruco(), cv2.barcode.BarcodeDetector()):
        seen, corners = detector.detectMulti(image)
        if seen:
            found.append(np.asarray(corners, np.float64).reshape(-1, 4, 2))
    return np.concatenate(found)
