"""Checks that a released image has the level of a fill wherever its certificate promises one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import cv2
import numpy as np
from jaxtyping import Bool, UInt8

from dpveil.catalogue import stated
from dpveil.core.certificate import Certificate
from dpveil.core.region import Box
from dpveil.mechanisms.pixel.fill import Fill


def fill_problems(certificate: Certificate, image: UInt8[np.ndarray, "h w c"]) -> Iterator[str]:
    """Yield the filled regions that show another level; every region is inside of the image.

    Of a mask no more than its number of pixels is known: at least so many must have the level. Pixels in the
    box of a region that another method replaces may be drawn over, and are not compared; nothing is where
    steps of post-processing follow. Takes time in proportion to the pixels, however many regions there are.
    """
    if certificate.post_processing or not certificate.guarantees:
        return
    method = stated(certificate.method, certificate.parameters)
    replaced = [(record, method.of_region(record)) for record in certificate.regions]
    fills = [(record, by.level) for record, by in replaced if isinstance(by, Fill)]
    others = [record.box for record, by in replaced if not isinstance(by, Fill)]
    levels = {level for _, level in fills}
    if len(levels) != 1:  # none, or several, of which it is not known which is drawn last
        return
    level = int(levels.pop())
    counts = _counts(_has(level, image) | _any(others, image.shape[0], image.shape[1]))
    for record, _ in fills:
        box = record.box
        right, below = box.x + box.w, box.y + box.h
        filled = (
            int(counts[below, right]) - counts[box.y, right] - counts[below, box.x] + counts[box.y, box.x]
        )
        if filled < (box.w * box.h if record.masked is None else record.masked):
            yield f"the region {record.in_words()} is not filled with level {level}"


def _has(level: int, image: UInt8[np.ndarray, "h w c"]) -> Bool[np.ndarray, "h w"]:
    """Return where all channels have a level."""
    same = image[:, :, 0] == level
    for channel in range(1, image.shape[2]):
        same &= image[:, :, channel] == level
    return np.asarray(same)


def _any(boxes: Sequence[Box], height: int, width: int) -> Bool[np.ndarray, "h w"]:
    """Return which pixels are in a box; every corner changes how many boxes there are from there on."""
    if not boxes:
        return np.zeros((height, width), np.bool_)
    changes = np.zeros((height + 1, width + 1), np.int16)  # enough for the regions of a certificate
    for box in boxes:
        changes[box.y, box.x] += 1
        changes[box.y + box.h, box.x + box.w] += 1
        changes[box.y + box.h, box.x] -= 1
        changes[box.y, box.x + box.w] -= 1
    for axis in (0, 1):
        np.cumsum(changes, axis=axis, dtype=np.int16, out=changes)
    return np.asarray(changes[:height, :width] > 0)


def _counts(set_: Bool[np.ndarray, "h w"]) -> np.ndarray:
    """Return how many pixels are set above and left of each corner of a pixel, (h + 1) × (w + 1)."""
    return np.asarray(cv2.integral(set_.view(np.uint8), sdepth=cv2.CV_32S))
