"""How much a face changes from frame to frame: that of a rendered clip beside that of the original."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from jaxtyping import Float32, UInt8

from dpveil.errors import InvalidParameter
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.head import between
from dpveil.faces.geometry.head_frame import HeadFrame, in_head, pixel_grid
from dpveil.faces.geometry.painted import shrunk

SIDE: Final = 128
"""Side of the head's frame in which pictures are compared, in pixels."""

Image = UInt8[np.ndarray, "h w 3"]


def change(images: Iterable[Image], heads: Iterable[Similarity]) -> float:
    """Return the mean absolute difference, in levels, of a head between consecutive frames.

    Each frame is resampled to the head's frame by `heads`, which map pictures to one with a side of 1, so
    that what moves as they state does not count. Only pixels of a head count. Raises `InvalidParameter` for
    fewer than two frames.
    """
    head = in_head(pixel_grid(SIDE))
    before: Float32[np.ndarray, "n 3"] | None = None
    found: list[float] = []
    for image, pose in zip(images, heads, strict=True):
        there = between(pose, HeadFrame(1), HeadFrame(SIDE))
        crop = shrunk(image, there, SIDE)[head].astype(np.float32)
        if before is not None:
            found.append(float(np.abs(crop - before).mean()))
        before = crop
    if not found:
        raise InvalidParameter("images", len(found), "are fewer than two", hint="give consecutive frames")
    return float(np.mean(found))


def calmness(released: Iterable[Image], originals: Iterable[Image], heads: Iterable[Similarity]) -> float:
    """Return the change of a released head relative to that of the original one: 1 or less is calmer.

    `heads` say where the original head is, as exactly as is known: what slides against it counts.
    """
    poses = list(heads)
    return change(released, poses) / max(change(originals, poses), 1e-9)
