"""The pixels of a head: ellipses around the landmarks, refined by GrabCut."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from jaxtyping import Bool, Float64, UInt8

from dpveil.core.region import Box
from dpveil.faces.geometry.align import Frame, Points, Similarity

SEEN: Final = Frame(124, 0.9)
"""Resolution for GrabCut: 44 pixels per side of UTKFace's crop."""
ROUNDS: Final = 3

Ellipse = tuple[float, float, float, float]
Yaws = tuple[float, ...]
FACE: Final[Ellipse] = (0.493, 0.50, 0.36, 0.50)
"""Skin for certain: centre and half axes, in parts of UTKFace's crop."""
LEAST: Final[Ellipse] = (0.493, 0.36, 0.52, 0.74)
"""Always head: with ears, short hair and chin, whatever GrabCut decides."""
LIKELY: Final[Ellipse] = (0.493, 0.33, 0.62, 0.85)
MOST: Final[Ellipse] = (0.493, 0.40, 0.98, 1.06)
"""Outer limit of a head, except for long hair and hats."""
BEHIND: Final = 0.5
"""How far behind its face the back of a head in full profile lies, in parts of UTKFace's crop."""
WIDER: Final = 0.07
"""How far the mask is grown at the end, in parts of UTKFace's crop."""


def inside(ellipse: Ellipse, parts: Float64[np.ndarray, "... 2"]) -> Bool[np.ndarray, ...]:
    """Return which positions, in parts of UTKFace's crop, lie within an ellipse."""
    x, y, a, b = ellipse
    return np.asarray(((parts[..., 0] - x) / a) ** 2 + ((parts[..., 1] - y) / b) ** 2 <= 1)


def backs(ellipse: Ellipse, yaws: Yaws) -> list[Ellipse]:
    """Return the ellipse moved to where the back of a head is, for every angle by which it may be turned."""
    return [(ellipse[0] - BEHIND * math.sin(yaw), *ellipse[1:]) for yaw in yaws]


def grid(frame: Frame) -> Float64[np.ndarray, "s s 2"]:
    """Return the position of every pixel of a frame in parts of UTKFace's crop."""
    along = (np.arange(frame.size) + 0.5) / frame.size * (1 + 2 * frame.margin) - frame.margin
    return np.stack(np.meshgrid(along, along), axis=-1)


def outline(ellipse: Ellipse, steps: int = 72) -> Points:
    """Return points on an ellipse."""
    x, y, a, b = ellipse
    angle = np.arange(steps) * (2 * math.pi / steps)
    return np.stack([x + a * np.cos(angle), y + b * np.sin(angle)], axis=1)


def head_mask(
    image: UInt8[np.ndarray, "H W c"], pose: Similarity, frame: Frame, yaws: Yaws = (0.0,)
) -> tuple[Box, Bool[np.ndarray, "h w"]] | None:
    """Return the box and mask of the head that `pose` aligns, clipped to the photo; None if none is in it.

    `pose` takes the photo's pixels to those of `frame`, `yaws` are how the head may be turned, in radians.
    The mask holds every pixel of the ellipse `LEAST`, what GrabCut takes for head around it, and `WIDER`
    more. It follows from private pixels: its silhouette is in the clear wherever it is used.
    """
    import cv2

    seen = pose if frame == SEEN else between(pose, frame, SEEN)
    small = _grown(_cut(seen.crop(image, SEEN), yaws), yaws)
    box = bounds(seen.back(SEEN.corners()), image.shape[1], image.shape[0])
    if box is None:
        return None
    matrix = seen.inverse.matrix
    matrix[:, 2] -= box.x, box.y
    soft = cv2.GaussianBlur(small.astype(np.float32), (0, 0), 1)
    large = cv2.warpAffine(soft, matrix, (box.w, box.h), flags=cv2.INTER_LINEAR)
    mask = large >= 0.25
    if not mask.any():
        return None
    rows, columns = (np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0))
    y, h, x, w = rows[0], rows[-1] - rows[0] + 1, columns[0], columns[-1] - columns[0] + 1
    return Box(box.x + int(x), box.y + int(y), int(w), int(h)), mask[y : y + h, x : x + w]


