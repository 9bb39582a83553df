"""The seam between a new head and the photo: at the region's edge, what is coarse meets the photo's levels.

Detail passes over a narrower seam (Burt & Adelson 1983). No hidden pixel is read.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from dpveil.core.arrays import Bool, Float32, UInt8
from dpveil.core.region import Box, Region
from dpveil.faces.geometry.membrane import lab_of, may_be_skin

SEAM: Final = 0.08
"""Width of the blend inside a region's edge, in units of UTKFace's crop."""
FINE_SEAM: Final = 0.03
"""The same if a network completed the head."""
SIDE: Final = 80
"""Side of UTKFace's crop in which levels are compared, in pixels."""
WINDOW: Final = 3
"""Side of the window, in those pixels, in which both sides of an edge are compared."""
MOST: Final = 60.0
"""Largest change, in levels."""
ALL: Final = (0.14, 0.05)
"""How far from the edge levels change, and the standard deviation of the blur along it, in units of UTKFace's
crop."""
OF_SKIN: Final = (0.35, 0.08)
"""The same where skin meets skin."""
ALIKE: Final = 40.0
"""Standard deviation of the levels by which skin on both sides of an edge may differ."""
KEPT: Final = 0.6
"""Share of the mean change that skin far from the edge gets."""
FAINT: Final = 0.02
"""Weight of the mean change beside that of the nearest edge."""
SURE: Final = 0.3
"""Length of an edge between skin and skin from which on its mean is followed in full, in units of the crop,
times a pixel."""
COLOUR: Final = 14.0
"""Standard deviation of the CIE a* and b* by which skin differs within one face."""
SOFT: Final = 0.05
"""Standard deviation of the blur of where skin is, in units of the crop."""
Levels = Float32[np.ndarray, "h w c"]
Share = Float32[np.ndarray, "h w"]


def faded(shown: Share, region: Region, width: float, photo: tuple[int, int]) -> Share:
    """Return alpha that falls to 0 at a region's edge, over `width` pixels; not at the edge of the photo.

    `photo` is the photo's height and width.
    """
    import cv2

    mask, box = region.mask, region.box
    wide = np.pad(np.ones((box.h, box.w), np.uint8) if mask is None else mask.astype(np.uint8), 1, "edge")
    beside = (wide[0], wide[:, 0], wide[-1], wide[:, -1])
    left = (box.y, box.x, photo[0] - box.y - box.h, photo[1] - box.x - box.w)
    for edge, pixels in zip(beside, left, strict=True):
        edge *= pixels == 0
    deep = cv2.distanceTransform(wide, cv2.DIST_L2, 3)[1:-1, 1:-1]
    return np.asarray(np.minimum(shown, deep / np.float32(max(1.0, width))), np.float32)


def met(
    face: UInt8[np.ndarray, "h w c"],
    box: Box,
    outside: UInt8[np.ndarray, "H W c"],
    hidden: Bool[np.ndarray, "H W"],
    unit: float,
    *,
    skin: bool = False,
) -> UInt8[np.ndarray, "h w c"]:
    """Return the levels of a head in a region's `box`, shifted near its edge to those that are seen there.

    `outside` is the photo with 0 under `hidden`; `unit` is the side of UTKFace's crop in pixels. With `skin`,
    only skin that meets skin is shifted, and the rest of the face follows.
    """
    import cv2

    more, ratio = math.ceil(WINDOW * max(1.0, unit / SIDE)), min(1.0, SIDE / unit)
    top, left = min(more, box.y), min(more, box.x)
    bottom = min(more, hidden.shape[0] - box.y - box.h)
    right = min(more, hidden.shape[1] - box.x - box.w)
    view = slice(box.y - top, box.y + box.h + bottom), slice(box.x - left, box.x + box.w + right)
    height, width = hidden[view].shape
    size = max(1, round(width * ratio)), max(1, round(height * ratio))
    own = cv2.copyMakeBorder(face, top, bottom, left, right, cv2.BORDER_REPLICATE)
    few = [cv2.resize(one, size, interpolation=cv2.INTER_AREA) for one in (outside[view], own)]
    light, levels = (one.astype(np.float32).reshape(size[1], size[0], -1) for one in few)
    share = cv2.resize(hidden[view].astype(np.uint8) * np.uint8(255), size, interpolation=cv2.INTER_AREA)
    change = change_at(light, levels, share == 0, share == 255, unit * ratio, skin=skin)
    if change is None:
        return face
    large = cv2.resize(change, (width, height), interpolation=cv2.INTER_LINEAR).reshape(height, width, -1)
    return np.clip(np.rint(face + large[top:, left:][: box.h, : box.w]), 0, 255).astype(np.uint8)


