"""A gallery of a few heads of nobody, made of bits: as small as audits and tests need it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Final

import cv2
import numpy as np
from jaxtyping import UInt8

from dpveil.assets.model_cards import Card
from dpveil.faces.attribute_model import VALUES
from dpveil.faces.geometry.align import FIVE
from dpveil.faces.geometry.head_frame import HeadFrame, pixel_grid
from dpveil.faces.head_gallery import HeadGallery
from dpveil.noise.bits import BitSource, SeededBits

CARD: Final = Card("heads", data="made heads", terms="none", seed=1)
SKINS: Final = ((236, 206, 190), (214, 172, 150), (176, 126, 100), (120, 80, 60), (78, 52, 42))
"""The colour of skin of each class of tone."""
YAWS: Final = (0, 20, 40)
NOSE: Final = 4  # the row of the nose in `FIVE`
LABELS: Final = ("gender", "age", "tone", "smile", "glasses", "beard")
LOSSLESS: Final = (cv2.IMWRITE_WEBP_QUALITY, 101)
Picture = UInt8[np.ndarray, "h w c"]


def made_heads(
    looks: Sequence[Sequence[int]] = tuple(product(range(2), (1, 3), range(5))),
    names: Sequence[str] = ("gender", "age", "tone"),
    *,
    size: int = 64,
    bits: BitSource | None = None,
) -> HeadGallery:
    """Return a gallery with a head for each of `looks`, the indices of its values of `names`.

    Other labels are 0, and the tone is medium. Heads differ in the noise of their bits.
    """
    bits = bits or SeededBits(1)
    persons = [dict.fromkeys(LABELS, 0) | {"tone": 2} | dict(zip(names, own, strict=True)) for own in looks]
    seen = [_head(own["tone"], yaw, size, bits) for own in persons for yaw in YAWS]
    points = np.stack([_points(yaw, size) for _ in persons for yaw in YAWS])
    return HeadGallery(
        size,
        tuple(_webp(picture) for picture, _ in seen),
        tuple(_webp(mask[::2, ::2]) for _, mask in seen),
        np.repeat(np.arange(len(persons)), len(YAWS)),
        np.tile(np.array(YAWS, np.int64), len(persons)),
        points,
        {name: np.array([own[name] for own in persons], np.int8) for name in LABELS},
        {name: VALUES[name] for name in LABELS},
        CARD,
    )


def _head(tone: int, yaw: int, size: int, bits: BitSource) -> tuple[Picture, Picture]:
    """Return a picture in blue, green, red and alpha, and its shares of neck, garment and hair."""
    at = pixel_grid(size)
    x, y = at[..., 0] - 0.5, at[..., 1] - 0.47
    hair = (np.hypot(x / 0.2, (y + 0.02) / 0.27) < 1) & (y < -0.12)
    face = (np.hypot((x - yaw / 800) / 0.18, y / 0.25) < 1) & ~hair
    skin = face | ((abs(x) < 0.09) & (y > 0))
    garment = (y > 0.36) & (abs(x) < 0.35)
    hairs, worn = bits.words(6).astype(np.int64).reshape(2, 3) % 200
    levels = np.zeros((size, size, 3), np.int64)
    for place, colour in ((skin, SKINS[tone]), (hair, hairs), (garment, worn)):
        levels[place] = colour
    noise = bits.words(size * size).astype(np.int64).reshape(size, size, 1) % 16
    shown = np.dstack([(levels + noise)[..., ::-1], 255 * (skin | hair | garment)])
    mask = 255 * np.dstack([skin & ~face & ~garment, garment, hair & ~garment])
    return shown.astype(np.uint8), mask.astype(np.uint8)


def _points(yaw: int, size: int) -> np.ndarray:
    five = np.array(FIVE)
    five[NOSE, 0] += yaw / 400
    return HeadFrame(size).pixels(five).astype(np.float32)


def _webp(picture: Picture) -> bytes:
    return bytes(cv2.imencode(".webp", np.ascontiguousarray(picture), LOSSLESS)[1].tobytes())
