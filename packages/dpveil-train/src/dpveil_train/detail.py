"""Fine detail of an average face: what averaging lost, given back from another contributor at each place."""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np
from jaxtyping import Float32, Float64, Int64

from dpveil.noise.bits import SeededBits

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
    for (down, across), one in np.ndenumerate(_chosen(lost, bits)):
        out += np.outer(weights[down], weights[across]) * lost[one]
    found: Plane = np.clip(out, -MOST, MOST) * _strength(shape, face.shape[0])
    return found


def _fine(plane: Plane) -> Plane:
    blurred: Plane = np.asarray(cv2.GaussianBlur(plane, (0, 0), FINEST), np.float32)
    fine: Plane = plane - blurred
    return fine


def _chosen(lost: Planes, bits: SeededBits) -> Int64[np.ndarray, "k k"]:
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
