"""The blocks of a JPEG: what it stores of a photo, and the same with other pixels in some of its blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from dpveil.core.arrays import Bool, Float32, Int16, UInt8, UInt16

SIDE: Final = 8
"""Side of a block in samples (ITU-T T.81 §A.1.1)."""
COSINES: Final = np.array(
    [
        [math.sqrt((2 - (u == 0)) / SIDE) * math.cos((2 * x + 1) * u * math.pi / 16) for x in range(SIDE)]
        for u in range(SIDE)
    ],
    np.float32,
)
"""The orthonormal DCT of 8 samples, a row for each frequency (T.81 §A.3.3)."""
MIDDLE: Final = np.float32(128)
TO_YCC: Final = np.array(
    [[0.299, 0.587, 0.114], [-0.168735892, -0.331264108, 0.5], [0.5, -0.418687589, -0.081312411]], np.float32
)
"""Luma and the two chroma differences of sRGB levels (JFIF 1.02)."""
MOST: Final = 1023
"""Largest coefficient that baseline entropy coding has room for."""
BINS: Final = 17
STEP: Final = np.float32(16)
"""Steps of lightness in which chroma is averaged, and their distance in levels."""
ALIKE: Final = (5.0, 40.0)
"""Standard deviations, in pixels, of the weights of what is as light, and of skin that is."""
SKIN: Final = np.float32(0.5)
"""How much such skin counts."""
NEAR: Final = ((3.0, 0.02), (10.0, 1e-3), (40.0, 1e-5))
"""Standard deviations of the weights of anything near, and how much it counts beside that."""
FINE: Final = 2.5
"""Standard deviation, in pixels, that a Gaussian keeps in a downscaled picture."""
LARGEST: Final = 160
"""Longer side, in pixels, of a picture in which chroma is averaged; larger ones are downscaled."""


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
        return SIDE * down // v, SIDE * across // h

    def touched(self, hidden: Bool[np.ndarray, "h w"], component: int) -> Bool[np.ndarray, "rows columns"]:
        """Return which blocks of a component hold a hidden pixel of the photo as it is shown."""
        stored, (tall, wide) = self.turn.back(hidden), self.side(component)
        rows = np.logical_or.reduceat(stored, np.arange(0, self.height, tall), axis=0)
        return np.asarray(np.logical_or.reduceat(rows, np.arange(0, self.width, wide), axis=1))

    def without(self, hidden: Bool[np.ndarray, "h w"]) -> JpegBlocks:
        """Return the blocks that hold no hidden pixel."""
        missing = tuple(self.touched(hidden, component) for component in range(len(self.planes)))
        pairs = zip(missing, self.planes, strict=True)
        planes = tuple(np.where(gone[:, :, None, None], np.int16(0), plane) for gone, plane in pairs)
        return replace(self, planes=planes, missing=missing)

    def near(self, hidden: Bool[np.ndarray, "h w"]) -> Bool[np.ndarray, "h w"]:
        """Return the pixels whose chroma follows from hidden ones; luma alone of a grey photo.

        Decoders smooth subsampled chroma, by one pixel beyond a block.
        """
        import cv2

        last = len(self.planes) - 1
        tall, wide = self.side(last)
        blocks = self.touched(hidden, last).repeat(tall, 0).repeat(wide, 1)
        there = self.turn.there(blocks[: self.height, : self.width])
        if (tall, wide) == (SIDE, SIDE):
            return np.asarray(there)
        return np.asarray(cv2.dilate(there.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0)

    def drawn(self, image: UInt8[np.ndarray, "h w c"]) -> JpegBlocks:
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
            samples = samples.reshape(len(rows), SIDE, tall // SIDE, SIDE, wide // SIDE).mean(axis=(2, 4))
            codes = COSINES @ (samples - MIDDLE * (component == 0)) @ COSINES.T / self.tables[component]
            made = plane.copy()
            made[rows, columns] = np.clip(np.rint(codes), -MOST, MOST)
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
        first, start = top // SIDE, left // SIDE
        blocks = self.planes[0][first : -(-end // SIDE), start : -(-right // SIDE)]
        pixels = COSINES.T @ (blocks * self.tables[0].astype(np.float32)) @ COSINES + MIDDLE
        pixels = pixels.transpose(0, 2, 1, 3).reshape(blocks.shape[0] * SIDE, blocks.shape[1] * SIDE)
        part = pixels[top - first * SIDE : end - first * SIDE, left - start * SIDE : right - start * SIDE]
        return np.asarray(np.clip(turn.there(part), 0, 255))


def recoloured(
    image: UInt8[np.ndarray, "h w 3"],
    known: Bool[np.ndarray, "h w"],
    wanted: Bool[np.ndarray, "h w"],
    luma: Float32[np.ndarray, "h w"],
    *,
    skin: Float32[np.ndarray, "h w"] | None = None,
) -> None:
    """Give the `wanted` pixels of an image this luma, and the chroma of what is `known` near them.

    It is that of what is as light: of anything near, or of `skin` farther away, by how sure that is, 0 to 1.
    Changes `image`, of which nothing but known pixels is read.
    """
    import cv2

    if not wanted.any():
        return
    levels = image.astype(np.float32) * known[..., None]
    there = (known | wanted).astype(np.float32)
    y = np.where(known, levels @ TO_YCC[0], luma) * there  # of hidden pixels, luma is not to be used either
    sure = known.astype(np.float32)[..., None]
    both = np.dstack([sure, levels @ TO_YCC[1:].T * sure])
    ratio = min(1.0, LARGEST / max(known.shape))
    light = y
    if ratio < 1:
        size = max(1, round(known.shape[1] * ratio)), max(1, round(known.shape[0] * ratio))
        light, there, both = (cv2.resize(p, size, interpolation=cv2.INTER_AREA) for p in (y, there, both))
        light = np.asarray(light / np.maximum(there, np.float32(1e-6)))
        skin = None if skin is None else cv2.resize(skin, size, interpolation=cv2.INTER_AREA)
    sums = np.sum([worth * _blurred(both, sigma) for sigma, worth in NEAR], axis=0)
    if skin is None:
        sums += _as_light(light, both, ALIKE[0])
    else:
        sums += SKIN * _as_light(light, both * skin[..., None], ALIKE[1])
    chroma = sums[..., 1:] / (sums[..., :1] + np.float32(1e-9))
    blue, red = cv2.split(cv2.resize(chroma, known.shape[::-1], interpolation=cv2.INTER_LINEAR))
    rgb = cv2.merge([y + 1.402 * red, y - 0.344136286 * blue - 0.714136286 * red, y + 1.772 * blue])
    image[wanted] = np.clip(np.rint(rgb[wanted]), 0, 255).astype(np.uint8)


def _as_light(
    y: Float32[np.ndarray, "h w"], both: Float32[np.ndarray, "h w 3"], sigma: float
) -> Float32[np.ndarray, "h w 3"]:
    """Return the sums over what is near each pixel and as light: how much is known, and its chroma.

    A bilateral grid (Chen, Paris & Durand 2007).
    """
    import cv2

    place = np.clip(y, 0, 255) / STEP
    low = np.minimum(place.astype(np.int64), BINS - 2)
    part = place - low
    shares = np.zeros((*y.shape, BINS), np.float32)
    np.put_along_axis(shares, np.stack([low, low + 1], axis=-1), np.stack([1 - part, part], axis=-1), axis=-1)
    bins = np.clip(low[..., None] + np.arange(-1, 3), 0, BINS - 1)  # of a mean over three steps
    worth = np.stack([1 - part, np.ones_like(part), np.ones_like(part), part], axis=-1)
    soft = (_blurred(shares * layer[..., None], sigma) for layer in cv2.split(both))
    return np.asarray(
        cv2.merge([(np.take_along_axis(one, bins, axis=-1) * worth).sum(axis=-1) for one in soft])
    )


def _blurred(planes: Float32[np.ndarray, "h w c"], sigma: float) -> Float32[np.ndarray, "h w c"]:
    """Return planes after a Gaussian, which is taken in smaller ones as far as that shows nothing."""
    import cv2

    height, width, count = planes.shape
    part = max(1, round(sigma / FINE))
    if part == 1:
        return np.asarray(cv2.GaussianBlur(planes, (0, 0), sigma))
    rows, columns = -(-height // part), -(-width // part)
    whole = np.pad(planes, ((0, rows * part - height), (0, columns * part - width), (0, 0)))
    small = whole.reshape(rows, part, columns, part, count).mean(axis=(1, 3))
    small = cv2.GaussianBlur(small, (0, 0), sigma / part).reshape(small.shape)
    large = cv2.resize(small, (columns * part, rows * part), interpolation=cv2.INTER_LINEAR)
    return np.asarray(large[:height, :width])
