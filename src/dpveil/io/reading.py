"""Reading image files: a regular file of a known format becomes levels; anything else is an error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np

from dpveil.core.array_types import Bool
from dpveil.core.parameters import check_count
from dpveil.core.photo import Photo, check_image
from dpveil.core.urls import Url
from dpveil.errors import InvalidParameter, PhotoError
from dpveil.io.decoding import decode, open_picture
from dpveil.io.exif import KEEPING, WITHOUT, texts_of
from dpveil.io.names import check_path, show_path
from dpveil.io.screening import CLIP, JXL, PDF, check_pixels, foreign_name, format_name, screen
from dpveil.io.unreadable import COPY_AGAIN, LIMIT, Refused
from dpveil.io.untrusted_files import open_untrusted
from dpveil.io.urls import contents

MAX_PIXELS: Final = 100_000_000
"""Default limit on the pixels of a photo, against decompression bombs; an argument of `read`."""

MASK_LEVELS: Final = 16  # an image with at most this many levels is taken as a mask
DARK, BRIGHT, MASK_BETWEEN = 32, 224, 0.25
"""So is one with at most the share MASK_BETWEEN of its pixels from DARK to BRIGHT; 1 of 18 photos passed."""

KNOWN_FORMATS: Final = "JPEG, PNG, HEIC, AVIF, WebP, TIFF, BMP, GIF or Netpbm"
CONVERT: Final = "save it as a PNG, JPEG, TIFF or BMP and try again"
ELSEWHERE: Final = {
    CLIP: "name a clip as such, as in clip.mp4, for dpveil obfuscate; in Python, see dpveil.video",
    PDF: "name it as such, as in scan.pdf, for dpveil obfuscate; or save its pages as pictures",
    JXL: "convert it with libjxl's djxl IN.jxl OUT.png, and protect the whole photo",
}
"""The remedy for files that are no pictures, or none that `CONVERT` is for, by what they are."""
BYTES_PER_PIXEL: Final = 8  # most bytes in a file for each pixel of the limit
SPARE_BYTES: Final = 2**26  # bytes that a file may have beyond those of its pixels, such as metadata


def read_bytes(data: bytes, name: str, *, max_pixels: int = MAX_PIXELS) -> Photo:
    """Return the photo in `data`, the contents of a file called `name`, as `read` does.

    Raises `PhotoError`, whose message begins with the name.
    """
    most = check_count(max_pixels, "max_pixels")
    with _as_photo_error(name):
        _check_head(data[:64])
        return decode(data, most, 255)


def read_mask(path: str | Path, *, max_pixels: int = MAX_PIXELS) -> Bool[np.ndarray, "h w"]:
    """Return the mask in the image file at `path`: true where the brightest channel is at least 128.

    EXIF orientation is applied, so the mask is what a viewer shows. Transparent pixels are composited over
    black, so unpainted areas are not protected. Raises `PhotoError` as `read` does, and for an image that is
    probably a photo: many levels, with over a quarter of its pixels neither dark nor bright.
    """
    name = check_path(path, "give the name of an image file")
    found = _read(name, check_count(max_pixels, "max_pixels"), background=0)
    brightest = found.image.max(axis=2)
    counts = np.bincount(brightest.reshape(-1), minlength=256)
    between = counts[DARK:BRIGHT].sum() / brightest.size
    if np.count_nonzero(counts) > MASK_LEVELS and between > MASK_BETWEEN:
        raise PhotoError(
            f"{show_path(path)} is not a mask: {between:.0%} of its pixels are neither black nor white",
            hint="paint what is to be protected white, and everything else black",
        )
    return np.asarray(brightest >= 128)


METADATA_FORMATS: Final = ("JPEG", "PNG", "WEBP")
"""The formats of which metadata may be kept: the others' libraries are not trusted to read it here."""


