"""What a network painted around a face, finished: calm colours, and a background out of focus."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Bool, Float32

from dpveil.faces.geometry.head_frame import OVAL
from dpveil.faces.geometry.layout import BACKGROUND, CLOTHES, HAIR, SKIN

HALF: Final = 0.5
"""Share of the background above which a pixel is behind a head."""
SOFT: Final = (0.02, 0.06)
"""Standard deviation of the blur behind a head, in units of the frame's side: with some of the photo known,
and with nothing."""
WINDOW: Final = 5
"""Side of the window, in pixels of the frame, in which both sides of an edge are compared."""
MISSED: Final = 160.0
"""Largest correction of painted levels, in levels."""
EDGE: Final = 0.1
"""Length of an edge, in units of the frame's side, from which on it is followed in full."""
OUTLINE: Final = 1.0
"""Standard deviation of the blur of a head's outline, in pixels of the frame: hair has no sharp edge."""
SMOOTH: Final = (9, 9)
"""Window over which the way back to the edge is averaged, in pixels, where the background is mirrored."""
SURE: Final = 1.5
"""Standard deviation of the blur of where there is something to mirror, in pixels of the frame."""
ALIKE: Final = 28.0
"""Levels by which the mirrored background may differ from what was painted there: no more than texture."""
REACH: Final = (0.1, 1.8)
"""How far from the edge the mirrored background begins to fade, and ends: (reach - distance / unit)."""
COLOURS: Final = (15, 1.5)
"""Window of the median and standard deviation of the blur of painted colours, in pixels of the frame."""
BESIDE: Final = (0.9, 1.1)
"""Enlargements of the face's oval up to which its colours stay as they are, and from which none do."""
Levels = Float32[np.ndarray, "_ _ c"]


def calmed(levels: Levels, light: Levels, known: Bool[np.ndarray, "s s"], grid: np.ndarray) -> Levels:
    """Return painted levels without spots of colour around the face; their lightness stays.

    Networks that were trained against critics leave coloured fringes in hair, and on necks and collars.
    """
    import cv2

    whole = np.where(known[..., None], light, levels).clip(0, 255).astype(np.uint8)
    light_and_colours = list(cv2.split(cv2.cvtColor(whole, cv2.COLOR_RGB2YCrCb)))
    before = cv2.cvtColor(cv2.merge(light_and_colours), cv2.COLOR_YCrCb2RGB)
    window, blur = COLOURS
    for place in (1, 2):
        plane = cv2.medianBlur(light_and_colours[place], window)
        light_and_colours[place] = cv2.GaussianBlur(plane, (0, 0), blur)
    after = cv2.cvtColor(cv2.merge(light_and_colours), cv2.COLOR_YCrCb2RGB)
    x, y, a, b = OVAL
    far = np.hypot((grid[..., 0] - x) / a, (grid[..., 1] - y) / b)
    share = np.clip((far - BESIDE[0]) / (BESIDE[1] - BESIDE[0]), 0, 1)[..., None].astype(np.float32)
    return np.asarray(levels + share * (after.astype(np.float32) - before))


def continued(
    levels: Levels,
    light: Levels,
    known: Bool[np.ndarray, "s s"],
    layout: Float32[np.ndarray, "4 s s"],
    *,
    skin: bool = False,
) -> Levels:
    """Return painted levels in which hair, clothes and background go on in the colours that are seen of them,
    and with `skin` that, too.

    `light` are the levels of the photo where they are `known`; `layout` are the shares of the classes, from 0
    to 1, of all of the frame. Of each class, what is painted is shifted by as much as it misses the photo at
    the edge of what is known.
    """
    out = levels.copy()
    for one in (BACKGROUND, HAIR, CLOTHES, *([SKIN] if skin else [])):
        out += layout[one][..., None] * _missed(levels, light, known, layout[one] > HALF)
    return out


