"""Reading image files: a regular file of a known format becomes levels; anything else is an error."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Bool, UInt8
from PIL import Image, ImageFile, JpegImagePlugin, TiffImagePlugin

from dpveil.core.parameters import check_count
from dpveil.core.photo import Grid, Photo
from dpveil.core.urls import Url
from dpveil.errors import PhotoError
from dpveil.io.colour import RULES, Stored, to_levels
from dpveil.io.containers import CLIP, JXL, PDF, foreign_name, format_name, jpeg_grid
from dpveil.io.decoders import opener, quiet_pillow
from dpveil.io.names import check_path, shown
from dpveil.io.orientation import TURNS, UPRIGHT, Turn, orientation, turned, turned_grid, words_of
from dpveil.io.received import without_blocking
from dpveil.io.refused import COPY_AGAIN, LIMIT, Refused
from dpveil.io.screening import check_pixels, screened
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
INTACT_OR_PNG: Final = "get an intact copy, or save it as an 8-bit PNG"
BYTES_PER_PIXEL: Final = 8
"""Most bytes in a file for each pixel of the limit."""
SPARE_BYTES: Final = 2**26
"""Bytes that a file may have beyond those of its pixels, such as metadata."""

LOSSLESS_TIFF: Final = {"raw", "packbits", "lzma", "zstd", "group3", "group4"} | {
    f"tiff_{name}" for name in ("ccitt", "lzw", "adobe_deflate", "deflate")
}
"""Pillow's names of TIFF's lossless compressions."""


@dataclass(frozen=True)
class _Decoded:
    levels: UInt8[np.ndarray, "h w c"]
    grid: Grid | None
    notes: tuple[str, ...]


def read_file(path: str | Path, *, max_pixels: int = MAX_PIXELS) -> Photo:
    """Return the photo in the file at `path`, as `read` does."""
    decoded = _read(path, check_count(max_pixels, "max_pixels"), background=255)
    return Photo(decoded.levels, decoded.grid, decoded.notes)


def read_bytes(data: bytes, name: str, *, max_pixels: int = MAX_PIXELS) -> Photo:
    """Return the photo in `data`, the contents of a file called `name`, as `read` does.

    Raises `PhotoError`, whose message begins with the name.
    """
    most = check_count(max_pixels, "max_pixels")
    try:
        _check_head(data[:64])
        with quiet_pillow():
            decoded = _decode(data, most, 255)
    except Refused as refusal:
        raise refused(name, refusal) from refusal.__cause__
    return Photo(decoded.levels, decoded.grid, decoded.notes)


def read_mask(path: str | Path, *, max_pixels: int = MAX_PIXELS) -> Bool[np.ndarray, "h w"]:
    """Return the mask in the image file at `path`: true where the brightest channel is at least 128.

    EXIF orientation is applied, so the mask is what a viewer shows. Transparent pixels are composited over
    black, so unpainted areas are not protected. Raises `PhotoError` as `read` does, and for an image that is
    probably a photo: many levels, with over a quarter of its pixels neither dark nor bright.
    """
    name = check_path(path, "give the name of an image file")
    decoded = _read(name, check_count(max_pixels, "max_pixels"), background=0)
    brightest = decoded.levels.max(axis=2)
    counts = np.bincount(brightest.reshape(-1), minlength=256)
    between = counts[DARK:BRIGHT].sum() / brightest.size
    if np.count_nonzero(counts) > MASK_LEVELS and between > MASK_BETWEEN:
        raise PhotoError(
            f"{shown(path)} is not a mask: {between:.0%} of its pixels are neither black nor white",
            hint="paint what is to be protected white, and everything else black",
        )
    return np.asarray(brightest >= 128)


def _read(path: str | Path, max_pixels: int, *, background: int) -> _Decoded:
    try:
        data = _contents(path, most_bytes(max_pixels))
        with quiet_pillow():
            return _decode(data, max_pixels, background)
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


def _decode(data: bytes, max_pixels: int, background: int) -> _Decoded:
    name = format_name(data) or ""
    notes: list[str] = []
    contents = screened(name, data, max_pixels, notes)
    open_ = opener(name)
    try:
        image = open_(BytesIO(contents.data))
    except Image.DecompressionBombError as error:
        raise _over_pillow() from error
    except Exception as error:  # a parser given hostile bytes may raise anything
        raise Refused(
            f"is damaged, or a kind of {name} that dpveil does not read ({_reason(error)})", INTACT_OR_PNG
        ) from error
    with image:
        check_pixels(*image.size, max_pixels)
        try:
            grid = _check_opened(image, contents.grid, notes)
            stored = _stored(image)
            image.load()
            levels, converted = to_levels(image, stored, background=background)
        except Refused:
            raise
        except Image.DecompressionBombError as error:
            raise _over_pillow() from error
        except MemoryError as error:
            raise Refused("does not fit into memory", "make it smaller") from error
        except Exception as error:  # as above
            raise Refused(f"is a truncated or damaged {name} file ({_reason(error)})", COPY_AGAIN) from error
        turn = contents.turn or _turn(image, contents.words, notes)
    width, height = contents.size or (levels.shape[1], levels.shape[0])
    oriented = turned(levels[:height, :width], turn)
    if grid is not None:
        grid = turned_grid(grid, turn, width=oriented.shape[1], height=oriented.shape[0])
    return _Decoded(oriented, grid, (*notes, *converted))


def _check_opened(image: ImageFile.ImageFile, grid: Grid | None, notes: list[str]) -> Grid | None:
    """Return the grid of lossy blocks, if any; raises `Refused` for an image that dpveil cannot convert."""
    if isinstance(image, JpegImagePlugin.JpegImageFile):
        if "mp" in image.info:
            notes.append("only the first picture of this multi-picture file was read")
        return jpeg_grid(image.layer)
    if getattr(image, "is_animated", False):
        kind = "several pages" if image.format == "TIFF" else "several frames"
        every = ", or release all with dpveil obfuscate into a folder or PDF" * (kind == "several pages")
        raise Refused(f"has {kind}", f"save one of them as a PNG{every}")
    if isinstance(image, TiffImagePlugin.TiffImageFile):
        compression = str(image.info.get("compression"))
        subsampled = image.mode == "YCbCr" and tuple(image.tag_v2.get(530, (1, 1))) != (1, 1)
        if compression not in LOSSLESS_TIFF or subsampled:
            raise Refused("is a TIFF with lossy compression", "save it as a JPEG or PNG")
    if image.mode not in RULES:
        kind = {"F": "floating-point", "I": "32-bit"}.get(image.mode, image.mode)
        raise Refused(f"has {kind} pixels, which dpveil does not read", "save it as an 8-bit PNG")
    return grid or _without_blocks(image)


def _without_blocks(image: ImageFile.ImageFile) -> Grid | None:
    """Return the grid of a picture of few levels, which its encoder may have chosen for all of it; or None.

    Pillow opens a GIF with a grey palette as grey, and 2 and 4 bits a pixel as 8.
    """
    if image.format == "GIF" or image.mode in ("P", "PA"):
        return Grid.without_blocks("palette")
    bits = "1" if image.mode == "1" else {"L;2": "2", "L;4": "4"}.get(_stored(image).rawmode[:3])
    return None if bits is None else Grid.without_blocks(f"{bits}-bit")


def _over_pillow() -> Refused:
    return Refused(
        "is larger than Pillow's own limit for this format", "make it smaller, or save it as a JPEG or PNG"
    )


def _reason(error: Exception) -> str:
    """Return the message of Pillow's error if it fits into one line, else its type."""
    text = " ".join(str(error).split())
    return text if text and text.isprintable() and len(text) < 120 else type(error).__name__


def _stored(image: ImageFile.ImageFile) -> Stored:
    """Return how the file stores its pixels; Pillow only knows it before they are loaded."""
    args = image.tile[0].args if image.tile else ""
    rawmode = args if isinstance(args, str) else str(args[0]) if args else ""
    if not isinstance(image, TiffImagePlugin.TiffImageFile):
        return Stored(rawmode)
    top = 4095 if rawmode == "I;12" else 65535
    deep = image.mode.startswith("I;16")
    return Stored(rawmode, top, white_is_zero=deep and image.tag_v2.get(262) == 0)


def _turn(image: ImageFile.ImageFile, words: tuple[bytes, bytes] | None, notes: list[str]) -> Turn:
    """Return how to orient the loaded pixels; Pillow has already oriented those of a TIFF."""
    if isinstance(image, TiffImagePlugin.TiffImageFile):
        return UPRIGHT
    try:
        value = orientation(*(words_of(image.info) if words is None else words))
    except ValueError:
        notes.append("its EXIF data are unreadable, so it was taken as upright")
        return UPRIGHT
    return TURNS.get(value or 1, UPRIGHT)
