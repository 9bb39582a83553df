"""What an attacker sees of a photo: its largest replaced region, and that as a small picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from dpveil.attacks.base import Background, View
from dpveil.core.array_types import Float64, UInt8
from dpveil.core.region import Box
from dpveil.opencv import cv2

OUTSIDE: Final = 127  # level of what lies around a region within its box
TOP: Final = 255.0


def largest_box(view: View) -> Box | None:
    """Return the box of the largest region, by its pixels; None if nothing is hidden."""
    _, _, stats, _ = cv2.connectedComponentsWithStats(view.hidden.astype(np.uint8), connectivity=8)
    if len(stats) < 2:  # the first is the background
        return None
    x, y, w, h, _ = (int(one) for one in stats[1 + stats[1:, cv2.CC_STAT_AREA].argmax()])
    return Box(x, y, w, h)


def patch(view: View) -> UInt8[np.ndarray, "h w c"]:
    """Return the largest region, grey where its box holds pixels that were not replaced.

    The whole photo if nothing was.
    """
    box = largest_box(view)
    if box is None:
        return view.image
    inner = view.hidden[box.slices]
    return np.where(inner[..., None], view.image[box.slices], np.uint8(OUTSIDE))


def has_colour(background: Background) -> bool:
    """Whether some of the attacker's photos or releases have three channels: then it looks at colours."""
    return any(view.image.shape[2] == 3 for view in (*background.clean, *background.released))


def small(
    views: Sequence[View], side: tuple[int, int], *, colour: bool = False
) -> Float64[np.ndarray, "n h w c"]:
    """Return patches with `side` columns and rows, 0 to 1, of one channel or, with `colour`, three."""
    out = np.empty((len(views), side[1], side[0], 3 if colour else 1))
    for row, view in enumerate(views):
        seen = patch(view).astype(np.float32)
        seen = np.broadcast_to(seen, (*seen.shape[:2], 3)) if colour else seen.mean(axis=2, keepdims=True)
        smaller = side[0] * side[1] <= seen.shape[0] * seen.shape[1]
        way = cv2.INTER_AREA if smaller else cv2.INTER_LINEAR
        resized = cv2.resize(np.ascontiguousarray(seen), side, interpolation=way)
        out[row] = resized.reshape(out.shape[1:]) / TOP
    return out
