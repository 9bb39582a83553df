"""Reading a photo from any source: a file's name, its bytes, an open file, a Pillow image, or levels."""

from __future__ import annotations

from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
from PIL import Image

from dpveil.core.parameters import check_count
from dpveil.core.photo import Grid, Photo, check_image
from dpveil.errors import InvalidParameter, PhotoError
from dpveil.io.names import check_path
from dpveil.io.reading import CONVERT, MAX_PIXELS, most_bytes, read_bytes, read_file, refused
from dpveil.io.refused import Refused, animation
from dpveil.io.screening import check_pixels

Source = Photo | str | Path | bytes | BinaryIO | Image.Image | np.ndarray
"""What `read` accepts."""
NAMED: Final = "the photo"
"""The name of a photo without a file name in messages."""
HINT: Final = "give the name of its file, its bytes, an open binary file, a Pillow picture, or uint8 levels"
WITHOUT_BLOCKS: Final = (None, "PNG", "BMP", "PPM")
"""Pillow's names of lossless formats, and None for an image that was not opened from a file."""
TRACES: Final = frozenset(
    {
        *("jfif", "jfif_version", "jfif_density", "adobe", "adobe_transform"),  # JPEG
        *("progressive", "progression", "mp"),  # JPEG
        *("timestamp", "thumbnails", "comment", "exif"),  # WebP and AVIF; HEIC; JPEG and JPEG 2000; cameras
    }
)
"""Keys of `info` that Pillow keeps in images derived from a lossy file, by convert, crop or copy."""


def read(photo: Source | object, *, max_pixels: int = MAX_PIXELS, trust_source: str | None = None) -> Photo:
    """Return a photo: 8-bit grey or sRGB levels, upright, without metadata.

    `photo` is the name or the bytes of a file, an open binary file (read from its beginning), a Pillow
    image, or a uint8 array of h × w or h × w × (1 or 3) levels; a `Photo` is returned unchanged. Only regular
    files in JPEG, PNG, HEIC, AVIF, WebP, TIFF, BMP, GIF or Netpbm format are decoded, whatever their suffix,
    with one picture of at most `max_pixels` pixels, which is checked before decoding; of a phone's
    multi-picture JPEG, the first is read. HEIC needs the package pi-heif (dpveil[formats]). EXIF orientation
    is applied, and transparency is composited over white. Raises `PhotoError` with the file, the problem and
    the remedy; and `InvalidParameter` for any other type, and for Pillow images that were, or may have been,
    opened from a lossy file, as only the file states the grid of its blocks.
    A picture with a palette or below 8 bits may show what is hidden by its few colours, so its releases are
    not publishable; with `trust_source="lossless"` you say that reducing the colours lost nothing, as in a
    drawing or a screenshot that never had more.

    >>> read(np.zeros((2, 3), np.uint8))
    Photo(3×2, 1 channels)
    """
    if check_trust(trust_source) is not None:
        return read(photo, max_pixels=max_pixels).as_lossless()
    most = check_count(max_pixels, "max_pixels")
    if isinstance(photo, Photo):
        return photo
    if isinstance(photo, np.ndarray | Image.Image):
        try:
            return _array(photo, most) if isinstance(photo, np.ndarray) else _picture(photo, most)
        except Refused as refusal:
            raise refused(NAMED, refusal) from None
    if isinstance(photo, bytes | bytearray | memoryview):
        return read_bytes(bytes(photo), NAMED, max_pixels=most)
    if callable(getattr(photo, "read", None)) and not isinstance(photo, str | Path):
        return _open_file(photo, most)
    return read_file(check_path(photo, HINT), max_pixels=most)


def check_trust(trust_source: str | None) -> str | None:
    """Return it if it is None or "lossless", else raise `InvalidParameter`."""
    if trust_source not in (None, "lossless"):
        raise InvalidParameter("trust_source", trust_source, "is not possible", hint="write lossless")
    return trust_source


def _open_file(file: Any, most: int) -> Photo:
    with suppress(AttributeError, OSError):  # a file that was just written is at its end
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


def _array(levels: np.ndarray, most: int) -> Photo:
    height, width = check_image(levels).shape[:2]
    check_pixels(width, height, most)
    return Photo(levels)


def _picture(picture: Image.Image, most: int) -> Photo:
    """Return a Pillow image as a photo by way of a PNG: one code path for modes, profiles, orientation."""
    if picture.format not in WITHOUT_BLOCKS or _was_lossy(picture):
        origin = f"opened from a {picture.format} file" if picture.format else "made from a file"
        problem = f"was {origin}, and no longer tells its lossy blocks"
        raise InvalidParameter("photo", None, problem, hint="give the name of its file")
    if getattr(picture, "is_animated", False):
        raise animation(getattr(picture, "n_frames", 0))
    check_pixels(*picture.size, most)
    file = BytesIO()
    try:
        picture.save(file, "PNG", compress_level=1, exif=picture.getexif())
    except (OSError, ValueError) as error:  # a mode that no PNG has, or a file that is damaged
        raise PhotoError(f"{NAMED} has {picture.mode} pixels, or cannot be decoded", hint=CONVERT) from error
    photo = read_bytes(file.getvalue(), NAMED, max_pixels=most)
    # Pillow spreads 1 to 4 bits of a file over 0..255, in steps of 17, and forgets how many there were.
    if picture.format is not None and photo.grid is None and not (photo.image % 17).any():
        return Photo(photo.image, Grid.without_blocks("4-bit"), photo.notes)
    return photo


def _was_lossy(picture: Image.Image) -> bool:
    """Return whether an image without a format may come from a lossy file.

    For TIFF, `info` has the name of the compression, whether it is lossy or not.
    """
    kept = picture.info
    return picture.format is None and (bool(TRACES & kept.keys()) or isinstance(kept.get("compression"), str))
