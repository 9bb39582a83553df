"""The background behind a new head: what is seen around its region, continued inwards."""

from __future__ import annotations

from typing import Final

import numpy as np

from dpveil.core.arrays import Bool, Float32, UInt8
from dpveil.core.region import Box
from dpveil.faces.geometry.fill import fill
from dpveil.opencv import cv2

SIDE: Final = 160
"""Longer side, in pixels, of the downscaled picture in which the way to the edge is computed."""
SMOOTH: Final = (13, 13)  # window over which that way is averaged, in its pixels
SURE: Final = 1.5  # standard deviation of the blur of where there is something to mirror, in its pixels
ALIKE: Final = 40.0
"""Levels by which the mirrored background may differ from a smooth one: no more than texture."""
NEAR: Final = 0.12
"""How far from its edge a hole shows what is mirrored, relative to its size: seams would show inside."""
Levels = Float32[np.ndarray, "_ _ c"]


def behind(
    known: UInt8[np.ndarray, "h w c"], hole: Bool[np.ndarray, "h w"], part: Box, *, plain: bool = False
) -> UInt8[np.ndarray, "H W c"]:
    """Return `part` of an image with every pixel of `hole` filled from the others; none under it is read.

    A wall, a curtain or a crowd goes on in its own texture, mirrored at the hole's edge, where that is like
    its smooth continuation; a `plain` one is that continuation alone.
    """
    smooth = fill(known, hole, part)
    if plain or hole.all():
        return smooth
    height, width = hole.shape
    ratio = min(1.0, SIDE / max(height, width))
    size = max(2, round(width * ratio)), max(2, round(height * ratio))
    small = cv2.resize(hole.astype(np.uint8) * np.uint8(255), size, interpolation=cv2.INTER_AREA) > 0
    if small.all():
        return smooth
    back = _way_back(small)
    large = cv2.resize(back, (width, height), interpolation=cv2.INTER_LINEAR) / np.float32(ratio)
    rows, columns = part.slices
    y, x = np.mgrid[rows, columns].astype(np.float32)
    x, y = x + 2 * large[rows, columns, 1], y + 2 * large[rows, columns, 0]
    clean = cv2.copyTo(known, (~hole).astype(np.uint8)).reshape(known.shape)
    edge, sigma = cv2.BORDER_REFLECT_101, max(SURE / ratio, 0.1)
    there = cv2.remap(clean, x, y, cv2.INTER_LINEAR, borderMode=edge)
    seen = cv2.remap((~hole).astype(np.uint8) * np.uint8(255), x, y, cv2.INTER_LINEAR, borderMode=edge)
    there = there.reshape(smooth.shape).astype(np.float32)
    sure = cv2.erode((seen == 255).astype(np.float32), np.ones((3, 3), np.uint8))[..., None]
    sums = cv2.GaussianBlur(
        np.dstack([np.abs(there - smooth).mean(axis=2)[..., None] * sure, sure]), (0, 0), sigma
    )
    off = sums[..., 0] / np.maximum(sums[..., 1], np.float32(1e-3))
    deep = np.hypot(large[rows, columns, 0], large[rows, columns, 1]) / (
        NEAR * np.sqrt(np.float32(hole.sum()))
    )
    share = sure[..., 0] * sums[..., 1] ** 2 * np.exp(-((off / ALIKE) ** 2) - deep**2)
    return np.asarray(np.rint(smooth + share[..., None] * (there - smooth)), np.uint8)


def _way_back(hole: Bool[np.ndarray, "h w"]) -> Float32[np.ndarray, "h w 2"]:
    """Return the way (rows, columns) from each pixel to the nearest that is not in the hole, smoothed."""
    mask = hole.astype(np.uint8)
    _, labels = cv2.distanceTransformWithLabels(mask, cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)
    nearest = np.zeros((labels.max() + 1, 2), np.float32)
    nearest[labels[~hole]] = np.argwhere(~hole)
    here = np.moveaxis(np.array(np.indices(hole.shape), np.float32), 0, -1)
    return np.asarray(cv2.blur(nearest[labels] - here, SMOOTH))
