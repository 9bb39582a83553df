"""All small images over a few levels, and all pairs of neighbours among them."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import Final

import numpy as np

from dpveil.errors import InvalidParameter
from dpveil_audit.pixel.product import Images, Pairs

MOST_IMAGES: Final = 10_000
CHUNK: Final = 512


@lru_cache(maxsize=64)
def all_images(height: int, width: int, channels: int, levels: tuple[int, ...]) -> Images:
    """Return every image over these levels. Raises `InvalidParameter` above 10 000 of them."""
    count = len(levels) ** (height * width * channels)
    if count > MOST_IMAGES:
        raise InvalidParameter("levels", levels, f"make {count} images", hint="take a smaller image")
    flat = np.array(list(product(levels, repeat=height * width * channels)), np.uint8)
    return flat.reshape(-1, height, width, channels)


def neighbours(images: Images, m: int | None) -> Pairs:
    """Return all ordered pairs that differ in 1 to m pixels (None: any two), each with all its channels."""
    return _neighbours(images.tobytes(), images.shape, m)


@lru_cache(maxsize=64)
def _neighbours(content: bytes, shape: tuple[int, int, int, int], m: int | None) -> Pairs:
    count, height, width, channels = shape
    pixels = np.frombuffer(content, np.uint8).reshape(count, height * width, channels)
    most = height * width if m is None else m
    found = []
    for start in range(0, count, CHUNK):
        part = pixels[start : start + CHUNK]
        distance = np.zeros((len(part), count), np.int64)
        for pixel in range(height * width):
            distance += np.any(part[:, None, pixel] != pixels[None, :, pixel], axis=2)
        first, second = np.nonzero((distance >= 1) & (distance <= most))
        found.append(np.stack([first + start, second], axis=1))
    return np.concatenate(found).astype(np.int64)
