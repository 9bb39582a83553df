"""What `encode` writes is a picture and nothing else at every size; what else a file may hold is seen."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from dpveil.io import encode
from dpveil.io.writing import only_picture

SHAPES = [(1, 1, 1), (1, 1, 3), (30, 41, 3), (31, 43, 1), (1, 700, 3), (700, 1, 1), (900, 900, 1)]


def levels(shape: tuple[int, ...], most: int = 256) -> np.ndarray:
    return np.random.Generator(np.random.PCG64(3)).integers(0, most, shape).astype(np.uint8)


@pytest.mark.parametrize("format_", ["png", "jpeg", "webp", "tiff", "bmp"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("most", [1, 3, 256])
def test_what_is_written_is_a_picture_alone(format_: str, shape: tuple[int, ...], most: int) -> None:
    data = encode(levels(shape, most), format_)
    assert only_picture(data, format_)
    for more in (b"\0", b"<html>payload</html>", data):
        assert only_picture(data + more, format_) == (format_ == "tiff")
    for cut in (0, 1, 11):
        assert not only_picture(data[:cut], format_)


RGB = Image.fromarray(levels((20, 30, 3)))
EXIF = Image.Exif()
EXIF[0x010E] = "payload"
TEXT = PngInfo()
TEXT.add_text("name", "payload")
MORE: dict[str, tuple[str, dict[str, Any]]] = {
    "png text": ("png", {"pnginfo": TEXT}),
    "png exif": ("png", {"exif": EXIF}),
    "png profile": ("png", {"icc_profile": b"payload"}),
    "jpeg exif": ("jpeg", {"exif": EXIF}),
    "jpeg comment": ("jpeg", {"comment": "payload"}),
    "jpeg profile": ("jpeg", {"icc_profile": b"p"}),
    "jpeg second": ("mpo", {"save_all": True, "append_images": [RGB]}),
    "webp lossy": ("webp", {}),
    "webp exif": ("webp", {"lossless": True, "exif": EXIF}),
    "tiff text": ("tiff", {"description": "payload"}),
    "tiff second": ("tiff", {"save_all": True, "append_images": [RGB]}),
}


@pytest.mark.parametrize("name", MORE)
def test_what_else_a_file_may_hold_is_seen(name: str) -> None:
    format_, options = MORE[name]
    file = BytesIO()
    RGB.save(file, format_, **options)
    assert not only_picture(file.getvalue(), "jpeg" if format_ == "mpo" else format_)
