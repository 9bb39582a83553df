"""Encoding of levels as image files, with settings that never depend on the input."""

from __future__ import annotations

from io import BytesIO
from typing import Any, Final

import cv2
import numpy as np
from PIL import Image

from dpveil.core.photo import check_image
from dpveil.errors import OutputError, UnknownName
from dpveil.io.names import FORMATS

SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "png": {"compress_level": 1, "compress_type": 3},  # run-length strategy; level 6 takes four times as long
    "jpeg": {"quality": 95, "subsampling": 0, "optimize": False, "progressive": False},
    "webp": {"lossless": True, "quality": 20, "method": 0, "exact": True},
    "tiff": {"compression": "tiff_adobe_deflate"},
    "bmp": {},
}
"""Pillow's settings for each format; quality, tables and subsampling are never copied from an input."""

OPENCV_PNG: Final = (
    *(cv2.IMWRITE_PNG_COMPRESSION, 1),
    *(cv2.IMWRITE_PNG_STRATEGY, cv2.IMWRITE_PNG_STRATEGY_RLE),
    *(cv2.IMWRITE_PNG_FILTER, cv2.IMWRITE_PNG_FILTER_UP),
)
"""Settings of OpenCV's PNG encoder, which takes less than half of Pillow's time. The Paeth filter would take
1.5 times as long for files that are 10 % smaller (two scenes of 12 megapixels)."""

OPENCV_PNG_SIDE: Final = 1_000_000
"""The longest side that OpenCV's PNG encoder is given, in pixels."""

SIDES: Final[dict[str, int]] = {"jpeg": 65_500, "webp": 16_383}
"""The longest side of a picture in formats that limit it, in pixels."""


def encode(image: np.ndarray, format: str) -> bytes:  # noqa: A002  the field's word
    r"""Return the bytes of an image file with the levels of `image` and nothing else.

    `image` is uint8, h × w or h × w × (1 or 3). `format` is one of png, webp, tiff, bmp (all lossless, so
    decoding gives `image` again; webp has no grey and gives three equal channels) and jpeg (quality 95, no
    chroma subsampling). No metadata, profile, thumbnail or trailing byte. Raises `UnknownName`,
    `InvalidParameter` for another array and `OutputError` where the format has no room for its size.

    >>> encode(np.zeros((2, 3), np.uint8), "png")[:4]
    b'\x89PNG'
    """
    if format not in SETTINGS:
        raise UnknownName("format", format, set(FORMATS.values()))
    pixels = check_image(image)
    height, width = pixels.shape[:2]
    if max(height, width) > SIDES.get(format, max(height, width)):
        raise OutputError(
            f"{width} × {height} pixels do not fit into a {format} file", hint="write a PNG instead"
        )
    levels = pixels.reshape(height, width) if pixels.size == height * width else pixels
    try:
        return _encoded(np.ascontiguousarray(levels), format)
    except (OSError, ValueError, OverflowError, MemoryError, cv2.error) as error:
        raise OutputError(
            f"{width} × {height} pixels cannot be encoded as {format}", hint="write a PNG instead"
        ) from error


def _encoded(levels: np.ndarray, format_: str) -> bytes:
    """Return the file of h × w or h × w × 3 levels, encoded by OpenCV (PNG) or Pillow."""
    if format_ == "png" and max(levels.shape) <= OPENCV_PNG_SIDE:
        blue_first = levels if levels.ndim == 2 else cv2.cvtColor(levels, cv2.COLOR_RGB2BGR)
        done, contents = cv2.imencode(".png", blue_first, OPENCV_PNG)
        if not done:
            raise OSError("OpenCV cannot encode this picture")
        return contents.tobytes()
    buffer = BytesIO()
    Image.fromarray(levels).save(buffer, format_, **SETTINGS[format_])
    return buffer.getvalue()
