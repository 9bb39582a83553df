"""How finely a photo is searched: shrunk, and beside that in tiles at a finer scale."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, UInt8

from dpveil.core.region import Box
from dpveil.regions.detectors.suppress import OVERLAP, overlaps

PIXELS: Final = 16_000_000
"""That tiles may hold together where nobody says how small a face may be: all of 12 megapixels, or 100
megapixels at 0.4 of their scale."""
SIDE: Final = 1088
"""Largest side of a tile in the search: CenterFace takes 0.3 GB for one, whatever the photo."""
MULTIPLE: Final = 32
GAIN: Final = 1.25
"""How much smaller the faces have to be that tiles show, for them to be searched without being asked to."""
ENLARGED: Final = 2.0
"""Largest scale: beyond it nothing is gained."""
COMMON: Final = 1.5
"""What neighbouring tiles share, in heights of the smallest face that the shrunk photo shows."""
POINTS: Final = np.array(
    [(math.cos(a), math.sin(a)) for a in np.linspace(0, 2 * math.pi, 72, endpoint=False)]
)
BETWEEN: Final = math.cos(math.pi / len(POINTS))
"""Points of the unit circle, and how near the chords between them come to its centre."""
LARGEST: Final = 1 << 31
"""Pixels along a box: what is larger would overflow."""
WITHIN: Final = 0.1
"""How far one box may reach beyond another, in parts of its sides, and say nothing new."""


@dataclass(frozen=True)
class Sight:
    """How one photo is searched.

    `smallest` is the height in its pixels below which no face is looked for, `scale` that of the tiles (None
    without any), and `common` how many of its pixels neighbouring tiles share.
    """

    smallest: int
    scale: float | None = None
    common: int = 0

    @classmethod
    def of(cls, height: int, width: int, *, long_side: int, seen: int, smallest: int | None) -> Sight:
        """Return how a photo of this size is searched, by a detector that needs faces of `seen` pixels.

        The photo is shrunk to `long_side`. Tiles follow only where they show faces that the shrunk photo does
        not: of `smallest` pixels, or with None as small as `PIXELS` allow.

        >>> Sight.of(3000, 4000, long_side=1920, seen=24, smallest=None)
        Sight(smallest=24, scale=1.0, common=75)
        """
        coarse = math.ceil(seen * max(1.0, max(height, width) / long_side))
        if smallest is None:
            scale = min(1.0, math.sqrt(PIXELS / (height * width)))
        else:
            scale = min(ENLARGED, seen / smallest)
        fine = math.ceil(seen / scale)
        if fine * (GAIN if smallest is None else 1) >= coarse:
            return cls(coarse)
        return cls(fine, scale, math.ceil(COMMON * coarse))

    def tiles(self, height: int, width: int) -> Iterator[tuple[Box, tuple[int, int], Box]]:
        """Yield tiles: the part of the photo, its size (height, width) in the search, and its core.

        All have one size, as nearly square as the photo lets them be. A core reaches from the middle of what
        is common with one neighbour to that with the next, and a quarter of it beyond. So every face that the
        shrunk photo does not show lies wholly in a tile whose core has its centre, wherever that is guessed.
        """
        if self.scale is None:
            return
        most = max(SIDE / self.scale, 2.0 * self.common)
        counts = [max(1, math.ceil((n - self.common) / (most - self.common))) for n in (height, width)]
        even = [(n + (k - 1) * self.common) / k for n, k in zip((height, width), counts, strict=True)]
        side = math.ceil(max(even) * self.scale / MULTIPLE) * MULTIPLE / self.scale
        (rows, down), (columns, across) = (
            _spread(n, round(side), k) for n, k in zip((height, width), counts, strict=True)
        )
        size = max(1, round(down * self.scale)), max(1, round(across * self.scale))
        for top, first, last in rows:
            for left, start, stop in columns:
                yield Box(left, top, across, down), size, Box(start, first, stop - start, last - first)


def _spread(length: int, side: int, count: int) -> tuple[list[tuple[int, int, int]], int]:
    """Return start, and start and stop of the core, of `count` parts of a length; and their one size."""
    side = min(side, length)
    starts = [round(i * (length - side) / max(1, count - 1)) for i in range(count)]
    parts = []
    for i, start in enumerate(starts):
        before = starts[i - 1] + side - start if i else 0
        after = start + side - starts[i + 1] if i + 1 < count else 0
        first, last = start + before // 4, start + side - after // 4
        parts.append((start, first if i else -length, last if i + 1 < count else 2 * length))
    return parts, side


def centred(found: Float[np.ndarray, "n 5"], core: Box) -> Bool[np.ndarray, " n"]:
    """Return which faces have their centre in `core`."""
    x, y = found[:, 0] + found[:, 2] / 2, found[:, 1] + found[:, 3] / 2
    return np.asarray((core.x <= x) & (x < core.x + core.w) & (core.y <= y) & (y < core.y + core.h))


def join(
    first: Float[np.ndarray, "n 5"], more: Float[np.ndarray, "m 5"]
) -> tuple[Float[np.ndarray, "k 5"], Float[np.ndarray, "i 5"]]:
    """Return the rows (left, top, width, height, score) of `first` with those of `more`, and those left out.

    A box of `more` that overlaps one by more than `OVERLAP` of their union is taken for the same face, unless
    it reaches beyond by at most `WITHIN`: the ellipse in that face's box then holds the ellipses of both. All
    others are added, best first, but for those that lie in the ellipse of another box: whoever replaces that
    face replaces them, too. So rows of `first` stay where the tiles say nothing new.

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
            if not _within(row, kept[best]):
                rows[best] = _around(kept[best], row)
        else:
            (inside if _inside_ellipse(row, kept).any() else rows).append(np.array(row, np.float64))
    return np.array(rows).reshape(-1, 5), np.array(inside).reshape(-1, 5)


