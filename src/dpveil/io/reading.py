"""Reading image files: a regular file of a known format becomes levels; anything else is an error."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Bool

from dpveil.core.parameters import check_count
from dpveil.core.photo import Photo
from dpveil.core.urls import Url
from dpveil.errors import PhotoError
from dpveil.io.decoding import Decoded, decoded, quiet_pillow
from dpveil.io.names import check_path, shown
from dpveil.io.received import without_blocking
from dpveil.io.refused import COPY_AGAIN, LIMIT, Refused
from dpveil.io.screening import CLIP, JXL, PDF, foreign_name, format_name
from dpveil.io.urls import contents

MAX_PIXELS: Final = 100_000_000
"""Default limit on the pixels of a photo, against decompression bombs; an argument of `read`."""

MASK_LEVELS: Final = 16
"""An image with at most this many levels is taken as a mask."""
DARK, BRIGHT, MASK_BETWEEN = 32, 224, 0.25
"""So is one with at most the share MASK_BETWEEN of its pixels from DARK to BRIGHT; 1 of 18 photos passed."""

KINDS: Final = "JPEG, PNG, HEIC, AVIF, WebP, TIFF, BMP, GIF or Netpbm"
CONVERT: Final = "save it as a PNG, JPEG, TIFF or BMP and try again"
ELSEWHERE: Final = {
    CLIP: "name a clip as such, as in clip.mp4, for dpveil obfuscate; in Python, see dpveil.video",
    PDF: "name it as such, as in scan.pdf, for dpveil obfuscate; or save its pages as pictures",
    JXL: "convert it with libjxl's djxl IN.jxl OUT.png, and protect the whole photo",
}
"""The remedy for files that are no pictures, or none that `CONVERT` is for, by what they are."""
BYTES_PER_PIXEL: Final = 8
"""Most bytes in a file for each pixel of the limit."""
SPARE_BYTES: Final = 2**26
"""Bytes that a file may have beyond those of its pixels, such as metadata."""


def read_file(path: str | Path, *, max_pixels: int = MAX_PIXELS) -> Photo:
    """Return the photo in the file at `path`, as `read` does."""
    found = _read(path, check_count(max_pixels, "max_pixels"), background=255)
    return Photo(found.levels, found.grid, found.notes)


def read_bytes(data: bytes, name: str, *, max_pixels: int = MAX_PIXELS) -> Photo:
    """Return the photo in `data`, the contents of a file called `name`, as `read` does.

    Raises `PhotoError`, whose message begins with the name.
    """
    most = check_count(max_pixels, "max_pixels")
    try:
        _check_head(data[:64])
        with quiet_pillow():
            found = decoded(data, most, 255)
    except Refused as refusal:
        raise refused(name, refusal) from refusal.__cause__
    return Photo(found.levels, found.grid, found.notes)


def read_mask(path: str | Path, *, max_pixels: int = MAX_PIXELS) -> Bool[np.ndarray, "h w"]:
    """Return the mask in the image file at `path`: true where the brightest channel is at least 128.

    EXIF orientation is applied, so the mask is what a viewer shows. Transparent pixels are composited over
    black, so unpainted areas are not protected. Raises `PhotoError` as `read` does, and for an image that is
    probably a photo: many levels, with over a quarter of its pixels neither dark nor bright.
    """
    name = check_path(path, "give the name of an image file")
    found = _read(name, check_count(max_pixels, "max_pixels"), background=0)
    brightest = found.levels.max(axis=2)
    counts = np.bincount(brightest.reshape(-1), minlength=256)
    between = counts[DARK:BRIGHT].sum() / brightest.size
    if np.count_nonzero(counts) > MASK_LEVELS and between > MASK_BETWEEN:
        raise PhotoError(
            f"{shown(path)} is not a mask: {between:.0%} of its pixels are neither black nor white",
            hint="paint what is to be protected white, and everything else black",
        )
    return np.asarray(brightest >= 128)


def _read(path: str | Path, max_pixels: int, *, background: int) -> Decoded:
    try:
        data = _contents(path, most_bytes(max_pixels))
        with quiet_pillow():
            return decoded(data, max_pixels, background)
    except Refused as refusal:
        raise refused(path, refusal) from refusal.__cause__


def refused(path: str | Path, refusal: Refused) -> PhotoError:
    """Return `refusal` as the error of the file at `path`."""
    return PhotoError(f"{shown(path)} {refusal.problem}", hint=refusal.remedy, arguments=refusal.arguments)


def most_bytes(max_pixels: int) -> int:
    """Return the largest size in bytes of a file that is read with this limit on pixels."""
    return SPARE_BYTES + BYTES_PER_PIXEL * max_pixels


def _contents(path: str | Path, most: int) -> bytes:
    """Return the bytes of a regular file of a known format; raises `Refused` for others and over `most`."""
    if isinstance(path, Url):
        found = contents(path, most)
        _check_head(found[:64])
        return found
    try:
        file = open(path, "rb", opener=without_blocking)  # noqa: SIM115  Path.open takes no opener
    except (OSError, ValueError) as error:
        raise _unopened(error) from error
    with file:
        try:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Refused("is not a regular file", "name an image file")
            head = file.read(64)
            _check_head(head)
            if status.st_size > most:
                raise Refused(
                    f"has {status.st_size:,} bytes, more than any photo within the limit of pixels",
                    "raise {max_pixels} if it is a photo",
                    LIMIT,
                )
            file.seek(0)
            return file.read(status.st_size)
        except OSError as error:
            raise Refused(f"cannot be read ({error.strerror or 'input error'})", COPY_AGAIN) from error


def _unopened(error: OSError | ValueError) -> Refused:
    if isinstance(error, FileNotFoundError):
        return Refused("does not exist", "check the name")
    if isinstance(error, PermissionError):
        return Refused("cannot be opened: permission denied", "make it readable for this user")
    if isinstance(error, IsADirectoryError):
        return Refused("is a folder", "name an image file")
    if isinstance(error, NotADirectoryError):
        return Refused("does not exist: part of its path is not a folder", "check the name")
    reason = getattr(error, "strerror", None) or "not a valid file name"
    return Refused(f"cannot be opened ({reason})", "check the name")


def _check_head(head: bytes) -> None:
    if not head:
        raise Refused("is empty", COPY_AGAIN)
    if format_name(head) is None:
        foreign = foreign_name(head)
        if foreign:
            remedy = ELSEWHERE.get(foreign, CONVERT)
            raise Refused(f"is {foreign}, and here pictures are read", remedy)
        raise Refused("is not an image of a known format", f"give a {KINDS} file")
