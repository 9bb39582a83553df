"""Alignment: a similarity transform between a photo and a canonical crop, exact in both directions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpveil.core.array_types import Float64, UInt8
from dpveil.core.parameters import check_count
from dpveil.core.region import Box
from dpveil.errors import InvalidParameter, RegionError
from dpveil.opencv import cv2

FIVE: Final = ((0.7590, 0.3010), (0.6071, 0.3091), (0.2264, 0.2999), (0.3787, 0.3087), (0.4927, 0.5916))
"""Positions (x, y) of dlib's five landmarks in a crop of UTKFace, in units of its side (means over 986
crops): outer and inner corner of the eye on the right, the same of the eye on the left, and the base of the
nose. The eyes' centres are (0.3025, 0.3043) and (0.6830, 0.3051)."""
BLUR: Final = 0.5
"""Standard deviation of the Gaussian blur before downscaling by a factor s, divided by √(s² - 1), in
pixels."""
LARGEST_SCALE: Final = 1 << 20  # largest scale of a similarity; the smallest is its inverse
READ: Final = 4  # pixels around a position that interpolation by cubics reads, and one more
SMALLEST: Final = 64  # least shorter side of a halved photo, in pixels
Points = Float64[np.ndarray, "n 2"]
"""Positions (x, y)."""


@dataclass(frozen=True)
class Frame:
    """A canonical crop: `size` × `size` pixels with the face placed as in UTKFace, and a margin around it.

    `margin` is added on each side, in units of UTKFace's crop: 0 is that crop, which cuts off hair and ears,
    0.35 includes ears, most hair and the neck. Raises `InvalidParameter` for sizes outside 16 to 4096 and
    margins outside 0 to 2.

    >>> Frame(size=128).points().round().astype(int).tolist()
    [[97, 38], [77, 39], [28, 38], [48, 39], [63, 75]]
    """

    size: int = 128
    margin: float = 0.0

    def __post_init__(self) -> None:
        check_count(self.size, "size")
        if not 16 <= self.size <= 4096:
            raise InvalidParameter("size", self.size, "is out of range", hint="16 to 4096 pixels")
        if not 0 <= self.margin <= 2:
            raise InvalidParameter("margin", self.margin, "is not between 0 and 2", hint="such as 0.35")

    @property
    def unit(self) -> float:
        """The side of UTKFace's crop, in pixels of this frame."""
        return self.size / (1 + 2 * self.margin)

    def pixels(self, parts: Points) -> Points:
        """Return positions in pixels of this frame, from positions in units of UTKFace's crop."""
        wide = 1 + 2 * self.margin
        at: Points = (parts + self.margin) / wide * self.size - 0.5
        return at

    def points(self) -> Points:
        return self.pixels(np.array(FIVE))

    def corners(self) -> Points:
        """Return the outer corners of the corner pixels, clockwise from the top left."""
        low, high = -0.5, self.size - 0.5
        return np.array([[low, low], [high, low], [high, high], [low, high]])


@dataclass(frozen=True)
class Similarity:
    """A similarity transform from the photo to a crop: p ↦ `scale`·R(`angle`)·p + (`x`, `y`).

    Positions are (x, y) in pixels, integers at the centres of pixels; `angle` is in radians, clockwise on the
    screen. The inverse is exact up to rounding. Raises `RegionError` for non-finite values and extreme
    scales.

    >>> there = Similarity(0.5, 0.1, 3.0, 4.0)
    >>> bool(np.allclose(there.back(there.to(np.array([[7.25, 9.5]]))), [[7.25, 9.5]], atol=1e-12))
    True
    """

    scale: float
    angle: float
    x: float
    y: float

    def __post_init__(self) -> None:
        finite = all(map(math.isfinite, (self.scale, self.angle, self.x, self.y)))
        if not finite or not 1 / LARGEST_SCALE < self.scale < LARGEST_SCALE:
            raise RegionError(
                "the position and size of the face are not finite numbers", hint="it may not be a face"
            )

    @property
    def matrix(self) -> Float64[np.ndarray, "2 3"]:
        """The map from photo to crop as an affine matrix for OpenCV."""
        c, s = self.scale * math.cos(self.angle), self.scale * math.sin(self.angle)
        return np.array([[c, -s, self.x], [s, c, self.y]])

    @property
    def inverse(self) -> Similarity:
        """The map from crop to photo."""
        scale, angle = 1 / self.scale, -self.angle
        c, s = scale * math.cos(angle), scale * math.sin(angle)
        return Similarity(scale, angle, -(c * self.x - s * self.y), -(s * self.x + c * self.y))

    def to(self, points: Points) -> Points:
        moved: Points = points @ self.matrix[:, :2].T + self.matrix[:, 2]
        return moved

    def back(self, points: Points) -> Points:
        return self.inverse.to(points)

    def crop(self, image: UInt8[np.ndarray, "H W c"], frame: Frame) -> UInt8[np.ndarray, "s s 3"]:
        """Return the canonical crop, uint8 sRGB; beyond the photo's edge its last pixels are repeated.

        This reads protected pixels: only a mechanism may use what it returns.
        """
        step, read = 1 / self.scale, self.reads(frame, *image.shape[:2])
        patch, left, top = np.ascontiguousarray(image[read.slices]), read.x, read.y
        patch, whole = _reduced(patch, math.floor(step))
        step /= whole
        if step > 1:
            patch = cv2.GaussianBlur(patch, (0, 0), BLUR * math.sqrt(step * step - 1))
        zero = (whole - 1) / 2  # the centre of the first pixel, in pixels of the photo
        matrix = self.matrix * [whole, whole, 1]
        matrix[:, 2] = self.to(np.array([[left + zero, top + zero]]))[0]
        if step > 1:
            size, how = (frame.size, frame.size), cv2.INTER_LINEAR
            cut = cv2.warpAffine(patch, matrix, size, flags=how, borderMode=cv2.BORDER_REPLICATE)
        else:
            cut = _enlarged(patch, matrix, frame.size)
        cut = cut.reshape(frame.size, frame.size, -1)
        return np.ascontiguousarray(np.broadcast_to(cut, (frame.size, frame.size, 3)))

    def reads(self, frame: Frame, height: int, width: int) -> Box:
        """Return the pixels of a photo of this size that `crop` may read; never empty."""
        border, ends = 3 + math.ceil(2 / self.scale), self.back(frame.corners())
        left, top = (int(v) - border for v in np.floor(ends.min(axis=0)))
        right, bottom = (int(v) + border for v in np.ceil(ends.max(axis=0)))
        left, right = min(max(left, 0), width - 1), max(min(right, width), 1)
        top, bottom = min(max(top, 0), height - 1), max(min(bottom, height), 1)
        return Box(left, top, right - left, bottom - top)


