"""The seam between a new head and the photo: at the region's edge, what is coarse meets the photo's levels.

Detail passes over a narrower seam (Burt & Adelson 1983). No hidden pixel is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Final

import numpy as np

from dpveil.core.array_types import Bool, Float32, UInt8
from dpveil.core.region import Box, Region
from dpveil.opencv import cv2

SEAM: Final = 0.03  # width of the blend inside a region's edge, in units of UTKFace's crop
COMPARED_SIDE: Final = 160  # side of UTKFace's crop in which levels are compared, in pixels
WINDOW: Final = 3  # side of the window, in those pixels, in which both sides of an edge are compared
MOST_SHIFT: Final = 60.0  # largest change, in levels
ALL: Final = (0.14, 0.05)
"""How far from the edge levels change, and the standard deviation of the blur along it, in units of UTKFace's
crop."""
ALIKE: Final = 30.0  # standard deviation of the levels by which both sides of an edge may differ and be alike
EDGE: Final = (0.9, 0.045)
"""Share of what differs at the very edge that goes on inside, and the depth at which 1/e of it is left."""
BESIDE: Final = np.array(
    [(0.5, 1, 0.5), (1, 0, 1), (0.5, 1, 0.5)], np.float32
)  # weights of the pixels beside one
WIDER: Final = ((0.02, 0.012), (0.05, 0.024))
"""Depths from which on that is blurred, and by how much. All three in units of UTKFace's crop."""
Photo = UInt8[np.ndarray, "H W c"]
Hidden = Bool[np.ndarray, "H W"]
Face = UInt8[np.ndarray, "h w c"]
Hole = Bool[np.ndarray, "h w"]
Levels = Float32[np.ndarray, "h w c"]
Share = Float32[np.ndarray, "h w"]


def fade_to_edge(shown: Share, region: Region, width: float, photo: tuple[int, int]) -> Share:
    """Return alpha that falls to 0 at a region's edge, over `width` pixels; not at the edge of the photo.

    `photo` is the photo's height and width.
    """
    mask, box = region.mask, region.box
    wide = np.pad(np.ones((box.h, box.w), np.uint8) if mask is None else mask.astype(np.uint8), 1, "edge")
    beside = (wide[0], wide[:, 0], wide[-1], wide[:, -1])
    left = (box.y, box.x, photo[0] - box.y - box.h, photo[1] - box.x - box.w)
    for edge, pixels in zip(beside, left, strict=True):
        edge *= pixels == 0
    deep = cv2.distanceTransform(wide, cv2.DIST_L2, 3)[1:-1, 1:-1]
    return np.asarray(np.minimum(shown, deep / np.float32(max(1.0, width))), np.float32)


def shift_to_photo_levels(
    face: Face, box: Box, outside: Photo, hidden: Hidden, unit: float, *, alike: bool = False
) -> Face:
    """Return the levels of a head in a region's `box`, shifted near its edge to those that are seen there.

    `outside` is the photo with 0 under `hidden`; `unit` is the side of UTKFace's crop in pixels. If `alike`,
    only what is nearly as light and of the same colour on both sides counts.
    """
    more, ratio = math.ceil(WINDOW * max(1.0, unit / COMPARED_SIDE)), min(1.0, COMPARED_SIDE / unit)
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

    def enlarge(change: np.ndarray) -> np.ndarray:
        large = cv2.resize(change, (width, height), interpolation=cv2.INTER_LINEAR).reshape(height, width, -1)
        return np.asarray(large[top:, left:][: box.h, : box.w])

    return shift_levels(face, enlarge, light, levels, share == 0, share == 255, unit * ratio, alike=alike)


def continued_from_edge(filled: Face, box: Box, outside: Photo, hidden: Hidden, unit: float) -> Face:
    """Return the levels of a `box` in which what is seen beside hidden pixels goes on a little, and fades.

    Wrinkles, collars and strands that end at the edge would show where it is. `outside` is the photo with 0
    under `hidden`; `unit` is the side of UTKFace's crop in pixels.
    """
    few = max(1, round(unit / COMPARED_SIDE))  # large faces are compared in smaller pictures
    view = box.wider(few, *hidden.shape[::-1])
    top, left = box.y - view.y, box.x - view.x
    levels, hole = outside[view.slices].copy(), hidden[view.slices]
    inside = levels[top:, left:][: box.h, : box.w]
    inside[...] = np.where(hole[top:, left:][: box.h, : box.w, None], filled, inside)
    size = math.ceil(view.w / few), math.ceil(view.h / few)
    light, share = (
        cv2.resize(one, size, interpolation=cv2.INTER_AREA).astype(np.float32)
        for one in (levels, hole.astype(np.float32))
    )
    change = _change_at_edge(light.reshape(*share.shape, -1), share > 0.5, unit / few)
    large = cv2.resize(change, (view.w, view.h), interpolation=cv2.INTER_LINEAR).reshape(view.h, view.w, -1)
    more = np.ascontiguousarray(large[top:, left:][: box.h, : box.w])
    return np.asarray(cv2.add(filled, more, dtype=cv2.CV_8U)).reshape(filled.shape)


