"""A canvas of labels: shapes are filled with numbers of colours, and edges are smoothed at the end."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import numpy as np
from jaxtyping import Bool, Float32, UInt8

from dpveil.core.region import Box
from dpveil.faces.drawn.shapes import Points
from dpveil.faces.geometry.align import Similarity

SHIFT: Final = 4
"""Binary digits of a position behind the point, as OpenCV takes them."""
FAR: Final = 1 << 26
"""Positions beyond this are as good as there, in parts of samples."""
Colour = tuple[int, int, int]
NAMES: Final = (
    "", "skin", "shade", "deep", "blush", "lip", "lip-dark", "hair", "hair-light", "hair-dark", "brow",
    "white", "iris", "pupil", "lash", "mouth", "tongue", "glass", "frame", "stubble", "cloth", "cloth-dark",
    "cloth-light", "metal", "crease", "teeth", "shine", "beard", "beard-light", "beard-dark",
)  # fmt: skip
NUMBERS: Final[Mapping[str, int]] = {name: number for number, name in enumerate(NAMES)}


class Canvas:
    """Samples of a box of pixels, each with the number of what covers it; `to` takes positions to pixels.

    `finer` samples lie along a pixel's side. Only pixelwise operations: a box may be drawn
    in parts, with the same result but for the rounding of an edge.
    """

    def __init__(self, box: Box, to: Similarity, finer: int) -> None:
        self.box = box
        matrix = to.matrix
        at = (matrix[:, 2] - (box.x, box.y) + 0.5) * finer - 0.5
        self._turn, self._move = matrix[:, :2].T * (finer << SHIFT), at * (1 << SHIFT)
        self.labels = np.zeros((box.h * finer, box.w * finer), np.uint8)

    def fill(self, name: str, *outlines: Points, within: Collection[str] = ()) -> None:
        """Fill what lies in an odd number of outlines, or only where one of `within` is seen."""
        import cv2

        number = NUMBERS[name]
        placed = [self._placed(outline) for outline in outlines]
        if not within:
            cv2.fillPoly(self.labels, placed, number, shift=SHIFT)
            return
        low = np.min([p.min(axis=0) for p in placed], axis=0) >> SHIFT
        high = (np.max([p.max(axis=0) for p in placed], axis=0) >> SHIFT) + 2
        height, width = self.labels.shape
        left, top = (int(max(0, v - 1)) for v in low)
        right, bottom = int(min(width, high[0])), int(min(height, high[1]))
        if left >= right or top >= bottom:
            return
        view = self.labels[top:bottom, left:right]
        shape = np.zeros(view.shape, np.uint8)
        cv2.fillPoly(shape, [p - (left << SHIFT, top << SHIFT) for p in placed], 1, shift=SHIFT)
        allowed = np.zeros(256, np.uint8)
        allowed[[NUMBERS[each] for each in within]] = 1
        seen = np.asarray(cv2.LUT(view, allowed), np.uint8)
        cv2.copyTo(np.full(view.shape, number, np.uint8), seen & shape, view)

    def _placed(self, outline: Points) -> np.ndarray:
        at = np.minimum(np.maximum(outline @ self._turn + self._move, -FAR), FAR)
        placed: np.ndarray = np.rint(at).astype(np.int32)
        return placed

    def shown(
        self, colours: Mapping[str, Colour]
    ) -> tuple[Float32[np.ndarray, "h w"], UInt8[np.ndarray, "h w 3"]]:
        """Return how much of each pixel is covered (0 to 1), and the mean colour of what covers it."""
        import cv2

        table = np.zeros((256, 1, 3), np.uint8)
        for name, colour in colours.items():
            table[NUMBERS[name], 0] = colour
        size = (self.box.w, self.box.h)
        painted = cv2.applyColorMap(self.labels, table)
        _, covered = cv2.threshold(self.labels, 0, 255, cv2.THRESH_BINARY)
        sums = cv2.resize(painted, size, interpolation=cv2.INTER_AREA)
        alpha = cv2.resize(covered, size, interpolation=cv2.INTER_AREA)
        part = alpha.astype(np.float32) / np.float32(255)
        edge: Bool[np.ndarray, "h w"] = (alpha > 0) & (alpha < 255)
        sums[edge] = np.clip(np.rint(sums[edge] / part[edge][:, None]), 0, 255).astype(np.uint8)
        return part, sums
