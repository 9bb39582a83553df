"""Scales of the search for faces: the downscaled photo, and tiles at a finer scale."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpveil.core.array_types import Bool, Float, UInt8
from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.errors import RegionError
from dpveil.opencv import cv2

TILE_PIXELS: Final = 16_000_000
"""Default limit on the pixels of all tiles: 12 megapixels at full scale, or 100 megapixels at scale 0.4."""
TILE_SIDE: Final = 1088
"""Longest side of a tile as the detector sees it, in pixels: CenterFace takes 0.3 GB for such an image."""
MULTIPLE: Final = 32  # sides of tiles are multiples of this, in pixels as the detector sees them
GAIN: Final = 1.25
"""By default there are tiles only if they lower the smallest detectable face by at least this factor."""
ENLARGED: Final = 2.0  # largest scale of tiles; more enlargement does not help
TILE_OVERLAP: Final = 1.5
"""Overlap of neighbouring tiles, in heights of the smallest face that the downscaled photo shows."""
POINTS: Final = np.array(
    [(math.cos(a), math.sin(a)) for a in np.linspace(0, 2 * math.pi, 72, endpoint=False)]
)
"""Points of the unit circle."""
BETWEEN: Final = math.cos(math.pi / len(POINTS))
"""Distance of the chords between neighbouring POINTS from the centre."""
LARGEST_SIDE: Final = 1 << 31  # longest side of a detected box in pixels; larger ones would overflow
SPARE: Final = 0.25  # share of its area by which a piece of a face may lie outside the face's box
PIECE: Final = 0.5  # a piece has less than this share of the area of the face's box
WITHIN: Final = 0.1
"""Share of its sides by which a box may be exceeded by another detection of the same face and still stand."""


@dataclass(frozen=True)
class Tiling:
    """The tiles in which one photo is searched, besides the downscaled photo.

    `smallest` is the least height of a face that is searched for and `overlap` that of neighbouring tiles,
    both in pixels of the photo; `scale` is that of the tiles, or None without tiles.
    """

    smallest: int
    scale: float | None = None
    overlap: int = 0

    @classmethod
    def of(cls, height: int, width: int, *, long_side: int, seen: int, smallest: int | None) -> Tiling:
        """Return the tiling of a photo of this size for a detector that needs faces of `seen` pixels.

        The photo itself is downscaled to `long_side`. There are tiles only if they show smaller faces: of
        `smallest` pixels, or if that is None as small as `TILE_PIXELS` allows.

        >>> Tiling.of(3000, 4000, long_side=1920, seen=24, smallest=None)
        Tiling(smallest=24, scale=1.0, overlap=75)
        """
        coarse = math.ceil(seen * max(1.0, max(height, width) / long_side))
        if smallest is None:
            scale = min(1.0, math.sqrt(TILE_PIXELS / (height * width)))
        else:
            scale = min(ENLARGED, seen / smallest)
        fine = math.ceil(seen / scale)
        if fine * (GAIN if smallest is None else 1) >= coarse:
            return cls(coarse)
        return cls(fine, scale, math.ceil(TILE_OVERLAP * coarse))

    def tiles(self, height: int, width: int) -> Iterator[tuple[Box, tuple[int, int], Box]]:
        """Yield tiles: the part of the photo, its size (height, width) for the detector, and its core.

        All tiles have one size and are as nearly square as the photo allows. A core leaves out the outer
        quarter of each overlap with a neighbour, so that cores overlap too. Every face too small for the
        downscaled photo therefore lies wholly in a tile whose core has its centre, even if the detector's
        estimate of the centre is off by up to a quarter of the overlap.
        """
        if self.scale is None:
            return
        most = max(TILE_SIDE / self.scale, 2.0 * self.overlap)
        counts = [max(1, math.ceil((n - self.overlap) / (most - self.overlap))) for n in (height, width)]
        even = [(n + (k - 1) * self.overlap) / k for n, k in zip((height, width), counts, strict=True)]
        side = math.ceil(max(even) * self.scale / MULTIPLE) * MULTIPLE / self.scale
        (rows, down), (columns, across) = (
            _spread(n, round(side), k) for n, k in zip((height, width), counts, strict=True)
        )
        size = max(1, round(down * self.scale)), max(1, round(across * self.scale))
        for top, first, last in rows:
            for left, start, stop in columns:
                yield Box(left, top, across, down), size, Box(start, first, stop - start, last - first)


def _spread(length: int, side: int, count: int) -> tuple[list[tuple[int, int, int]], int]:
    """Return (start, start of core, stop of core) of `count` equal parts of `length`, and their size."""
    side = min(side, length)
    starts = [round(i * (length - side) / max(1, count - 1)) for i in range(count)]
    parts = []
    for i, start in enumerate(starts):
        before = starts[i - 1] + side - start if i else 0
        after = start + side - starts[i + 1] if i + 1 < count else 0
        first, last = start + before // 4, start + side - after // 4
        parts.append((start, first if i else -length, last if i + 1 < count else 2 * length))
    return parts, side


OVERLAP: Final = 0.3  # intersection over union above which two boxes are taken for the same face


def suppress(found: Float[np.ndarray, "n 5"], overlap: float = OVERLAP) -> Float[np.ndarray, "m 5"]:
    """Return the rows (left, top, width, height, score) left by greedy non-maximum suppression, best first.

    A box is dropped if its intersection over union with a kept one of at least its score is above `overlap`.
    Equal scores keep their order. Raises `RegionError` for non-finite numbers and non-positive sides. No kept
    library does this: OpenCV's NMSBoxes compares in float32, and drops what is exactly at some limits.

    >>> suppress(np.array([[0, 0, 10, 10, 0.5], [1, 0, 10, 10, 0.9], [20, 0, 10, 10, 0.4]]))[:, 4]
    array([0.9, 0.4])
    """
    if not (np.isfinite(found).all() and (found[:, 2:4] > 0).all()):
        raise RegionError(
            "the face detector returned something that is not a box",
            hint="choose another detector, or protect the whole photo",
        )
    rest = found[np.argsort(-found[:, 4], kind="stable")]
    kept = []
    while len(rest):
        kept.append(rest[0])
        rest = rest[1:][overlaps(rest[0], rest[1:]) <= overlap]
    return np.array(kept, dtype=found.dtype).reshape(-1, 5)


def overlaps(one: Float[np.ndarray, " 5"], many: Float[np.ndarray, "n 5"]) -> Float[np.ndarray, " n"]:
    """Return the intersection over union of one box with each of many."""
    start = np.maximum(one[:2], many[:, :2])
    stop = np.minimum(one[:2] + one[2:4], many[:, :2] + many[:, 2:4])
    shared = np.prod(np.maximum(stop - start, 0), axis=1)
    areas = one[2] * one[3] + many[:, 2] * many[:, 3]
    return np.asarray(shared / (areas - shared))


def has_centre_in(found: Float[np.ndarray, "n 5"], core: Box) -> Bool[np.ndarray, " n"]:
    """Return whether the centre of each box is in `core`."""
    x, y = found[:, 0] + found[:, 2] / 2, found[:, 1] + found[:, 3] / 2
    return np.asarray((core.x <= x) & (x < core.x + core.w) & (core.y <= y) & (y < core.y + core.h))


def pieces(
    found: Float[np.ndarray, "n 5"], known: Float[np.ndarray, "k 5"], part: Box, photo: Photo
) -> Bool[np.ndarray, " n"]:
    """Return which boxes found in a tile are pieces of a known face that the tile cuts.

    Such a box reaches beyond the tile, as the known one does, into which it fits (up to `SPARE` of its area);
    it is less than `PIECE` of that in area. Whole faces within a tile are never left out.
    """
    middle = (part.x, part.y), (part.x + part.w, part.y + part.h)
    inner = np.array(middle[0]) > 0, np.array(middle[1]) < (photo.width, photo.height)

    def beyond(rows: Float[np.ndarray, "m 5"]) -> Bool[np.ndarray, "m 4"]:
        before, after = rows[:, :2] < middle[0], rows[:, :2] + rows[:, 2:4] > middle[1]
        return np.concatenate([before & inner[0], after & inner[1]], axis=1)

    out = np.zeros(len(found), bool)
    for n, (row, ways) in enumerate(zip(found, beyond(found), strict=True)):
        start = np.maximum(row[:2], known[:, :2])
        end = np.minimum(row[:2] + row[2:4], known[:, :2] + known[:, 2:4])
        shared = np.maximum(end - start, 0).prod(axis=1)
        area, areas = row[2:4].prod(), known[:, 2:4].prod(axis=1)
        small = (shared >= (1 - SPARE) * area) & (area < PIECE * areas)
        out[n] = (small & (beyond(known) & ways).any(axis=1)).any()
    return out


def join(
    first: Float[np.ndarray, "n 5"], more: Float[np.ndarray, "m 5"]
) -> tuple[Float[np.ndarray, "k 5"], Float[np.ndarray, "i 5"]]:
    """Return the detections `first` merged with `more`, and those of `more` that lie inside another face.

    Rows are left, top, width, height and score. `more` is taken in order of falling score. A box whose
    intersection over union with an earlier one is above `OVERLAP` is the same face: if it exceeds that box by
    more than `WITHIN`, the box is enlarged until its inscribed ellipse holds those of both. A box inside the
    inscribed ellipse of another is left out, as it is replaced with that face. All others are added.

    >>> import numpy as np
    >>> one = np.array([[0, 0, 10, 10, 0.5]])
    >>> more = np.array([[1, 0, 10, 10, 0.9], [3, 0, 12, 10, 0.9], [40, 0, 5, 5, 0.4]])
    >>> join(one, more)[0].round(1).tolist()
    [[-0.7, -0.5, 16.4, 11.0, 0.9], [40.0, 0.0, 5.0, 5.0, 0.4]]
    """
    rows = [np.array(row, np.float64) for row in first]
    inside: list[np.ndarray] = []
    for row in more[np.argsort(-more[:, 4], kind="stable")]:
        kept = np.array(rows).reshape(-1, 5)
        alike = overlaps(row, kept)
        best = int(alike.argmax()) if len(alike) else -1
        if best >= 0 and alike[best] > OVERLAP:
            spare, other = WITHIN * kept[best, 2:4], kept[best]
            before = row[:2] >= other[:2] - spare
            after = row[:2] + row[2:4] <= other[:2] + other[2:4] + spare
            if not (before.all() and after.all()):
                rows[best] = _joint_box(other, row)
        else:
            (inside if inside_ellipse(row, kept).any() else rows).append(np.array(row, np.float64))
    return np.array(rows).reshape(-1, 5), np.array(inside).reshape(-1, 5)


def _joint_box(one: Float[np.ndarray, " 5"], two: Float[np.ndarray, " 5"]) -> Float[np.ndarray, " 5"]:
    """Return the bounding box of both, enlarged until its inscribed ellipse holds those of both."""
    start = np.minimum(one[:2], two[:2])
    size = np.maximum(one[:2] + one[2:4], two[:2] + two[2:4]) - start
    edges = [row[:2] + row[2:4] * (1 + POINTS) / 2 for row in (one, two)]
    far = np.hypot(*((np.concatenate(edges) - start - size / 2) / (size / 2)).T).max()
    more = max(0.0, far / BETWEEN - 1) * size
    return np.array([*(start - more / 2), *(size + more), max(one[4], two[4])])


def inside_ellipse(row: Float[np.ndarray, " 5"], many: Float[np.ndarray, "n 5"]) -> Bool[np.ndarray, " n"]:
    """Return whether the inscribed ellipse of each of `many` contains the whole box `row`."""
    middle = row[:2] + row[2:4] / 2
    far = np.abs(middle - many[:, :2] - many[:, 2:4] / 2) + row[2:4] / 2
    return np.asarray(((far / (many[:, 2:4] / 2)) ** 2).sum(axis=1) <= 1)


def plausible(face: Float[np.ndarray, " 5"], width: int, height: int) -> bool:
    """Whether a box has a plausible size, overlaps an image of width × height, and scores from 0 to 1."""
    x, y, w, h, score = map(float, face)
    if max(w, h) > LARGEST_SIDE:
        return False
    return w > 0 and h > 0 and x < width and y < height and x + w > 0 and y + h > 0 and 0 <= score <= 1


def downscale(image: UInt8[np.ndarray, "H W c"], long_side: int) -> UInt8[np.ndarray, "h w 3"]:
    """Return the image in three channels, downscaled to a longer side of at most `long_side` pixels."""
    ratio = min(1, long_side / max(image.shape[:2]))
    height, width = (max(1, round(side * ratio)) for side in image.shape[:2])
    return resize_rgb(image, height, width)


def resize_rgb(image: UInt8[np.ndarray, "H W c"], height: int, width: int) -> UInt8[np.ndarray, "h w 3"]:
    """Return the image in three channels, resized to this size in pixels."""
    if (height, width) != image.shape[:2]:
        how = cv2.INTER_AREA if height < image.shape[0] else cv2.INTER_CUBIC
        image = cv2.resize(image, (width, height), interpolation=how)
    image = image.reshape(*image.shape[:2], -1)  # OpenCV drops the axis of a single channel
    return np.ascontiguousarray(np.broadcast_to(image, (*image.shape[:2], 3)))
