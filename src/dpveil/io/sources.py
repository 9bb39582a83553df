"""Whatever holds a photo: the name of a file, its bytes, an open file, a Pillow picture, or levels."""

from __future__ import annotations

from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
from PIL import Image

from dpveil.core.parameters import check_count
from dpveil.core.photo import Photo
from dpveil.errors import InvalidParameter, PhotoError
from dpveil.io.names import check_path
from dpveil.io.reading import CONVERT, MAX_PIXELS, most_bytes, read_bytes, read_file

Source = Photo | str | Path | bytes | BinaryIO | Image.Image | np.ndarray
"""What `read` takes."""
NAMED: Final = "the photo"
"""What messages call a photo that comes without a name."""
LEVELS: Final = "uint8 levels 0..255, such as numpy.asarray(picture.convert('RGB'))"
HINT: Final = f"give the name of its file, its bytes, an open binary file, a Pillow picture, or {LEVELS}"
WITHOUT_BLOCKS: Final = (None, "PNG", "BMP", "PPM")
"""Pillow's names of formats without lossy compression, which leaves traces of a region around it."""


def read(photo: Source | object, *, max_pixels: int = MAX_PIXELS) -> Photo:
    """Return a photo: 8-bit grey or sRGB, upright, and nothing else from its file.

    `photo` is the name or the bytes of a file, an open binary file (read from its beginning), a Pillow
    picture, or a uint8 array of h × w or h × w × (1 or 3) levels; a `Photo` is returned as it is. Decodes
    only regular files in JPEG, PNG, HEIC, AVIF, WebP, TIFF, BMP, GIF or Netpbm format, whatever their suffix,
    with one picture of at most `max_pixels` pixels, which is checked before decoding; of a phone's
    multi-picture JPEG, the first. HEIC needs the package pi-heif (dpveil[formats]). Applies EXIF orientation,
    and puts transparency on white. Raises `PhotoError` in one line: the file, the problem, the remedy; and
    `InvalidParameter` for anything else, and for pictures that Pillow opened from files other than PNG, BMP
    and Netpbm: only the file tells its lossy blocks.

    >>> read(np.zeros((2, 3), np.uint8))
    Photo(3×2, 1 channels)
    """
    most = check_count(max_pixels, "max_pixels")
    if isinstance(photo, Photo):
        return photo
    if isinstance(photo, np.ndarray):
        return Photo(photo)
    if isinstance(photo, Image.Image):
        return _picture(photo, most)
    if isinstance(photo, bytes | bytearray | memoryview):
        return read_bytes(bytes(photo), NAMED, max_pixels=most)
    if callable(getattr(photo, "read", None)) and not isinstance(photo, str | Path):
        return _open_file(photo, most)
    return read_file(check_path(photo, HINT), max_pixels=most)


def _open_file(file: Any, most: int) -> Photo:
    with suppress(AttributeError, OSError):  # whoever wrote it may have left it at its end
        file.seek(0)
    data: object = file.read(most_bytes(most) + 1)
    if not isinstance(data, bytes):
        raise InvalidParameter("file", type(data).__name__, "is not bytes", hint="open it in mode 'rb'")
    if len(data) > most_bytes(most):
        raise PhotoError(
            f"{NAMED} has more bytes than any within the limit of pixels",
            hint="raise {max_pixels} if it is a photo",
            arguments={"max_pixels": "max_pixels"},
        )
    return read_bytes(data, NAMED, max_pixels=most)


def _picture(picture: Image.Image, most: int) -> Photo:
    """Return a Pillow picture, read from a PNG of it: modes, profiles and orientation take one road."""
    if picture.format not in WITHOUT_BLOCKS:
        problem = f"was opened from a {picture.format} file, and no longer tells its lossy blocks"
        raise InvalidParameter("photo", None, problem, hint="give the name of its file")
    file = BytesIO()
    try:
        picture.save(file, "PNG", compress_level=1, exif=picture.getexif())
    except (OSError, ValueError) as error:  # a mode that no PNG has, or a file that is damaged
        raise PhotoError(f"{NAMED} has {picture.mode} pixels, or cannot be decoded", hint=CONVERT) from error
    return read_bytes(file.getvalue(), NAMED, max_pixels=most)
