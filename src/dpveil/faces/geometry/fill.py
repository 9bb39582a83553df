"""A hole filled from the pixels around it, and the background behind a new head; none inside is read."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from dpveil.core.array_types import Bool, Float32, UInt8
from dpveil.core.region import Box
from dpveil.opencv import cv2

FINE: Final = 200
"""Longer side, in pixels, of the downscaled image in which the filling is fitted to the hole's edge."""
COARSE: Final = 72  # longer side, in pixels, of the downscaled image in which the hole is inpainted
RADIUS: Final = 4  # radius of Telea's inpainting, in pixels of the coarse image
REACH: Final = 6.0
"""Distance over which the mismatch at the hole's edge decays inside it, in pixels of the fine image."""
SOME: Final = 0.1  # share of a downscaled pixel that must be known for it to count as known
WAY: Final = 160
"""Longer side, in pixels, of the downscaled picture in which the way to the edge is computed."""
SMOOTH: Final = (13, 13)  # window over which that way is averaged, in its pixels
SURE: Final = 1.5  # standard deviation of the blur of where there is something to mirror, in its pixels
ALIKE: Final = 40.0
"""Levels by which the mirrored background may differ from a smooth one: no more than texture."""
NEAR: Final = 0.12
"""How far from its edge a hole shows what is mirrored, relative to its size: seams would show inside."""
Image = UInt8[np.ndarray, "h w c"]
Hole = Bool[np.ndarray, "h w"]
Plane = Float32[np.ndarray, "h w"]
Picture = Float32[np.ndarray, "h w c"]


def fill(known: Image, hole: Hole, part: Box | None = None) -> UInt8[np.ndarray, "H W c"]:
    """Return `part` of the image `known`, or all of it, with every pixel of `hole` filled from the others.

    No pixel under the hole is read. The hole is inpainted at low resolution (Telea 2004), smoothed, and
    shifted to match the levels at its edge. Pixels outside the hole come back smoothed too; callers ignore
    them. If the hole is the whole image, the result is grey (128).
    """
    height, width = hole.shape
    part = Box(0, 0, width, height) if part is None else part
    if hole.all():
        return np.full((part.h, part.w, known.shape[2]), 128, np.uint8)
    clean = cv2.copyTo(known, (~hole).astype(np.uint8)).reshape(known.shape)
    fine, weight = _shrunk(clean, (~hole).astype(np.float32), FINE)
    coarse, sure = _shrunk(fine * _planes(weight, fine), weight, COARSE)
    empty = sure < SOME
    levels = np.clip(np.rint(coarse), 0, 255).astype(np.uint8)
    if empty.any():
        levels = cv2.inpaint(levels, empty.astype(np.uint8), RADIUS, cv2.INPAINT_TELEA)
    smooth = _smoothed(levels.reshape(coarse.shape).astype(np.float32), empty)
    large = cv2.resize(smooth, weight.shape[::-1], interpolation=cv2.INTER_CUBIC).reshape(fine.shape)
    across, down = width / weight.shape[1], height / weight.shape[0]
    columns = _read(part.x / across, (part.x + part.w) / across, weight.shape[1])
    rows = _read(part.y / down, (part.y + part.h) / down, weight.shape[0])
    met = _met(large[rows, columns], fine[rows, columns], weight[rows, columns])
    met = np.clip(np.rint(met), 0, 255).astype(np.uint8)
    from_fine = np.array(
        [
            [across, 0, (across - 1) / 2 - part.x + across * columns.start],
            [0, down, (down - 1) / 2 - part.y + down * rows.start],
        ]
    )
    size = (part.w, part.h)
    filled = cv2.warpAffine(met, from_fine, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(filled, np.uint8).reshape(part.h, part.w, -1)


def _shrunk(image: np.ndarray, weight: Float32[np.ndarray, "H W"], longer: int) -> tuple[Picture, Plane]:
    """Return the downscaled mean of the known pixels (`image` is 0 elsewhere), and their share per pixel."""
    height, width = weight.shape
    ratio = min(1.0, longer / max(height, width))
    size = (max(1, round(width * ratio)), max(1, round(height * ratio)))
    if size == (width, height) and ((weight == 0) | (weight == 1)).all():
        return image.astype(np.float32), weight
    part = cv2.resize(weight, size, interpolation=cv2.INTER_AREA)
    sums = cv2.resize(image, size, interpolation=cv2.INTER_AREA).reshape(*part.shape, -1)
    mean = sums / _planes(np.maximum(part, SOME), sums)
    return mean * _planes((part >= SOME).astype(np.float32), sums), part


def _planes(plane: Plane, like: np.ndarray) -> Picture:
    """Return a plane as often as a picture has channels: faster than by broadcasting."""
    return np.asarray(cv2.merge([plane] * like.shape[2])).reshape(like.shape)


def _read(start: float, end: float, size: int) -> slice:
    """Return the pixels between two positions, and those around that the blur of a mismatch reads."""
    more = math.ceil(REACH / 2 * 4) + 4
    return slice(max(0, math.floor(start) - more), min(size, math.ceil(end) + more))


def _smoothed(small: Picture, empty: Hole) -> Picture:
    """Return the inpainted image with the hole blurred against streaks, more so deeper inside it."""
    deep = cv2.distanceTransform(empty.astype(np.uint8), cv2.DIST_L2, 3)
    out = small
    for sigma in (1.0, 2.0, 4.0):
        soft = cv2.GaussianBlur(out, (0, 0), sigma, borderType=cv2.BORDER_REPLICATE).reshape(small.shape)
        part = np.clip(deep / (2 * sigma) - 0.5, 0, 1)[..., None]
        out = out + part * (soft - out)
    return np.asarray(out, np.float32)


def _met(large: Picture, fine: Picture, weight: Plane) -> Picture:
    """Return the filling shifted, near the hole's edge, by its difference from the known pixels there."""
    missed = (fine - large) * _planes(weight, fine)
    spread = cv2.GaussianBlur(weight, (0, 0), REACH / 2)
    moved = cv2.GaussianBlur(missed, (0, 0), REACH / 2).reshape(large.shape)
    deep = cv2.distanceTransform((weight < SOME).astype(np.uint8), cv2.DIST_L2, 3)
    fade = np.exp(-deep / REACH) * (spread > 1e-3)
    spread = np.maximum(spread, 1e-3)
    return np.asarray(large + moved / _planes(spread, fine) * _planes(fade, fine), np.float32)


def background_in_hole(
    known: Image, hole: Hole, part: Box, *, plain: bool = False
) -> UInt8[np.ndarray, "H W c"]:
    """Return `part` of an image with every pixel of `hole` filled from the others; none under it is read.

    A wall, a curtain or a crowd goes on in its own texture, mirrored at the hole's edge, where that is like
    its smooth continuation; a `plain` one is that continuation alone.
    """
    smooth = fill(known, hole, part)
    if plain or hole.all():
        return smooth
    height, width = hole.shape
    ratio = min(1.0, WAY / max(height, width))
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


def _way_back(hole: Hole) -> Float32[np.ndarray, "h w 2"]:
    """Return the way (rows, columns) from each pixel to the nearest that is not in the hole, smoothed."""
    mask = hole.astype(np.uint8)
    _, labels = cv2.distanceTransformWithLabels(mask, cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)
    nearest = np.zeros((labels.max() + 1, 2), np.float32)
    nearest[labels[~hole]] = np.argwhere(~hole)
    here = np.moveaxis(np.array(np.indices(hole.shape), np.float32), 0, -1)
    return np.asarray(cv2.blur(nearest[labels] - here, SMOOTH))