def read_metadata(path: str | Path, names: Sequence[str], *, max_pixels: int = MAX_PIXELS) -> dict[str, str]:
    """Return those of the named texts (`dpveil.io.exif.NAMES`) that the EXIF of an image file has.

    Raises `PhotoError` for other formats than JPEG, PNG and WebP, and for a text that is too long.
    """
    with _as_photo_error(path):
        data = _contents(path, most_bytes(max_pixels))
        name = format_name(data[:64]) or ""
        if name not in METADATA_FORMATS:
            raise Refused(f"is {name}, whose metadata cannot be kept", WITHOUT, KEEPING)
        screen(name, data, max_pixels)
        with open_picture(name, BytesIO(data)) as image:
            check_pixels(*image.size, max_pixels)
            return texts_of(image, names)


def _read(path: str | Path, max_pixels: int, *, background: int) -> Photo:
    with _as_photo_error(path):
        return decode(_contents(path, most_bytes(max_pixels)), max_pixels, background)


@contextmanager
def _as_photo_error(path: str | Path) -> Iterator[None]:
    try:
        yield
    except Refused as refusal:
        raise photo_error(path, refusal) from refusal.__cause__


def photo_error(path: str | Path, refusal: Refused) -> PhotoError:
    """Return `refusal` as the error of the file at `path`."""
    return PhotoError(
        f"{show_path(path)} {refusal.problem}", hint=refusal.remedy, arguments=refusal.arguments
    )


def most_bytes(max_pixels: int) -> int:
    """Return the largest size in bytes of a file that is read with this limit on pixels."""
    return SPARE_BYTES + BYTES_PER_PIXEL * max_pixels


def _contents(path: str | Path, most: int) -> bytes:
    if isinstance(path, Url):
        found = contents(path, most)
        _check_head(found[:64])
        return found
    with open_untrusted(Path(path)) as (file, status):
        _check_head(file.read(64))
        if status.st_size > most:
            problem = f"has {status.st_size:,} bytes, more than any photo within the limit of pixels"
            raise Refused(problem, "raise {max_pixels} if it is a photo", LIMIT)
        file.seek(0)
        return file.read(status.st_size)


def _check_head(head: bytes) -> None:
    if not head:
        raise Refused("is empty", COPY_AGAIN)
    if format_name(head) is None:
        foreign = foreign_name(head)
        if foreign:
            remedy = ELSEWHERE.get(foreign, CONVERT)
            raise Refused(f"is {foreign}, and here pictures are read", remedy)
        raise Refused("is not an image of a known format", f"give a {KNOWN_FORMATS} file")


Source = Photo | str | Path | bytes | BinaryIO | np.ndarray
"""What `read` accepts."""
NAMED: Final = "the photo"  # the name of a photo without a file name in messages
HINT: Final = "give the name of its file, its bytes, an open binary file, or uint8 levels"


def read(photo: Source | object, *, max_pixels: int = MAX_PIXELS, trust_source: str | None = None) -> Photo:
    """Return a photo: 8-bit grey or sRGB levels, upright, without metadata.

    `photo` is the name or the bytes of a file, an open binary file (read from its beginning), or a uint8
    array of h × w or h × w × (1 or 3) levels; a `Photo` is returned unchanged. Only regular files in JPEG,
    PNG, HEIC, AVIF, WebP, TIFF, BMP, GIF or Netpbm format are decoded, whatever their suffix, with one
    picture of at most `max_pixels` pixels, which is checked before decoding; of a phone's multi-picture JPEG,
    the first is read. HEIC needs the package pi-heif (dpveil[formats]). EXIF orientation is applied, and
    transparency is composited over white. Raises `PhotoError` with the file, the problem and the remedy; and
    `InvalidParameter` for any other type, also for a Pillow image: only its file states the grid of lossy
    blocks.
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
    if isinstance(photo, np.ndarray):
        with _as_photo_error(NAMED):
            height, width = check_image(photo).shape[:2]
            check_pixels(width, height, most)
            return Photo(photo)
    if isinstance(photo, bytes | bytearray | memoryview):
        return read_bytes(bytes(photo), NAMED, max_pixels=most)
    if callable(getattr(photo, "read", None)) and not isinstance(photo, str | Path):
        return _open_file(photo, most)
    return _read(check_path(photo, HINT), most, background=255)


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
