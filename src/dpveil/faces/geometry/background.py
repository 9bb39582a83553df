"""What a network painted around a face, finished: calm colours, and a background out of focus."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Bool, Float32

from dpveil.faces.geometry.head_frame import OVAL

HALF: Final = 0.5
"""Share of the background above which a pixel is behind a head."""
SOFT: Final = (0.03, 0.06)
"""Standard deviation of the blur behind a head, in units of the frame's side: with some of the photo known,
and with nothing."""
WINDOW: Final = 5
"""Side of the window, in pixels of the frame, in which both sides of an edge are compared."""
MISSED: Final = 40.0
"""Largest correction of a painted background, in levels."""

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


def out_of_focus(
    levels: Levels, light: Levels, known: Bool[np.ndarray, "s s"], behind: Float32[np.ndarray, "s s"]
) -> Levels:
    """Return painted levels out of focus where they are `behind` the head, by shares from 0 to 1.

    `light` are the levels of the photo where they are `known`: what is painted passes into them.
    """
    import cv2

    side, alone = len(levels), not known.any()
    near = levels if alone else levels + _missed(levels, light, known, behind > HALF)
    whole = np.where(known[..., None], light, near)
    beyond = behind[..., None] + np.float32(1e-4)  # else hair and clothes would spread behind themselves
    sums = cv2.GaussianBlur(np.dstack([whole * beyond, beyond]), (0, 0), SOFT[alone] * side)
    soft = sums[..., :3] / sums[..., 3:]
    return np.asarray(levels + behind[..., None] * (soft - levels))


def _missed(
    levels: Levels, light: Levels, known: Bool[np.ndarray, "s s"], behind: Bool[np.ndarray, "s s"]
) -> Levels:
    """Return by how much painted levels miss the photo's at the edge of what is known, and beyond it.

    Only the part of the edge counts that is `behind` a head.
    """
    import cv2

    seen, painted = known & behind, ~known & behind
    beside = cv2.dilate(painted.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
    sides = [mean_around(light, seen), mean_around(levels, painted)]
    rim = (seen & beside).astype(np.float32)
    return _continued(np.clip(sides[0] - sides[1], -MISSED, MISSED), rim)


def mean_around(levels: Levels, where: Bool[np.ndarray, "_ _"]) -> Levels:
    """Return the mean of the levels that count in a small window around each pixel."""
    import cv2

    weight = where.astype(np.float32)
    total = cv2.blur(levels * weight[..., None], (WINDOW, WINDOW)).reshape(levels.shape)
    return np.asarray(total / np.maximum(cv2.blur(weight, (WINDOW, WINDOW)), 1e-3)[..., None])


def _continued(levels: Levels, weight: Float32[np.ndarray, "h w"]) -> Levels:
    """Return levels where their weight is 1, and their smooth continuation elsewhere (push and pull)."""
    import cv2

    if min(weight.shape) < 4:
        mean = (levels * weight[..., None]).sum(axis=(0, 1)) / max(float(weight.sum()), 1e-6)
        return np.asarray(np.broadcast_to(mean, levels.shape), np.float32)
    sums, part = cv2.pyrDown(levels * weight[..., None]), cv2.pyrDown(weight)
    coarse = _continued(sums / np.maximum(part, 1e-6)[..., None], np.minimum(4 * part, 1))
    wide = cv2.pyrUp(coarse, dstsize=weight.shape[::-1])
    return np.asarray(wide + weight[..., None] * (levels - wide))
