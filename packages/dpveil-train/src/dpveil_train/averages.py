"""Average faces: several faces warped to their mean shape, so that the average stays sharp."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from jaxtyping import Float32, Float64, Int64, UInt8
from scipy.spatial import Delaunay

from dpveil.errors import InvalidParameter
from dpveil.noise.bits import SeededBits

FEWEST: Final = 10
"""Least number of faces of an average, of which the extreme levels of each pixel are dropped, so 8 count."""
BORDER: Final = 5
"""Fixed points on each side of a crop, corners included."""
BANDS: Final = 3
"""Frequency bands in which contrast is restored."""
RESTORED: Final = 0.35
"""Share of the contrast lost by averaging that is restored."""
MOST_GAIN: Final = 1.5
"""Largest gain of a band."""

Crop = UInt8[np.ndarray, "s s 3"]
Crops = UInt8[np.ndarray, "n s s 3"]
Shapes = Float64[np.ndarray, "n points 2"]
Levels = Float32[np.ndarray, "s s 3"]


@dataclass(frozen=True, eq=False)
class Mesh:
    """A Delaunay triangulation of landmarks and border points of a crop with a side of `side` pixels.

    For each pixel, `corners` are the indices of the points of its triangle and `weights` its barycentric
    coordinates.
    """

    side: int
    corners: Int64[np.ndarray, "pixels 3"]
    weights: Float64[np.ndarray, "pixels 3"]

    @classmethod
    def over(cls, shape: Float64[np.ndarray, "points 2"], side: int) -> Mesh:
        """Return the mesh over landmarks in pixels; points outside the crop are moved to its border."""
        y, x = np.mgrid[0:side, 0:side]
        pixels = np.stack([x.ravel(), y.ravel()], axis=1).astype(np.float64)
        mesh = Delaunay(with_border_points(shape, side))
        found = np.maximum(mesh.find_simplex(pixels), 0)
        turn = mesh.transform[found]
        two = np.einsum("nij,nj->ni", turn[:, :2], pixels - turn[:, 2])
        weights = np.concatenate([two, 1 - two.sum(axis=1, keepdims=True)], axis=1)
        return cls(side, mesh.simplices[found].astype(np.int64), weights)

    def warp(self, crop: Crop, shape: Float64[np.ndarray, "points 2"]) -> Levels:
        """Return a crop with landmarks at `shape` warped to the mesh's landmarks, affinely by triangle."""
        at = np.einsum("nk,nkd->nd", self.weights, with_border_points(shape, self.side)[self.corners])
        maps = at.astype(np.float32).reshape(self.side, self.side, 2)
        moved = cv2.remap(crop, maps[..., 0], maps[..., 1], cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
        return np.asarray(moved, np.float32)


def with_border_points(shape: Float64[np.ndarray, "points 2"], side: int) -> Float64[np.ndarray, "points 2"]:
    """Return the landmarks, moved inside the crop, followed by the fixed points of its border."""
    ends = np.linspace(0, side - 1, BORDER)
    around = [(x, y) for x in ends for y in ends if {x, y} & {0, side - 1}]
    return np.concatenate([np.clip(shape, 1, side - 2), np.array(around)])


def average(crops: Crops, shapes: Shapes, bits: SeededBits | None = None) -> Crop:
    """Return the trimmed mean of at least `FEWEST` faces in the mean of their shapes.

    Every face is warped to the mean shape and normalised to the mean level and contrast of all in each
    channel. The darkest and the lightest level of each pixel are dropped, which removes what only one face
    has, such as letters or glasses. Some of the lost contrast of fine detail is restored; with `bits`, the
    finest detail is that of another face at each place, see `detail`. Raises `InvalidParameter` for fewer
    faces, or another number of shapes.
    """
    if len(crops) < FEWEST or len(crops) != len(shapes):
        raise InvalidParameter(
            "crops", len(crops), "are too few", hint=f"{FEWEST} or more, each with a shape"
        )
    mesh = Mesh.over(shapes.mean(axis=0), crops.shape[1])
    moved = np.stack([mesh.warp(crop, shape) for crop, shape in zip(crops, shapes, strict=True)])
    moved = _normalise_tones(moved)
    middle = (moved.sum(axis=0) - moved.max(axis=0) - moved.min(axis=0)) / (len(moved) - 2)
    level = _restore_contrast(middle, moved)
    if bits is not None:
        level += detail(level, moved, shapes.mean(axis=0), bits)[..., None]
    face: Crop = np.clip(np.rint(level), 0, 255).astype(np.uint8)
    return face


def _normalise_tones(faces: Float32[np.ndarray, "n s s 3"]) -> Float32[np.ndarray, "n s s 3"]:
    """Return the faces normalised to the average mean and standard deviation of each channel."""
    level = faces.mean(axis=(1, 2), keepdims=True)
    spread = faces.std(axis=(1, 2), keepdims=True) + 1
    toned: Float32[np.ndarray, "n s s 3"]
    toned = (faces - level) / spread * spread.mean(axis=0) + level.mean(axis=0)
    return toned


def _restore_contrast(face: Levels, faces: Float32[np.ndarray, "n s s 3"]) -> Levels:
    """Return the averaged `face` with some of the contrast that the `faces` have in each frequency band.

    Contrast is the root mean square of the mean over channels.
    """
    of_face, of_faces = _bands(face), [_bands(one.mean(axis=2)) for one in faces]
    out = of_face[-1].copy()
    for band in range(BANDS):
        usual = np.mean([float(np.square(one[band]).mean()) for one in of_faces])
        lost = np.sqrt(usual / max(float(np.square(of_face[band].mean(axis=2)).mean()), 1e-6))
        out += of_face[band] * np.float32(np.clip(1 + RESTORED * (lost - 1), 1, MOST_GAIN))
    return out


def _bands(face: Levels) -> list[Levels]:
    """Return the frequency bands that Gaussian blurs of 1, 2 and 4 pixels remove in turn, and the rest."""
    out, left = [], face
    for band in range(BANDS):
        low = np.asarray(cv2.GaussianBlur(left, (0, 0), float(1 << band)), np.float32)
        out.append(left - low)
        left = low
    return [*out, left]


FINEST: Final = 1.3
"""Standard deviation in pixels of the blur that separates fine detail from the rest."""
TILE: Final = 8
"""Side in pixels of the tiles that take their detail from one contributor each."""
SHARE: Final = 0.8
"""Share of the lost detail that is given back."""
CALM: Final = 0.4
"""The same in the eyes and the mouth, where contributors differ in more than texture."""
MOST: Final = 14.0
"""Largest detail, in levels."""
USUAL: Final = (4, 8)
"""Ranks, from the faintest detail of a tile, of the contributors that it may be from."""
PARTS: Final = (slice(36, 42), slice(42, 48), slice(48, 60))
"""The 68 landmarks of the eyes and the mouth."""

Plane = Float32[np.ndarray, "s s"]
Planes = Float32[np.ndarray, "n s s"]


def detail(
    face: Float32[np.ndarray, "s s 3"],
    faces: Float32[np.ndarray, "n s s 3"],
    shape: Float64[np.ndarray, "points 2"],
    bits: SeededBits,
) -> Plane:
    """Return what to add to each channel of an average `face` of ten or more aligned `faces`.

    Each tile shows what one of them has there and the average has not, so that each is seen in a tenth of the
    places. It is one of those whose detail there is neither faint nor strong, which leaves out letters and
    single hairs. `shape` has the landmarks, and `bits` choose.
    """
    lost = np.stack([_fine(one.mean(axis=2)) for one in faces]) - _fine(face.mean(axis=2))
    weights = _weights(face.shape[0])
    out = np.zeros(face.shape[:2], np.float32)
    for (down, across), one in np.ndenumerate(_choose_contributors(lost, bits)):
        out += np.outer(weights[down], weights[across]) * lost[one]
    found: Plane = np.clip(out, -MOST, MOST) * _strength(shape, face.shape[0])
    return found


def _fine(plane: Plane) -> Plane:
    blurred: Plane = np.asarray(cv2.GaussianBlur(plane, (0, 0), FINEST), np.float32)
    fine: Plane = plane - blurred
    return fine


def _choose_contributors(lost: Planes, bits: SeededBits) -> Int64[np.ndarray, "k k"]:
    """Return the contributor of each tile, one of those with usual detail, all with the same chance."""
    count, side, _ = lost.shape
    tiles = side // TILE
    parts = np.square(lost)[:, : tiles * TILE, : tiles * TILE].reshape(count, tiles, TILE, tiles, TILE)
    ranked = parts.mean(axis=(2, 4)).argsort(axis=0, kind="stable")
    words = bits.words(tiles * tiles) >> np.uint64(32)
    ranks = USUAL[0] + (words % np.uint64(USUAL[1] - USUAL[0])).astype(np.int64).reshape(1, tiles, tiles)
    chosen: Int64[np.ndarray, "k k"] = np.take_along_axis(ranked, ranks, axis=0)[0]
    return chosen


def _weights(side: int) -> Float32[np.ndarray, "k s"]:
    """Return the weight of each tile's row at each line of pixels; their squares add up to 1.

    Details of different people are unlike, so their squares add up as well, and contrast is even.
    """
    tiles = side // TILE
    at = np.clip((np.arange(side) + 0.5) / TILE - 0.5, 0, tiles - 1)
    tent = np.maximum(1 - np.abs(at - np.arange(tiles)[:, None]), 0) ** 2
    weights: Float32[np.ndarray, "k s"] = (tent / np.sqrt(np.square(tent).sum(axis=0))).astype(np.float32)
    return weights


def _strength(shape: Float64[np.ndarray, "points 2"], side: int) -> Plane:
    """Return the share of the detail that is given back at each pixel."""
    calm = np.zeros((side, side), np.float32)
    for part in PARTS:
        points = shape[part]
        if len(points) > 2:
            cv2.fillConvexPoly(calm, cv2.convexHull(np.rint(points).astype(np.int32)), 1.0)
    soft: Plane = np.asarray(cv2.GaussianBlur(calm, (0, 0), 2.0), np.float32)
    return np.float32(SHARE) + np.float32(CALM - SHARE) * soft
