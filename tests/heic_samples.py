"""HEIC files made in code: pictures that PyAV's x265 codes without loss, in containers of our own."""

import re
import struct
from collections.abc import Sequence

import av
import numpy as np
from PIL import Image

NCLX = b"nclx" + struct.pack(">HHHB", 1, 13, 6, 0x80)
FORMATS = {0: "gray", 1: "yuv420p", 3: "yuv444p"}
"""FFmpeg's name of each chroma format of H.265: grey, 4:2:0 and 4:4:4."""


def coded(levels: np.ndarray, chroma: int = 1) -> tuple[list[bytes], bytes]:
    """Parameter sets and the slice of a picture h × w × 3, by `chroma` 0 grey, 1 at 4:2:0, 3 at 4:4:4."""
    height, width = levels.shape[:2]
    planes = list(np.moveaxis(np.asarray(Image.fromarray(levels).convert("YCbCr")), 2, 0))[
        : 3 if chroma else 1
    ]
    if chroma == 1:
        planes[1:] = [plane[::2, ::2] for plane in planes[1:]]
    rows = np.stack(planes) if chroma == 3 else np.concatenate([p.ravel() for p in planes]).reshape(-1, width)
    encoder = av.CodecContext.create("libx265", "w")
    encoder.width, encoder.height, encoder.pix_fmt, encoder.framerate = width, height, FORMATS[chroma], 1
    encoder.options = {"x265-params": "lossless=1:ctu=16:min-cu-size=8:range=full:log-level=none:info=0"}
    frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(rows), FORMATS[chroma])
    stream = b"".join(map(bytes, [*encoder.encode(frame), *encoder.encode(None)]))
    units = [unit for unit in re.split(rb"\0{2,3}\x01", stream) if unit]
    kinds = {unit[0] >> 1: unit for unit in units}
    (picture,) = (unit for kind, unit in kinds.items() if kind < 32)
    return [kinds[kind] for kind in (32, 33, 34)], picture


def box(kind: bytes, *bodies: bytes) -> bytes:
    body = b"".join(bodies)
    return struct.pack(">I", 8 + len(body)) + kind + body


def config(sets: Sequence[bytes], chroma: int = 1) -> bytes:
    """The body of hvcC."""
    head = b"\1\3" + b"\x70" + bytes(9) + b"\x5d\xf0\0\xfc" + bytes((0xFC | chroma, 0xF8, 0xF8, 0, 0, 3))
    arrays = b"".join(struct.pack(">BHH", 0x80 | 32 + i, 1, len(each)) + each for i, each in enumerate(sets))
    return head + b"\x03" + arrays


Stored = tuple[bytes, bytes, list[tuple[bytes, bytes]], list[tuple[bytes, list[int]]]]
"""An item: type, contents, properties (type and body), and references."""


def size(width: int, height: int) -> tuple[bytes, bytes]:
    return b"ispe", struct.pack(">4xII", width, height)


def pictured(levels: np.ndarray, *more: tuple[bytes, bytes], chroma: int = 1) -> Stored:
    """An item that holds a picture, with more properties; 4:2:0 needs even sizes."""
    sets, data = coded(levels, chroma)
    told = [size(levels.shape[1], levels.shape[0]), (b"hvcC", config(sets, chroma)), (b"colr", NCLX)]
    return b"hvc1", struct.pack(">I", len(data)) + data, [*told, *more], []


def container(items: Sequence[Stored], *, brand: bytes = b"heic", more: bytes = b"") -> bytes:
    """A file with these items; the first is the picture. `more` are boxes at its end."""
    stored = [each for item in items for each in item[2]]
    stored = list(dict.fromkeys(stored))

    def meta(start: int) -> bytes:
        places = infos = links = references = b""
        for number, (kind, contents, properties, to) in enumerate(items, 1):
            infos += box(b"infe", struct.pack(">IHH", 2 << 24 | (number > 1), number, 0), kind, b"\0")
            places += struct.pack(">HHHII", number, 0, 1, start, len(contents))
            start += len(contents)
            links += struct.pack(">HB", number, len(properties))
            links += bytes(stored.index(each) + 1 for each in properties)
            for name, others in to:
                references += box(name, struct.pack(f">HH{len(others)}H", number, len(others), *others))
        count = struct.pack(">H", len(items))
        return box(
            b"meta", bytes(4), box(b"hdlr", bytes(8), b"pict", bytes(13)), box(b"pitm", bytes(4), b"\0\1"),
            box(b"iloc", bytes(4), b"\x44\0", count, places), box(b"iinf", bytes(4), count, infos),
            box(b"iprp", box(b"ipco", *(box(*each) for each in stored)),
                box(b"ipma", bytes(4), struct.pack(">I", len(items)), links)),
            box(b"iref", bytes(4), references) if references else b"",
        )  # fmt: skip

    head = box(b"ftyp", brand, bytes(4), b"mif1", brand)
    return head + meta(len(head) + len(meta(0)) + 8) + box(b"mdat", *(item[1] for item in items)) + more


def heic(levels: np.ndarray, *more: tuple[bytes, bytes], chroma: int = 1) -> bytes:
    """A HEIC with one picture, and nothing else."""
    return container([pictured(levels, *more, chroma=chroma)])


def tiled(levels: np.ndarray, side: int, *more: tuple[bytes, bytes]) -> bytes:
    """A HEIC of square tiles, as phones write them; the last ones reach beyond the edges."""
    height, width = levels.shape[:2]
    rows, columns = -(-height // side), -(-width // side)
    wide = np.pad(levels, ((0, rows * side - height), (0, columns * side - width), (0, 0)), mode="edge")
    tiles = [
        pictured(wide[row * side : (row + 1) * side, column * side : (column + 1) * side])
        for row, column in np.ndindex(rows, columns)
    ]
    grid = struct.pack(">BBBBHH", 0, 0, rows - 1, columns - 1, width, height)
    of = [(b"dimg", list(range(2, 2 + len(tiles))))]
    return container([(b"grid", grid, [size(width, height), (b"colr", NCLX), *more], of), *tiles])
