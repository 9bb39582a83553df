"""The search of a photo for faces: a detector runs on the shrunk photo, and on tiles of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Float, UInt8

from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.errors import RegionError
from dpveil.regions.detectors import Detector
from dpveil.regions.detectors.base import REMEDY
from dpveil.regions.detectors.base import suppress as suppress_overlaps
from dpveil.regions.tiling import Tiling, centred, join, pieces, plausible, resized, shrunk

Rows = Float[np.ndarray, "_ 5"]
"""Detections: left, top, width and height in pixels, and score."""


@dataclass(frozen=True)
class Detections:
    """What a detector sees in a photo, in its pixels.

    `inside` are faces inside other faces, as `join` has them. What is `doubtful` looks a little like a face:
    it scores less than the threshold, and its middle is on no face, nor on anything that scores better.
    """

    faces: Rows
    inside: Rows
    doubtful: Rows


class Search:
    """Runs a detector on photos, also in several threads at once; faces score at least `threshold`."""

    def __init__(self, detector: Detector, threshold: Fraction) -> None:
        self.detector, self.threshold = detector, float(threshold)
        least = detector.doubtful
        self.least = self.threshold if least is None else min(self.threshold, float(least))
        self._spare = [detector]

    def of(self, photo: Photo, *, long_side: int, tiling: Tiling) -> Detections:
        """Return what is seen in a photo that is shrunk to `long_side`, and in its tiles.

        Which faces these are does not depend on what is doubtful. Raises `RegionError` if the detector fails.
        """
        small = shrunk(photo.image, long_side)
        found, low = self._split(self._searched(small, Box(0, 0, photo.width, photo.height)))
        tiles = [self._tile(photo, found, *tile) for tile in tiling.tiles(photo.height, photo.width)]
        more, lower = self._split(np.concatenate([found[:0], *tiles]))
        faces, inside = join(found, more) if tiles else (found, found[:0])
        doubtful = _apart(np.concatenate([low, lower]), np.concatenate([faces, inside]))
        return Detections(faces, inside, doubtful)

    def _split(self, found: Rows) -> tuple[Rows, Rows]:
        """Return the detections that count as faces, and the others."""
        sure = found[:, 4] >= self.threshold
        return found[sure], found[~sure]

    def _tile(self, photo: Photo, known: Rows, part: Box, size: tuple[int, int], core: Box) -> Rows:
        """Return detections with centres in the core of a tile, without pieces of `known` ones."""
        found = self._searched(resized(photo.image[part.slices], *size), part)
        return np.asarray(found[centred(found, core) & ~pieces(found, known, part, photo)])

    def _searched(self, image: UInt8[np.ndarray, "h w 3"], part: Box) -> Rows:
        """Return the detections in `image`, a resized part of the photo, in pixels of the photo."""
        ratios = part.w / image.shape[1], part.h / image.shape[0]
        return np.asarray(self._run(image) * [*ratios, *ratios, 1] + [part.x, part.y, 0, 0, 0])

    def _run(self, image: UInt8[np.ndarray, "h w 3"]) -> Rows:
        """Return the detector's output, checked; any failure of it becomes a `RegionError`.

        Where only what is doubtful makes it fail, the faces are returned alone.
        """
        if self.least < self.threshold:
            with suppress(RegionError):
                return self._checked(image, self.least)
        return self._checked(image, self.threshold)

    def _checked(self, image: UInt8[np.ndarray, "h w 3"], threshold: float) -> Rows:
        try:
            with self.borrowed() as detector:
                found = np.asarray(detector(image, threshold), np.float64)
        except RegionError:
            raise
        except Exception as error:
            raise RegionError(
                f"the face detector {self.detector.name} failed ({type(error).__name__})", hint=REMEDY
            ) from error
        height, width = image.shape[:2]
        whole = found.ndim == 2 and found.shape[1] == 5 and bool(np.isfinite(found).all())
        if not whole or not all(plausible(row, width, height) for row in found):
            raise RegionError(
                "the face detector returned something that is not a face in this photo", hint=REMEDY
            )
        return found

    @contextmanager
    def borrowed(self) -> Iterator[Detector]:
        """Lend a detector to one thread, from a pool that grows to the number of concurrent threads."""
        try:
            detector = self._spare.pop()
        except IndexError:
            detector = self.detector.another()
        try:
            yield detector
        finally:
            self._spare.append(detector)


def _apart(doubtful: Rows, faces: Rows) -> Rows:
    """Return what is doubtful, the best first, but nothing with its middle on a face or on what is better."""
    taken = faces
    for row in suppress_overlaps(doubtful):
        away = np.abs(row[:2] + row[2:4] / 2 - taken[:, :2] - taken[:, 2:4] / 2)
        if not (away <= taken[:, 2:4] / 2).all(axis=1).any():
            taken = np.vstack([taken, row])
    return np.asarray(taken[len(faces) :])
