"""Chroma beside the regions of a JPEG, where its blocks are larger than those of luma."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from dpveil.core.array_types import Bool, Float32, UInt8
from dpveil.core.jpeg_blocks import TO_YCC, JpegBlocks
from dpveil.core.photo import Photo
from dpveil.core.region import Region, hidden_pixels
from dpveil.opencv import cv2

SURROUNDINGS: Final = 24  # how far around a region colours are looked for that go on there, in pixels
NEAR: Final = ((3.0, 1.0), (10.0, 1e-2), (40.0, 1e-4))
"""Standard deviations, in pixels, of the weights of what is near, and how much it counts: what is farther
decides where little is nearer."""
NOISE: Final = np.float32(60)  # variance of lightness by which chroma hardly follows it: that of noise
LIMIT: Final = np.float32(2), np.float32(4)
"""How far chroma follows lightness beyond its mean: in standard deviations, and in levels more."""
ALIKE: Final = np.float32(16)  # levels by which a pixel may be lighter, beside that deviation, and be alike
SKIN: Final = 0.01  # how much skin counts that is as light, wherever it is
SPREAD: Final = 1.5  # how much more the lightness of skin may differ than that which is known does
FINE: Final = 2.5  # standard deviation, in pixels, that a Gaussian keeps in a downscaled picture
LARGEST_SIDE: Final = 128
"""Longer side, in pixels, of a picture in which chroma is averaged; larger ones are downscaled, for what is
subsampled and averaged has little detail."""
Mask = Bool[np.ndarray, "h w"]
Image = UInt8[np.ndarray, "h w c"]
Planes = Float32[np.ndarray, "h w 3"]
Plane = Float32[np.ndarray, "h w"]


def chroma_beside(blocks: JpegBlocks, regions: Sequence[Region], hidden: Mask) -> Mask:
    """Return which pixels beside the regions, which are `hidden`, have a chroma that follows from them.

    There are none where regions have grown to blocks of chroma; blocks of luma are smaller.
    """
    before = hidden_pixels([region.before or region for region in regions], *hidden.shape)
    return np.asarray(blocks.chroma_of(before) & ~hidden)


def keep_blocks(photo: Photo, image: Image, regions: Sequence[Region]) -> tuple[Image, JpegBlocks | None]:
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
    image: UInt8[np.ndarray, "h w 3"], known: Mask, wanted: Mask, luma: Plane, *, skin: Plane | None = None
) -> None:
    """Give the `wanted` pixels of an image this luma, and the chroma of what is `known` near them.

    It is that of what is as light, and of skin where a pixel is as light as that: `skin` says how like skin
    what is known is, 0 to 1. Changes `image`, of which nothing but known pixels is read.
    """
    if not wanted.any():
        return
    mask = known.astype(np.uint8)
    levels = cv2.transform(cv2.copyTo(image, mask).astype(np.float32), TO_YCC)
    there = (known | wanted).astype(np.float32)
    y = np.where(known, levels[..., 0], luma) * there  # of hidden pixels, luma is not to be used either
    both = cv2.merge([mask.astype(np.float32), *cv2.split(levels)[1:]])
    ratio = min(1.0, LARGEST_SIDE / max(known.shape))
    light = y
    if ratio < 1:
        size = max(1, round(known.shape[1] * ratio)), max(1, round(known.shape[0] * ratio))
        light, there, both = (cv2.resize(p, size, interpolation=cv2.INTER_AREA) for p in (y, there, both))
        light = np.asarray(light / np.maximum(there, np.float32(1e-6)))
        skin = None if skin is None else cv2.resize(skin, size, interpolation=cv2.INTER_AREA)
    count, *colours = _as_light(light, both)
    if skin is not None:
        more, *others = _of_skin(light, both, skin)
        count, colours = count + more, [a + b for a, b in zip(colours, others, strict=True)]
    chroma = cv2.merge([colour / (count + np.float32(1e-9)) for colour in colours])
    blue, red = cv2.resize(chroma, known.shape[::-1], interpolation=cv2.INTER_LINEAR)[wanted].T
    y = y[wanted]
    rgb = np.stack([y + 1.402 * red, y - 0.344136286 * blue - 0.714136286 * red, y + 1.772 * blue], axis=1)
    image[wanted] = np.clip(np.rint(rgb), 0, 255).astype(np.uint8)


def _of_skin(light: Plane, both: Planes, skin: Plane) -> tuple[Plane, Plane, Plane]:
    """Return how much pixels may be skin by their lightness, and this times the chroma in that light."""
    known, blue, red = cv2.split(both)
    total = float((skin * known).sum())
    if total < 1:
        return np.zeros_like(light), np.zeros_like(light), np.zeros_like(light)
    mean = float((skin * light * known).sum()) / total
    spread = SPREAD * float(np.sqrt((skin * known * (light - mean) ** 2).sum() / total)) + ALIKE
    worth = np.float32(SKIN) * np.exp(-0.5 * ((light - np.float32(mean)) / np.float32(spread)) ** 2)
    fainter = worth * np.sqrt(np.maximum(light, 0) / np.float32(max(mean, 1.0)))  # of highlights, less
    blue, red = (fainter * np.float32((skin * colour).sum() / total) for colour in (blue, red))
    return worth, blue, red


def _as_light(light: Plane, both: Planes) -> tuple[Plane, Plane, Plane]:
    """Return how much is known near each pixel that is as light, and this times the chroma for its lightness.

    Chroma is linear in lightness near each pixel (guided filter: He, Sun & Tang 2010).
    """
    known, *colours = cv2.split(both)
    own = known * light
    planes = cv2.merge([*cv2.split(both), own, own * light, *(light * colour for colour in colours)])
    near, *farther = (np.float32(worth) * _blur(planes, sigma) for sigma, worth in NEAR)
    count, *means = cv2.split(sum(farther, near))
    count += np.float32(1e-9)
    blue, red, mean, square, lit_blue, lit_red = (plane / count for plane in means)
    variance = np.maximum(square - mean * mean, 0)
    off, deviation = light - mean, np.sqrt(variance)
    most = LIMIT[0] * deviation + LIMIT[1]
    worth = count * np.exp(-0.5 * (off / (deviation + ALIKE)) ** 2)
    away = np.clip(off, -most, most) / (variance + NOISE)
    blue, red = (
        worth * (colour + (lit - mean * colour) * away) for colour, lit in ((blue, lit_blue), (red, lit_red))
    )
    return worth, blue, red


def _blur(planes: Float32[np.ndarray, "h w c"], sigma: float) -> Float32[np.ndarray, "h w c"]:
    """Return planes after a Gaussian, which is taken in smaller ones as far as that shows nothing."""
    height, width = planes.shape[:2]
    part = max(1, round(sigma / FINE))
    if part == 1:
        return np.asarray(cv2.GaussianBlur(planes, (0, 0), sigma))
    rows, columns = -(-height // part), -(-width // part)
    down, right = rows * part - height, columns * part - width
    whole = cv2.copyMakeBorder(planes, 0, down, 0, right, cv2.BORDER_CONSTANT)
    small = cv2.resize(whole, (columns, rows), interpolation=cv2.INTER_AREA)
    small = cv2.GaussianBlur(small, (0, 0), sigma / part)
    large = cv2.resize(small, (columns * part, rows * part), interpolation=cv2.INTER_LINEAR)
    return np.asarray(large[:height, :width])