def change_at(
    light: Levels,
    levels: Levels,
    known: Bool[np.ndarray, "h w"],
    hole: Bool[np.ndarray, "h w"],
    unit: float,
    *,
    skin: bool,
) -> Levels | None:
    """Return by how much `levels` change in a hole, for the `light` that is `known`; None if by nothing."""
    import cv2

    window = np.ones((WINDOW, WINDOW), np.uint8)
    rim = np.logical_and(*(cv2.dilate(one.astype(np.uint8), window) > 0 for one in (known, hole)))
    if not rim.any():
        return None
    theirs, ours = _mean_around(light, known), _mean_around(levels, hole)
    missed = np.clip(theirs - ours, -MOST, MOST)
    skin = skin and light.shape[2] == 3
    weight = _meeting(theirs, ours, rim) if skin else rim.astype(np.float32)
    total = float(weight.sum())
    if total == 0:
        return None
    wide, along = OF_SKIN if skin else ALL
    sums = cv2.GaussianBlur(np.dstack([missed * weight[..., None], weight]), (0, 0), along * unit)
    at = np.clip(cv2.distanceTransform((~known).astype(np.uint8), cv2.DIST_L2, 3) / (wide * unit), 0, 1)
    fade = np.asarray(1 - at * at * (3 - 2 * at), np.float32)[..., None]
    if not skin:
        return np.asarray(sums[..., :-1] / np.maximum(sums[..., -1:], 1e-3) * fade)
    mean = (missed * weight[..., None]).sum(axis=(0, 1)) / total * min(1.0, total / (SURE * unit))
    near = (sums[..., :-1] + FAINT * mean) / (sums[..., -1:] + FAINT)
    own = (ours * weight[..., None]).sum(axis=(0, 1)) / total
    changed = (KEPT * mean + fade * (near - KEPT * mean)) * _skin_of(levels, own, unit)[..., None]
    return np.asarray(changed, np.float32)


def _mean_around(levels: Levels, where: Bool[np.ndarray, "_ _"]) -> Levels:
    """Return the mean of the levels that count in a small window around each pixel."""
    import cv2

    weight = where.astype(np.float32)
    total = cv2.blur(levels * weight[..., None], (WINDOW, WINDOW)).reshape(levels.shape)
    return np.asarray(total / np.maximum(cv2.blur(weight, (WINDOW, WINDOW)), 1e-3)[..., None])


def _meeting(theirs: Levels, ours: Levels, rim: Bool[np.ndarray, "h w"]) -> Share:
    """Return how much skin meets skin at a rim, 0 to 1."""
    weight = np.zeros(rim.shape, np.float32)
    both = [may_be_skin(lab_of(side[rim])) for side in (theirs, ours)]
    apart = (theirs[rim] - ours[rim]).mean(axis=1)
    weight[rim] = np.logical_and(*both) * np.exp(-0.5 * (apart / ALIKE) ** 2)
    return weight


def _skin_of(levels: Levels, own: np.ndarray, unit: float) -> Share:
    """Return how much of each pixel is skin of the colour `own`, less where it is darker, with soft edges."""
    import cv2

    lab, centre = lab_of(levels.reshape(-1, 3)), lab_of(own[None])[0]
    like = np.exp(-0.5 * ((lab[:, 1:] - centre[1:]) ** 2).sum(axis=1) / COLOUR**2) * may_be_skin(lab)
    lit = like * np.clip(lab[:, 0] / max(float(centre[0]), 1.0), 0, 1)
    return np.asarray(cv2.GaussianBlur(lit.reshape(levels.shape[:2]).astype(np.float32), (0, 0), SOFT * unit))
