"""Pictures to recognise, and small files made byte by byte where no encoder would write them."""

import struct
import zlib
from io import BytesIO
from typing import Any

import numpy as np
from PIL import Image, ImageCms


def picture(height: int, width: int, channels: int = 3) -> np.ndarray:
    """Smooth, and different under every flip and turn, so that lossy codecs keep it recognisable."""
    y, x = np.mgrid[:height, :width]
    planes = (
        x * 200 // max(width - 1, 1),
        y * 120 // max(height - 1, 1) + 40,
        (x + 2 * y) * 255 // (width + 2 * height),
    )
    return np.stack(planes[:channels], axis=2).astype(np.uint8)


def file_bytes(image: np.ndarray | Image.Image, fmt: str, **options: Any) -> bytes:
    buffer = BytesIO()
    (Image.fromarray(image) if isinstance(image, np.ndarray) else image).save(buffer, fmt, **options)
    return buffer.getvalue()


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png(
    width: int,
    height: int,
    depth: int,
    colour: int,
    row: bytes,
    *,
    trns: bytes = b"",
    idat: bytes | None = None,
    interlace: int = 0,
) -> bytes:
    """A PNG whose rows are all `row`, or whose compressed data are `idat`."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    data = zlib.compress((b"\0" + row) * height) if idat is None else idat
    chunks = chunk(b"IHDR", header) + (chunk(b"tRNS", trns) if trns else b"")
    return b"\x89PNG\r\n\x1a\n" + chunks + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def tiff(width: int, height: int, bits: int, data: bytes, *, order: str = "<", photometric: int = 1) -> bytes:
    """An uncompressed one-channel TIFF."""
    entries = [(256, width), (257, height), (258, bits), (259, 1), (262, photometric), (273, 0), (277, 1)]
    entries += [(278, height), (279, len(data))]
    at = 8 + 2 + 12 * len(entries) + 4
    body = struct.pack(order + "H", len(entries))
    for tag, value in entries:
        body += struct.pack(order + "HHII", tag, 4, 1, at if tag == 273 else value)
    magic = b"II" if order == "<" else b"MM"
    return magic + struct.pack(order + "HI", 42, 8) + body + bytes(4) + data


def swapped_profile() -> bytes:
    """An sRGB profile with the red and the green primaries exchanged: applying it cannot go unnoticed."""
    data = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    return data.replace(b"rXYZ", b"tmp_").replace(b"gXYZ", b"rXYZ").replace(b"tmp_", b"gXYZ")