def _change_at_edge(levels: Levels, hole: Hole, unit: float) -> Levels:
    """Return by how much levels in a hole change, so that those beside it go on."""
    known = (~hole).astype(np.float32)
    weight = cv2.filter2D(known, -1, BESIDE, borderType=cv2.BORDER_CONSTANT)
    beside = cv2.filter2D(levels * known[..., None], -1, BESIDE, borderType=cv2.BORDER_CONSTANT)
    rim = hole & (weight > 0)
    if not rim.any():
        return np.zeros_like(levels)
    missed = beside.reshape(levels.shape)[rim] / weight[rim, None] - levels[rim]
    deep, nearest = cv2.distanceTransformWithLabels(
        (~rim).astype(np.uint8), cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL
    )
    of_rim = np.zeros((int(nearest.max()) + 1, levels.shape[2]), np.float32)
    of_rim[nearest[rim]] = missed
    change, inside = of_rim[nearest], hole.astype(np.float32)
    within = cv2.merge([*cv2.split(change * inside[..., None]), inside])
    for depth, deviation in WIDER:
        *sums, count = cv2.split(cv2.GaussianBlur(within, (0, 0), deviation * unit))
        mean = cv2.merge([one / np.maximum(count, 1e-3) for one in sums])
        change = cv2.copyTo(mean, (deep > depth * unit).astype(np.uint8), change).reshape(levels.shape)
    share, fall = EDGE
    return np.asarray(share * np.exp(-deep / (fall * unit))[..., None] * change, np.float32)


def shift_levels(
    face: Photo,
    enlarge: Callable[[np.ndarray], np.ndarray],
    light: Levels,
    levels: Levels,
    known: Hole,
    hole: Hole,
    unit: float,
    *,
    alike: bool,
) -> Photo:
    """Return a face shifted by what its smaller `levels` miss in a hole, for the `light` that is `known`.

    `enlarge` takes a change of the smaller picture to the size of the face.
    """
    change = _change_in_hole(light, levels, known, hole, unit, alike=alike)
    if change is None:
        return face
    large = np.asarray(enlarge(change), np.float32).reshape(face.shape)
    return np.asarray(cv2.add(face, large, dtype=cv2.CV_8U)).reshape(face.shape)


def _change_in_hole(
    light: Levels, levels: Levels, known: Hole, hole: Hole, unit: float, *, alike: bool
) -> Levels | None:
    """Return by how much `levels` change in a hole, for the `light` that is `known`; None if by nothing."""
    window = np.ones((WINDOW, WINDOW), np.uint8)
    inside = (cv2.dilate(hole.astype(np.uint8), window) > 0) & ~known
    rim = known & (cv2.dilate(inside.astype(np.uint8), window) > 0)
    if not rim.any():
        return None
    missed = light - _mean_around(levels, inside)  # what is seen may change fast: the nearest pixels alone
    weight = rim.astype(np.float32)
    if alike:
        weight *= np.exp(-0.5 * (reduce(np.maximum, cv2.split(np.abs(missed))) / ALIKE) ** 2)
    missed = np.clip(missed, -MOST_SHIFT, MOST_SHIFT)
    wide, along = ALL
    sums = cv2.GaussianBlur(cv2.merge([*cv2.split(missed * weight[..., None]), weight]), (0, 0), along * unit)
    at = np.clip(cv2.distanceTransform((~known).astype(np.uint8), cv2.DIST_L2, 3) / (wide * unit), 0, 1)
    fade = np.asarray(1 - at * at * (3 - 2 * at), np.float32)[..., None]
    return np.asarray(sums[..., :-1] / np.maximum(sums[..., -1:], 1e-3) * fade)


def _mean_around(levels: Levels, where: Bool[np.ndarray, "_ _"]) -> Levels:
    """Return the mean of the levels that count in a small window around each pixel."""
    weight = where.astype(np.float32)
    total = cv2.blur(levels * weight[..., None], (WINDOW, WINDOW)).reshape(levels.shape)
    return np.asarray(total / np.maximum(cv2.blur(weight, (WINDOW, WINDOW)), 1e-3)[..., None])
