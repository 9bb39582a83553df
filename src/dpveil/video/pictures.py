"""Pictures in a file, compressed without loss: written one by one, and read when they are needed."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import BinaryIO, Final

import numpy as np
from jaxtyping import UInt8

MOST_SIDE: Final = 1 << 14
"""Largest side of a picture, in pixels."""
LEVEL: Final = 1
"""Level of zlib: higher ones take more time and save little."""

Picture = UInt8[np.ndarray, "h w c"]


def put(picture: Picture, file: BinaryIO) -> list[int]:
    """Write a picture at the end of a file; return its place: where, bytes, height, width, channels."""
    data = zlib.compress(np.ascontiguousarray(picture, np.uint8).data, LEVEL)
    at = file.seek(0, 2)
    file.write(data)
    return [at, len(data), *picture.shape]


def get(place: Sequence[int], file: BinaryIO) -> Picture:
    """Return the picture at a place that may be hostile: no more is read and made than it tells.

    Raises `ValueError` unless there is exactly this picture.
    """
    at, size, height, width, channels = (int(one) for one in place)
    if not (0 < height <= MOST_SIDE and 0 < width <= MOST_SIDE and channels in (3, 4)):
        raise ValueError("picture")
    if not 0 <= at <= at + size <= file.seek(0, 2):
        raise ValueError("place")
    file.seek(at)
    count, opened = height * width * channels, zlib.decompressobj()
    try:
        data = opened.decompress(file.read(size), count + 1)
    except zlib.error as error:
        raise ValueError("data") from error
    if len(data) != count or not opened.eof or opened.unused_data:
        raise ValueError("data")
    return np.frombuffer(data, np.uint8).reshape(height, width, channels)