def bounds(points: Points, width: int, height: int) -> Box | None:
    """Return the smallest box of whole pixels around points, clipped to a photo; None if nothing is left."""
    left, top = np.floor(points.min(axis=0) + 0.5).astype(int).tolist()
    right, bottom = np.ceil(points.max(axis=0) + 0.5).astype(int).tolist()
    left, top, right, bottom = max(left, 0), max(top, 0), min(right, width), min(bottom, height)
    return Box(left, top, right - left, bottom - top) if left < right and top < bottom else None


def between(pose: Similarity, frame: Frame, other: Frame) -> Similarity:
    """Return the similarity to `other`, of one to `frame`."""
    ratio = (other.size / (1 + 2 * other.margin)) / (frame.size / (1 + 2 * frame.margin))
    zero = np.zeros((1, 2))
    move = other.pixels(zero)[0] - ratio * frame.pixels(zero)[0]
    return Similarity(pose.scale * ratio, pose.angle, ratio * pose.x + move[0], ratio * pose.y + move[1])


def _any(ellipse: Ellipse, yaws: Yaws, parts: Float64[np.ndarray, "s s 2"]) -> Bool[np.ndarray, "s s"]:
    """Return what lies within the ellipse, straight or moved to the back of a turned head."""
    many = [inside(each, parts) for each in (ellipse, *backs(ellipse, yaws))]
    return np.asarray(np.logical_or.reduce(many), np.bool_)


def _cut(seen: UInt8[np.ndarray, "s s 3"], yaws: Yaws) -> Bool[np.ndarray, "s s"]:
    """Return what GrabCut takes for head in the aligned picture; the ellipse where it cannot decide."""
    import cv2

    parts = grid(SEEN)
    marks = np.full(seen.shape[:2], cv2.GC_BGD, np.uint8)
    marks[_any(MOST, yaws, parts)] = cv2.GC_PR_BGD
    marks[_any(LIKELY, yaws, parts)] = cv2.GC_PR_FGD
    marks[inside(FACE, parts)] = cv2.GC_FGD
    cv2.setRNGSeed(0)
    models = np.zeros((1, 65)), np.zeros((1, 65))
    try:
        cv2.grabCut(seen, marks, (0, 0, 0, 0), *models, ROUNDS, cv2.GC_INIT_WITH_MASK)
    except cv2.error:  # colours of one kind only leave nothing to tell apart
        return _any(LIKELY, yaws, parts)
    return np.asarray((marks == cv2.GC_FGD) | (marks == cv2.GC_PR_FGD))


def _grown(cut: Bool[np.ndarray, "s s"], yaws: Yaws) -> Bool[np.ndarray, "s s"]:
    """Return the part of a cut that hangs together with the face, without holes, and wider."""
    import cv2

    parts = grid(SEEN)
    least = _any(LEAST, yaws, parts)
    mask = ((cut | least) & _any(MOST, yaws, parts)).astype(np.uint8)
    mask = cv2.morphologyEx(mask, cv2.MORPH_OPEN, _disc(2)) | least.astype(np.uint8)
    _, labels = cv2.connectedComponents(mask)
    x, y = SEEN.pixels(np.array([FACE[:2]]))[0].round().astype(int)
    mask = (labels == labels[y, x]).astype(np.uint8)
    mask = cv2.morphologyEx(mask, cv2.MORPH_CLOSE, _disc(4))
    rings, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    cv2.drawContours(mask, rings, -1, 1, cv2.FILLED)
    smooth = cv2.GaussianBlur(mask.astype(np.float32), (0, 0), 2) >= 0.5
    more = _disc(math.ceil(WIDER * SEEN.size / (1 + 2 * SEEN.margin)))
    return np.asarray(cv2.dilate((smooth | least).astype(np.uint8), more) > 0)


def _disc(radius: int) -> UInt8[np.ndarray, "d d"]:
    import cv2

    size = 2 * radius + 1
    return np.asarray(cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size)), np.uint8)