def out_of_focus(
    levels: Levels, light: Levels, known: Bool[np.ndarray, "s s"], behind: Float32[np.ndarray, "s s"]
) -> Levels:
    """Return painted levels out of focus where they are `behind` the head, by shares from 0 to 1.

    `light` are the levels of the photo where they are `known`: what is painted passes into them.
    """
    import cv2

    side, alone = len(levels), not known.any()
    whole = np.where(known[..., None], light, levels)
    beyond = behind[..., None] + np.float32(1e-4)  # else hair and clothes would spread behind themselves
    sums = cv2.GaussianBlur(np.dstack([whole * beyond, beyond]), (0, 0), SOFT[alone] * side)
    soft = sums[..., :3] / sums[..., 3:]
    if alone:
        return np.asarray(levels + behind[..., None] * (soft - levels))
    there, share = _mirrored(light, soft, known & (behind > HALF))
    soft += share[..., None] * (there - soft)
    outline = cv2.GaussianBlur(behind, (0, 0), OUTLINE)[..., None]
    return np.asarray(levels + outline * (soft - levels))


def _mirrored(
    light: Levels, soft: Levels, known: Bool[np.ndarray, "s s"]
) -> tuple[Levels, Float32[np.ndarray, "s s"]]:
    """Return the levels that are `known`, mirrored at the edge of what is known, and how much they count.

    A wall, a curtain or a crowd goes on in its own texture so, where it would end in a fog. Where nothing is
    known at the mirrored place, the levels are `soft`.
    """
    import cv2

    if not known.any():
        return soft, np.zeros(known.shape, np.float32)
    hole = (~known).astype(np.uint8)
    away, labels = cv2.distanceTransformWithLabels(hole, cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)
    at = np.argwhere(known).astype(np.float32)
    nearest = np.zeros((labels.max() + 1, 2), np.float32)
    nearest[labels[known]] = at
    here = np.moveaxis(np.array(np.indices(known.shape), np.float32), 0, -1)
    back = cv2.blur(nearest[labels] - here, SMOOTH)
    y, x = (np.ascontiguousarray((here + 2 * back)[..., axis]) for axis in (0, 1))
    whole = np.dstack([light * known[..., None], known]).astype(np.float32)
    there = cv2.remap(whole, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT)
    sure = there[..., 3:] > HALF
    levels = np.where(sure, there[..., :3] / np.maximum(there[..., 3:], HALF), soft)
    off = cv2.GaussianBlur(np.abs(levels - soft).mean(axis=2), (0, 0), SURE)
    share = cv2.GaussianBlur(sure[..., 0].astype(np.float32), (0, 0), SURE) * np.exp(-((off / ALIKE) ** 2))
    share *= np.clip(REACH[1] - away / len(known) / REACH[0], 0, 1)
    return np.asarray(levels, np.float32), np.asarray(share, np.float32)


def _missed(
    levels: Levels, light: Levels, known: Bool[np.ndarray, "s s"], of: Bool[np.ndarray, "s s"]
) -> Levels:
    """Return by how much painted levels miss the photo's at the edge of what is known, and beyond it.

    Only the part of the edge counts that is `of` one class on both sides, and a short one counts less.
    """
    import cv2

    seen, painted = known & of, ~known & of
    beside = cv2.dilate(painted.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
    sides = [mean_around(light, seen), mean_around(levels, painted)]
    rim = (seen & beside).astype(np.float32)
    sure = np.float32(min(1.0, float(rim.sum()) / (EDGE * len(levels))))
    return sure * continued_from(np.clip(sides[0] - sides[1], -MISSED, MISSED), rim)


def mean_around(levels: Levels, where: Bool[np.ndarray, "_ _"]) -> Levels:
    """Return the mean of the levels that count in a small window around each pixel."""
    import cv2

    weight = where.astype(np.float32)
    total = cv2.blur(levels * weight[..., None], (WINDOW, WINDOW)).reshape(levels.shape)
    return np.asarray(total / np.maximum(cv2.blur(weight, (WINDOW, WINDOW)), 1e-3)[..., None])


def continued_from(levels: Levels, weight: Float32[np.ndarray, "h w"]) -> Levels:
    """Return levels where their weight is 1, and their smooth continuation elsewhere (push and pull)."""
    import cv2

    if min(weight.shape) < 4:
        mean = (levels * weight[..., None]).sum(axis=(0, 1)) / max(float(weight.sum()), 1e-6)
        return np.asarray(np.broadcast_to(mean, levels.shape), np.float32)
    sums, part = cv2.pyrDown(levels * weight[..., None]), cv2.pyrDown(weight)
    coarse = continued_from(sums / np.maximum(part, 1e-6)[..., None], np.minimum(4 * part, 1))
    wide = cv2.pyrUp(coarse, dstsize=weight.shape[::-1])
    return np.asarray(wide + weight[..., None] * (levels - wide))