def of_points(found: Points, wanted: Points) -> Similarity:
    """Return the least-squares similarity from the points `found` to `wanted`.

    Raises `RegionError` if all points of `found` coincide. Source: Umeyama 1991, in complex numbers.
    """
    a, b = (p[:, 0] + 1j * p[:, 1] for p in (found, wanted))
    spread = complex(np.vdot(a - a.mean(), a - a.mean()))
    if not spread.real > 0:
        raise RegionError("the landmarks of a face coincide", hint="it may not be a face, or be too small")
    turn = complex(np.vdot(a - a.mean(), b - b.mean())) / spread
    move = complex(b.mean() - turn * a.mean())
    return Similarity(abs(turn), math.atan2(turn.imag, turn.real), move.real, move.imag)


def halvings(image: UInt8[np.ndarray, "H W c"]) -> list[UInt8[np.ndarray, "h w c"]]:
    """Return an image pyramid: the photo, and copies at 1/2, 1/4, ... of its size, of at least `SMALLEST`.

    An odd last row or column is left out of the next level. The number of levels depends on the size only.
    """
    copies = [image]
    while min(copies[-1].shape[:2]) >= 2 * SMALLEST:
        copies.append(_reduced(copies[-1], 2)[0])
    return copies


def _reduced(patch: UInt8[np.ndarray, "H W c"], times: int) -> tuple[UInt8[np.ndarray, "h w c"], int]:
    """Return the patch downscaled by `times` (block means), and `times`; unchanged with 1 if it is small."""
    height, width = patch.shape[0] // max(times, 1), patch.shape[1] // max(times, 1)
    if times < 2 or not (height and width):
        return patch, 1
    cut = patch[: height * times, : width * times]
    small = cv2.resize(cut, (width, height), interpolation=cv2.INTER_AREA)
    return np.asarray(small, np.uint8).reshape(height, width, -1), times


def _enlarged(
    patch: UInt8[np.ndarray, "h w c"], matrix: Float64[np.ndarray, "2 3"], side: int
) -> UInt8[np.ndarray, "s s *c"]:
    """Return the patch mapped by an affine matrix, interpolated by cubics, with its edges repeated.

    They are repeated before OpenCV interpolates, which takes up to twice the time at edges.
    """
    inverse = cv2.invertAffineTransform(matrix)
    last = side - 1.0
    ends = np.array([[0, 0], [last, 0], [last, last], [0, last]]) @ inverse[:, :2].T + inverse[:, 2]
    before = np.maximum(0, READ - np.floor(ends.min(axis=0)))
    after = np.maximum(0, READ + np.ceil(ends.max(axis=0)) - patch.shape[1::-1])
    if max(*before, *after) <= side:
        (left, top), (right, bottom) = before.astype(int).tolist(), after.astype(int).tolist()
        patch = cv2.copyMakeBorder(patch, top, bottom, left, right, cv2.BORDER_REPLICATE)
        inverse[:, 2] += before
    how = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    return np.asarray(
        cv2.warpAffine(patch, inverse, (side, side), flags=how, borderMode=cv2.BORDER_REPLICATE)
    )