def _within(row: Float[np.ndarray, " 5"], other: Float[np.ndarray, " 5"]) -> bool:
    spare = WITHIN * other[2:4]
    before = row[:2] >= other[:2] - spare
    after = row[:2] + row[2:4] <= other[:2] + other[2:4] + spare
    return bool(before.all() and after.all())


def _around(one: Float[np.ndarray, " 5"], two: Float[np.ndarray, " 5"]) -> Float[np.ndarray, " 5"]:
    """Return the box around both, enlarged about its middle until the ellipse in it holds those in both."""
    start = np.minimum(one[:2], two[:2])
    size = np.maximum(one[:2] + one[2:4], two[:2] + two[2:4]) - start
    edges = [row[:2] + row[2:4] * (1 + POINTS) / 2 for row in (one, two)]
    far = np.hypot(*((np.concatenate(edges) - start - size / 2) / (size / 2)).T).max()
    more = max(0.0, far / BETWEEN - 1) * size
    return np.array([*(start - more / 2), *(size + more), max(one[4], two[4])])


def _inside_ellipse(row: Float[np.ndarray, " 5"], many: Float[np.ndarray, "n 5"]) -> Bool[np.ndarray, " n"]:
    """Return whether the ellipses that the boxes `many` hold, hold all corners of one box."""
    middle = row[:2] + row[2:4] / 2
    far = np.abs(middle - many[:, :2] - many[:, 2:4] / 2) + row[2:4] / 2
    return np.asarray(((far / (many[:, 2:4] / 2)) ** 2).sum(axis=1) <= 1)


def plausible(face: Float[np.ndarray, " 5"], width: int, height: int) -> bool:
    """Whether a box has a positive size and a part in a picture of width × height, and its score is one."""
    x, y, w, h, score = map(float, face)
    if max(w, h) > LARGEST:
        return False
    return w > 0 and h > 0 and x < width and y < height and x + w > 0 and y + h > 0 and 0 <= score <= 1


def shrunk(image: UInt8[np.ndarray, "H W c"], long_side: int) -> UInt8[np.ndarray, "h w 3"]:
    """Return the picture in three channels, its long side at most `long_side` pixels, its shape kept."""
    ratio = min(1, long_side / max(image.shape[:2]))
    height, width = (max(1, round(side * ratio)) for side in image.shape[:2])
    return resized(image, height, width)


def resized(image: UInt8[np.ndarray, "H W c"], height: int, width: int) -> UInt8[np.ndarray, "h w 3"]:
    """Return the picture in three channels and at this size."""
    import cv2

    if (height, width) != image.shape[:2]:
        how = cv2.INTER_AREA if height < image.shape[0] else cv2.INTER_CUBIC
        image = cv2.resize(image, (width, height), interpolation=how)
    image = image.reshape(*image.shape[:2], -1)  # OpenCV drops the axis of a single channel
    return np.ascontiguousarray(np.broadcast_to(image, (*image.shape[:2], 3)))
