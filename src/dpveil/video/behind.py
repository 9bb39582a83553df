"""What is behind a head in a clip: a smooth continuation of the pixels around, the same for the same pixels.

Pixels are averaged at low resolution and continued as a membrane would (Pérez, Gangnet & Blake 2003, with no
gradient), on a pyramid. That takes a millisecond or two and does not flicker: every pixel is a mean of many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float32, UInt8

from dpveil.core.region import Box
from dpveil.video.surroundings import Surroundings, enlarged, halvings_to, within

SIDE: Final = 64
"""Longer side of what is filled, in pixels of the smaller frame, about."""
MORE: Final = 16
"""Pixels around it there that are read."""
SURE: Final = 24
"""Share of a small pixel, of 255, that must be known for it to count."""
LEAST: Final = 4
"""Least side of a picture that is halved again."""
ROUNDS: Final = 6
"""Sweeps by which the continuation is smoothed at each size."""
GREY: Final = 128
"""What is shown where nothing around is known."""

Levels = Float32[np.ndarray, "h w 3"]


def room_of(boxes: Sequence[Box]) -> Box:
    """Return the bounding box of boxes."""
    left, top = min(box.x for box in boxes), min(box.y for box in boxes)
    right, bottom = max(box.x + box.w for box in boxes), max(box.y + box.h for box in boxes)
    return Box(left, top, right - left, bottom - top)


def behind(around: Surroundings, room: Box) -> UInt8[np.ndarray, "h w 3"]:
    """Return a part of a frame as a smooth continuation of what is known around it."""
    halvings = halvings_to(max(room.w, room.h), SIDE)
    part = within(room, halvings, MORE, around.smaller(halvings)[1].shape)
    mean, known = around.mean(halvings, part)
    if not (known > SURE).any():
        return np.full((room.h, room.w, 3), GREY, np.uint8)
    share = np.where(known > SURE, known, 0).astype(np.float32) / np.float32(255)
    small = np.clip(np.rint(_continued(mean, share)), 0, 255).astype(np.uint8)
    return enlarged(small, part, halvings, room)


def _continued(levels: Levels, share: Float32[np.ndarray, "h w"]) -> Levels:
    """Return levels where their `share` is 1, and a nearly harmonic continuation elsewhere (multigrid)."""
    import cv2

    if min(share.shape) < LEAST:
        mean = (levels * share[..., None]).sum(axis=(0, 1)) / max(float(share.sum()), 1e-6)
        return np.asarray(np.broadcast_to(mean, levels.shape), np.float32)
    sums, part = cv2.pyrDown(levels * share[..., None]), cv2.pyrDown(share)
    coarse = _continued(sums / np.maximum(part, 1e-6)[..., None], np.minimum(4 * part, 1))
    smooth = cv2.pyrUp(coarse, dstsize=share.shape[::-1])
    shares = cv2.merge([share] * 3)  # numpy takes longer where it repeats values over channels
    fixed, free = shares * levels, 1 - shares
    for _ in range(ROUNDS):
        smooth = cv2.blur(fixed + free * smooth, (3, 3), borderType=cv2.BORDER_REPLICATE)
    return np.asarray(fixed + free * smooth, np.float32)
