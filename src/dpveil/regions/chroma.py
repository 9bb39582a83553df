"""Chroma beside the regions of a JPEG, where its blocks are larger than those of luma."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import cv2
import numpy as np

from dpveil.core.arrays import Bool, Float32, UInt8
from dpveil.core.jpeg_blocks import TO_YCC, JpegBlocks
from dpveil.core.photo import Photo
from dpveil.core.region import Region, hidden_pixels

SURROUNDINGS: Final = 24  # how far around a region colours are looked for that go on there, in pixels
BINS: Final = 17
STEP: Final = np.float32(16)  # steps of lightness in which chroma is averaged, and their distance in levels
ALIKE: Final = 3.0  # standard deviation, in pixels, of the weights of what is as light
SKIN: Final = 0.01  # how much skin counts that is as light, wherever it is
FRESH: Final = np.float32(1.2)
"""How much more colour the skin beside a region has than what is seen farther away: with it, the mean error
there is least in 48 photos of LFW (4.0 in a* and b*; 4.4 without)."""
SPREAD: Final = 1.5  # how much more the lightness of skin may differ than that which is known does
NEAR_WEIGHTS: Final = ((3.0, 0.02), (10.0, 1e-3), (40.0, 1e-5))
"""Standard deviations of the weights of anything near, and how much it counts beside that."""
FINE: Final = 2.5  # standard deviation, in pixels, that a Gaussian keeps in a downscaled picture
LARGEST_SIDE: Final = 160
"""Longer side, in pixels, of a picture in which chroma is averaged; larger ones are downscaled, for what is
subsampled and averaged has little detail."""


def chroma_beside(
    blocks: JpegBlocks, regions: Sequence[Region], hidden: Bool[np.ndarray, "h w"]
) -> Bool[np.ndarray, "h w"]:
    """Return which pixels beside the regions, which are `hidden`, have a chroma that follows from them.

    There are none where regions have grown to blocks of chroma; blocks of luma are smaller.
    """
    before = hidden_pixels([region.before or region for region in regions], *hidden.shape)
    return np.asarray(blocks.chroma_of(before) & ~hidden)


def keep_blocks(
    photo: Photo, image: UInt8[np.ndarray, "h w c"], regions: Sequence[Region]
) -> tuple[UInt8[np.ndarray, "h w c"], JpegBlocks | None]:
    """Return an image drawn for a JPEG, and the photo's blocks that hold nothing of its regions.

    Beside the regions, chroma that follows from them becomes that of what is near and as light. No blocks of
    other photos, and where all is hidden: then nothing of how the file was made is shown either.
    """
    if photo.blocks is None:
        return image, None
    hidden = hidden_pixels(regions, photo.height, photo.width)
    if hidden.all():
        return image, None
    blocks = photo.blocks()
    beside = chroma_beside(blocks, regions, hidden)
    if beside.any():
        image = image.copy()
        for region in regions:
            box = region.box.wider(SURROUNDINGS, photo.width, photo.height).slices
            recolour(image[box], ~beside[box], beside[box], blocks.luma(*box))
    return image, blocks.without(hidden)


def recolour(
    image: UInt8[np.ndarray, "h w 3"],
    known: Bool[np.ndarray, "h w"],
    wanted: Bool[np.ndarray, "h w"],
    luma: Float32[np.ndarray, "h w"],
    *,
    skin: Float32[np.ndarray, "h w"] | None = None,
) -> None:
    """Give the `wanted` pixels of an image this luma, and the chroma of what is `known` near them.

    It is that of what is as light, and of skin where a pixel is as light as that: `skin` says how like skin
    what is known is, 0 to 1. Changes `image`, of which nothing but known pixels is read.
    """
    if not wanted.any():
        return
    levels = image.astype(np.float32) * known[..., None]
    there = (known | wanted).astype(np.float32)
    y = np.where(known, levels @ TO_YCC[0], luma) * there  # of hidden pixels, luma is not to be used either
    sure = known.astype(np.float32)[..., None]
    both = np.dstack([sure, levels @ TO_YCC[1:].T * sure])
    ratio = min(1.0, LARGEST_SIDE / max(known.shape))
    light = y
    if ratio < 1:
        size = max(1, round(known.shape[1] * ratio)), max(1, round(known.shape[0] * ratio))
        light, there, both = (cv2.resize(p, size, interpolation=cv2.INTER_AREA) for p in (y, there, both))
        light = np.asarray(light / np.maximum(there, np.float32(1e-6)))
        skin = None if skin is None else cv2.resize(skin, size, interpolation=cv2.INTER_AREA)
    sums = np.sum([worth * _blur(both, sigma) for sigma, worth in NEAR_WEIGHTS], axis=0)
    sums += _as_light(light, both, ALIKE)
    if skin is not None:
        sums += _of_skin(light, both, skin)
    chroma = sums[..., 1:] / (sums[..., :1] + np.float32(1e-9))
    blue, red = cv2.split(cv2.resize(chroma, known.shape[::-1], interpolation=cv2.INTER_LINEAR))
    rgb = cv2.merge([y + 1.402 * red, y - 0.344136286 * blue - 0.714136286 * red, y + 1.772 * blue])
    image[wanted] = np.clip(np.rint(rgb[wanted]), 0, 255).astype(np.uint8)


def _of_skin(
    light: Float32[np.ndarray, "h w"], both: Float32[np.ndarray, "h w 3"], skin: Float32[np.ndarray, "h w"]
) -> Float32[np.ndarray, "h w 3"]:
    # How much pixels may be skin by their lightness, and the chroma that it has in that light.
    total = float((skin * both[..., 0]).sum())
    if total < 1:
        return np.zeros_like(both)
    mean = float((skin * light * both[..., 0]).sum()) / total
    spread = SPREAD * float(np.sqrt((skin * both[..., 0] * (light - mean) ** 2).sum() / total)) + STEP
    chroma = (skin[..., None] * both[..., 1:]).sum(axis=(0, 1)) / total
    worth = SKIN * np.exp(-0.5 * ((light - mean) / spread) ** 2)
    fainter = np.sqrt(np.maximum(light, 0) / max(mean, 1.0))  # of highlights, less than in proportion
    return np.asarray(np.dstack([worth, (FRESH * worth * fainter)[..., None] * chroma]), np.float32)


def _as_light(
    y: Float32[np.ndarray, "h w"], both: Float32[np.ndarray, "h w 3"], sigma: float
) -> Float32[np.ndarray, "h w 3"]:
    """Return the sums over what is near each pixel and as light: how much is known, and its chroma.

    A bilateral grid (Chen, Paris & Durand 2007).
    """
    place = np.clip(y, 0, 255) / STEP
    low = np.minimum(place.astype(np.int64), BINS - 2)
    part = place - low
    shares = np.zeros((*y.shape, BINS), np.float32)
    np.put_along_axis(shares, np.stack([low, low + 1], axis=-1), np.stack([1 - part, part], axis=-1), axis=-1)
    bins = np.clip(low[..., None] + np.arange(-1, 3), 0, BINS - 1)  # of a mean over three steps
    worth = np.stack([1 - part, np.ones_like(part), np.ones_like(part), part], axis=-1)
    soft = (_blur(shares * layer[..., None], sigma) for layer in cv2.split(both))
    return np.asarray(
        cv2.merge([(np.take_along_axis(one, bins, axis=-1) * worth).sum(axis=-1) for one in soft])
    )


def _blur(planes: Float32[np.ndarray, "h w c"], sigma: float) -> Float32[np.ndarray, "h w c"]:
    """Return planes after a Gaussian, which is taken in smaller ones as far as that shows nothing."""
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
