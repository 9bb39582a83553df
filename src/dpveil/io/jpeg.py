"""Coefficients of JPEG files, read and written without loss by libjpeg."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

import numpy as np

from dpveil.core.jpeg_blocks import BLOCK_SIDE, LARGEST_COEFFICIENT, JpegBlocks
from dpveil.errors import OutputError, PhotoError
from dpveil.io.exif import NO_TEXTS, with_exif
from dpveil.io.unreadable import SAVE_ANEW

FASTEST: Final = "turbo210"
"""The libjpeg of jpeglib's wheels that is used where it is there; all of them give the same coefficients."""
GREY: Final = 1
YCC: Final = 3  # libjpeg's numbers of colour spaces
SLOTS: Final = 4  # how many quantisation tables a file has room for
JFIF_BYTES: Final = 20  # length of the start of a JPEG and its JFIF header

Component = tuple[int, int, int, int]
"""Identifier, horizontal and vertical sampling factor, and number of the quantisation table."""


def keeps_blocks(components: Sequence[Component], info: Mapping[Any, Any]) -> bool:
    """Return whether a JPEG is grey, or Y'CbCr with no more chroma than luma, so that its blocks can stay.

    `info` is what Pillow tells of it. Three components are Y'CbCr as libjpeg takes them: by JFIF, or else by
    Adobe's transform, or else unless they are called R, G and B.
    """
    if len(components) == 1:
        return True
    (_, _, down, _), *chroma = components
    names = bytes(component[0] for component in components)
    ycc = "jfif" in info or (info["adobe_transform"] == 1 if "adobe" in info else names != b"RGB")
    return ycc and len(chroma) == 2 and down <= 2 and all(c[1:3] == (1, 1) for c in chroma)


def read_blocks(
    data: bytes, components: Sequence[Component], size: tuple[int, int], orientation: int
) -> JpegBlocks:
    """Return the blocks of a JPEG of `size` (width, height).

    Raises `PhotoError` for a damaged file, and one with numbers that baseline coding has no room for.
    """
    width, height = size
    factors = [(1, 1)] if len(components) == 1 else [(down, across) for _, across, down, _ in components]
    tall, wide = (BLOCK_SIDE * factor for factor in factors[0])
    counts = [(-(-height * v // tall), -(-width * h // wide)) for v, h in factors]
    planes = [np.zeros((*count, BLOCK_SIDE, BLOCK_SIDE), np.int16) for count in counts]
    tables, numbers = np.zeros((SLOTS, BLOCK_SIDE, BLOCK_SIDE), np.uint16), np.zeros(SLOTS, np.int16)
    with _file(data) as name:
        parts = [*map(_pointer, planes), *[None] * (SLOTS - len(planes))]
        read = library().read_jpeg_dct(name.encode(), *parts, _pointer(tables), _pointer(numbers))
    if not read:
        raise PhotoError("the JPEG is damaged: its coefficients cannot be read", hint="get an intact copy")
    for numbers_ in (plane.reshape(-1, BLOCK_SIDE * BLOCK_SIDE) for plane in planes):
        if (
            numbers_.max() > LARGEST_COEFFICIENT
            or numbers_[:, 1:].min() < -LARGEST_COEFFICIENT
            or numbers_.min() < -LARGEST_COEFFICIENT - 1
        ):
            raise PhotoError("the JPEG has coefficients that no baseline JPEG has", hint=SAVE_ANEW)
    own = tuple(tables[number].copy() for number in numbers[: len(planes)])
    return JpegBlocks(height, width, tuple(planes), own, tuple(factors), orientation)


def jpeg_file(blocks: JpegBlocks, texts: Mapping[str, str] = NO_TEXTS) -> bytes:
    """Return a baseline JPEG with these blocks, and nothing else but EXIF (`dpveil.io.exif.with_exif`).

    Its entropy coding follows from the blocks alone. Raises `OutputError`.
    """
    tables: list[np.ndarray] = []
    numbers = np.full(SLOTS, -1, np.int16)
    for n, table in enumerate(blocks.tables):
        equal = [m for m, other in enumerate(tables) if (other == table).all()]
        numbers[n] = equal[0] if equal else len(tables)
        tables += [] if equal else [table]
    planes = [np.ascontiguousarray(plane) for plane in blocks.planes]
    sides = np.array([plane.shape[:2] for plane in planes], np.int32)
    factors, size = np.array(blocks.factors, np.int32), np.array([blocks.height, blocks.width], np.int32)
    colours = GREY if len(planes) == 1 else YCC
    from jpeglib._bind import CJpegLib

    flags = CJpegLib.flags_to_mask(["+OPTIMIZE_CODING"])
    with _file(b"") as name:
        parts = [*map(_pointer, planes), *[None] * (SLOTS - len(planes))]
        about = (*map(_pointer, (size, sides, factors)), colours, len(planes))
        coding = (_pointer(np.stack(tables)), -1, _pointer(numbers), 0, None, None, None, *flags)
        written = library().write_jpeg_dct(None, name.encode(), *parts, *about, *coding)
        data = Path(name).read_bytes()
    if not written or not data:
        raise OutputError("the JPEG cannot be written", hint="write a PNG instead")
    numbered = data[:JFIF_BYTES] + _number_components(data[JFIF_BYTES:])
    return with_exif(numbered, "jpeg", texts, blocks.orientation)


def _number_components(segments: bytes) -> bytes:
    """Return the segments of a JPEG with its components called 1, 2, 3, as JFIF asks, and not 0, 1, 2."""
    made, at = bytearray(segments), 0
    while made[at + 1] != 0xDA:
        length = int.from_bytes(made[at + 2 : at + 4], "big")
        if made[at + 1] in (0xC0, 0xC1):
            for place in range(at + 10, at + 2 + length, 3):
                made[place] += 1
        at += 2 + length
    for place in range(at + 5, at + 5 + 2 * made[at + 4], 2):
        made[place] += 1
    return bytes(made)


@cache
def library() -> Any:
    """Return libjpeg; loading it takes 0.03 s."""
    from jpeglib._bind import CJpegLib

    return CJpegLib._bind_lib(FASTEST if FASTEST in CJpegLib.versions() else "6b")


def _pointer(array: np.ndarray) -> Any:
    return np.ctypeslib.as_ctypes(array)


@contextmanager
def _file(data: bytes) -> Iterator[str]:
    """Yield the name of a file with these bytes, in memory where the system can: libjpeg here takes names."""
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("dpveil", os.MFD_CLOEXEC)
        try:
            os.write(handle, data)
            yield f"/proc/self/fd/{handle}"
        finally:
            os.close(handle)
        return
    with NamedTemporaryFile(suffix=".jpg", delete=False) as file:  # Windows opens no open file twice
        file.write(data)
    try:
        yield file.name
    finally:
        Path(file.name).unlink()
