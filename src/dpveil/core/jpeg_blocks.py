"""The blocks of a JPEG: what it stores of a photo, and the same with other pixels in some of its blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from dpveil.core.array_types import Bool, Float32, Int16, UInt8, UInt16

BLOCK_SIDE: Final = 8  # side of a block in samples (ITU-T T.81 §A.1.1)
COSINES: Final = np.array(
    [
        [
            math.sqrt((2 - (u == 0)) / BLOCK_SIDE) * math.cos((2 * x + 1) * u * math.pi / 16)
            for x in range(BLOCK_SIDE)
        ]
        for u in range(BLOCK_SIDE)
    ],
    np.float32,
)
"""The orthonormal DCT of 8 samples, a row for each frequency (T.81 §A.3.3)."""
MIDDLE: Final = np.float32(128)
TO_YCC: Final = np.array(
    [[0.299, 0.587, 0.114], [-0.168735892, -0.331264108, 0.5], [0.5, -0.418687589, -0.081312411]], np.float32
)
"""Luma and the two chroma differences of sRGB levels (JFIF 1.02)."""
LARGEST_COEFFICIENT: Final = 1023  # largest coefficient that baseline entropy coding has room for


class Turn(NamedTuple):
    """A transposition, followed by reversing the columns (`flip_x`) and the rows (`flip_y`)."""

    transpose: bool
    flip_x: bool
    flip_y: bool

    def there(self, stored: np.ndarray) -> np.ndarray:
        """Return a view of stored pixels, rows × columns and more, as the photo is shown."""
        pixels = stored.swapaxes(0, 1) if self.transpose else stored
        return pixels[:: -1 if self.flip_y else 1, :: -1 if self.flip_x else 1]

    def back(self, shown: np.ndarray) -> np.ndarray:
        """Return a view of the pixels of a photo as they are stored."""
        pixels = shown[:: -1 if self.flip_y else 1, :: -1 if self.flip_x else 1]
        return pixels.swapaxes(0, 1) if self.transpose else pixels


TURNS: Final[dict[int, Turn]] = {
    1: Turn(False, False, False),
    2: Turn(False, True, False),
    3: Turn(False, True, True),
    4: Turn(False, False, True),
    5: Turn(True, False, False),
    6: Turn(True, True, False),
    7: Turn(True, True, True),
    8: Turn(True, False, True),
}
"""How a stored picture becomes upright, by its orientation in EXIF."""


@dataclass(frozen=True, eq=False, repr=False)
class JpegBlocks:
    """The quantised coefficients of a grey or Y'CbCr JPEG of `height` × `width` stored pixels.

    `planes[c]` holds the blocks of component c, rows × columns × 8 × 8, `tables[c]` its quantisation table
    and `factors[c]` its vertical and horizontal sampling factors; luma has the largest. The photo is shown
    turned by EXIF's `orientation`, 1 to 8. `missing[c]` says which blocks are unknown: they are 0.
    """

    height: int
    width: int
    planes: tuple[Int16[np.ndarray, "rows columns 8 8"], ...]
    tables: tuple[UInt16[np.ndarray, "8 8"], ...]
    factors: tuple[tuple[int, int], ...]
    orientation: int = 1
    missing: tuple[Bool[np.ndarray, "rows columns"], ...] | None = None

    @property
    def turn(self) -> Turn:
        """How stored pixels become those that are shown."""
        return TURNS[self.orientation]

    def side(self, component: int) -> tuple[int, int]:
        """Return the height and width of a component's blocks in pixels."""
        (down, across), (v, h) = self.factors[0], self.factors[component]
        return BLOCK_SIDE * down // v, BLOCK_SIDE * across // h

    def blocks_of(self, hidden: Bool[np.ndarray, "h w"], component: int) -> Bool[np.ndarray, "rows columns"]:
        """Return which blocks of a component hold a hidden pixel of the photo as it is shown."""
        stored, (tall, wide) = self.turn.back(hidden), self.side(component)
        return _any_row(_any_row(stored, tall).T, wide).T

    def without(self, hidden: Bool[np.ndarray, "h w"]) -> JpegBlocks:
        """Return the blocks that hold no hidden pixel."""
        missing = tuple(self.blocks_of(hidden, component) for component in range(len(self.planes)))
        pairs = zip(missing, self.planes, strict=True)
        planes = tuple(np.where(gone[:, :, None, None], np.int16(0), plane) for gone, plane in pairs)
        return replace(self, planes=planes, missing=missing)

    def chroma_of(self, hidden: Bool[np.ndarray, "h w"]) -> Bool[np.ndarray, "h w"]:
        """Return the pixels whose chroma follows from hidden ones; luma alone of a grey photo.

        Decoders smooth subsampled chroma, by one pixel beyond a block.
        """
        last = len(self.planes) - 1
        tall, wide = self.side(last)
        blocks = self.blocks_of(hidden, last).repeat(tall, 0).repeat(wide, 1)
        there = blocks[: self.height, : self.width]
        if (tall, wide) != (BLOCK_SIDE, BLOCK_SIDE):
            for axis in (0, 1):
                there = _wider(there, axis)
        return np.asarray(self.turn.there(there))

    def with_pixels(self, image: UInt8[np.ndarray, "h w c"]) -> JpegBlocks:
        """Return the same with the blocks that are `missing` coded from a photo, as it is shown."""
        if self.missing is None:
            return self
        planes, stored = [], self.turn.back(image)
        for component, (plane, missing) in enumerate(zip(self.planes, self.missing, strict=True)):
            rows, columns = np.nonzero(missing)
            tall, wide = self.side(component)
            down = np.minimum(rows[:, None] * tall + np.arange(tall), self.height - 1)
            across = np.minimum(columns[:, None] * wide + np.arange(wide), self.width - 1)
            levels = stored[down[:, :, None], across[:, None, :]].astype(np.float32)
            samples = levels[..., 0] if levels.shape[-1] == 1 else levels @ TO_YCC[component]
            samples = samples.reshape(
                len(rows), BLOCK_SIDE, tall // BLOCK_SIDE, BLOCK_SIDE, wide // BLOCK_SIDE
            ).mean(axis=(2, 4))
            codes = COSINES @ (samples - MIDDLE * (component == 0)) @ COSINES.T / self.tables[component]
            made = plane.copy()
            made[rows, columns] = np.clip(np.rint(codes), -LARGEST_COEFFICIENT, LARGEST_COEFFICIENT)
            planes.append(made)
        return replace(self, planes=tuple(planes), missing=None)

    def luma(self, rows: slice, columns: slice) -> Float32[np.ndarray, "h w"]:
        """Return the luma, 0 to 255, in a box of the photo as it is shown; each pixel is of its own block."""
        turn = self.turn
        size = (self.width, self.height) if turn.transpose else (self.height, self.width)
        down, across = (
            (n - o.stop, n - o.start) if flip else (o.start, o.stop)
            for n, o, flip in zip(size, (rows, columns), (turn.flip_y, turn.flip_x), strict=True)
        )
        (top, end), (left, right) = (across, down) if turn.transpose else (down, across)
        first, start = top // BLOCK_SIDE, left // BLOCK_SIDE
        blocks = self.planes[0][first : -(-end // BLOCK_SIDE), start : -(-right // BLOCK_SIDE)]
        pixels = COSINES.T @ (blocks * self.tables[0].astype(np.float32)) @ COSINES + MIDDLE
        pixels = pixels.transpose(0, 2, 1, 3).reshape(
            blocks.shape[0] * BLOCK_SIDE, blocks.shape[1] * BLOCK_SIDE
        )
        part = pixels[
            top - first * BLOCK_SIDE : end - first * BLOCK_SIDE,
            left - start * BLOCK_SIDE : right - start * BLOCK_SIDE,
        ]
        return np.asarray(np.clip(turn.there(part), 0, 255))


def _any_row(mask: Bool[np.ndarray, "h w"], step: int) -> Bool[np.ndarray, "rows w"]:
    """Return where any of every `step` rows is true, in a tenth of the time of NumPy's `reduceat`."""
    found = mask[::step].copy()
    for first in range(1, step):
        rows = mask[first::step]
        found[: len(rows)] |= rows
    return found


def _wider(mask: Bool[np.ndarray, "h w"], axis: int) -> Bool[np.ndarray, "h w"]:
    along, wider = np.moveaxis(mask, axis, 0), np.moveaxis(mask.copy(), axis, 0)
    wider[1:] |= along[:-1]
    wider[:-1] |= along[1:]
    return np.moveaxis(wider, 0, axis)
