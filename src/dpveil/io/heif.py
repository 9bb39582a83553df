"""What HEIC and AVIF files state of their picture: block grid, rotation, cropping (ISO 23008-12, 14496-12).

Decoders tell neither tiles nor, for AVIF, cropping, and regions grow to the blocks of tiles. The file is read
in the process that decodes it, whose limits hold here, too.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from dpveil.core.jpeg_blocks import TURNS, Turn
from dpveil.core.photo import Grid
from dpveil.io.unreadable import SAVE_ANEW, Refused, animation, damage_refusal

UPRIGHT: Final = TURNS[1]


def turned_grid(grid: Grid, turn: Turn, *, width: int, height: int) -> Grid:
    """Return the stored picture's `grid` in coordinates of the oriented photo, of this size in pixels."""
    w, h = (grid.height, grid.width) if turn.transpose else (grid.width, grid.height)
    x0 = width % w if turn.flip_x else 0
    y0 = height % h if turn.flip_y else 0
    return replace(grid, width=w, height=h, x0=x0, y0=y0)


ORIENTATION: Final = 0x0112
WHOLE: Final = {1: 1, 3: 2, 4: 4}
"""Sizes of EXIF's unsigned integer types in bytes."""
IN_XMP: Final = re.compile(rb'tiff:Orientation(?:="|>)([0-9])')
RAW_PROFILE: Final = "Raw profile type exif"
"""The keyword under which ImageMagick stores EXIF in a PNG: three lines, then hexadecimal digits."""


def orientation(exif: bytes, xmp: bytes) -> int | None:
    """Return the orientation in EXIF, else in XMP, else None; raises `ValueError` for malformed EXIF.

    The value is as stored: 1 to 8 in a valid file.
    """
    stated = _in_exif(exif) if exif else None
    if stated is None and (match := IN_XMP.search(xmp)):
        return int(match[1])
    return stated


def words_of(info: Mapping[Any, Any]) -> tuple[bytes, bytes]:
    """Return the EXIF and XMP bytes in Pillow's `info`; raises `ValueError` for malformed hexadecimal."""
    exif, xmp, raw = info.get("exif"), info.get("xmp"), info.get(RAW_PROFILE)
    if not exif and isinstance(raw, str):
        exif = bytes.fromhex("".join(raw.split("\n")[3:]))
    return tuple(word if isinstance(word, bytes) else b"" for word in (exif, xmp))  # type: ignore[return-value]


def _in_exif(exif: bytes) -> int | None:
    while exif.startswith(b"Exif\0\0"):
        exif = exif[6:]
    if exif[:4] not in (b"II*\0", b"MM\0*"):
        raise ValueError("no TIFF header")
    little = exif[:2] == b"II"

    def number(at: int, size: int) -> int:
        if at + size > len(exif):
            raise ValueError("cut off")
        return int.from_bytes(exif[at : at + size], "little" if little else "big")

    first = number(4, 4)
    for start in range(first + 2, first + 2 + 12 * number(first, 2), 12):
        if number(start, 2) == ORIENTATION and number(start + 4, 4):
            size = WHOLE.get(number(start + 2, 2))
            return None if size is None else number(start + 8, size)
    return None


BRANDS: Final = {b"avif": "AVIF", b"avis": "AVIF"} | dict.fromkeys(
    (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx"), "HEIC"
)
"""The format of each brand in the file type box."""
CODED: Final = {"HEIC": (b"hvc1", b"hvcC"), "AVIF": (b"av01", b"av1C")}
"""The type of coded items of each format, and the property with their decoder's configuration."""
BLOCK: Final = {"HEIC": 64, "AVIF": 128}
"""Sides of H.265's largest coding tree units and AV1's largest superblocks, in pixels."""
MARGIN: Final = 16
"""How far in-loop filters and chroma interpolation reach across the edge of a block, in pixels.

Where the sides of tiles are not multiples of a block's, block edges are not evenly spaced, and the margin
includes a whole block.
"""
STEPS: Final = (b"clap", b"irot", b"imir")
"""Transformative properties in the only order that is accepted (ISO 23000-22 §7.3.6.7)."""
TURNED: Final = (1, 8, 3, 6)
"""EXIF orientations of 0 to 3 rotations by 90° anticlockwise."""
BRIGHT: Final = {16, 18}
"""Transfer functions of high dynamic range: PQ and HLG (ITU-T H.273)."""
Properties = list[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Heif:
    """The picture's size after cropping at the right and the bottom, before its rotation and mirroring; its
    grid of blocks, `turn`, and bit depth.
    """

    size: tuple[int, int]
    grid: Grid
    turn: Turn
    depth: int


def brand_name(head: bytes) -> str | None:
    """Return "HEIC" or "AVIF" if the first bytes are those of such a file, else None."""
    if head[4:8] != b"ftyp":
        return None
    end = min(int.from_bytes(head[:4], "big"), len(head))
    brands = [head[8:12], *(head[at : at + 4] for at in range(16, end - 3, 4))]
    return next((BRANDS[brand] for brand in brands if brand in BRANDS), None)


def read_heif(data: bytes, name: str) -> Heif:
    """Return what a file of format `name` states of its picture.

    Raises `Refused` for sequences, pictures that are coded otherwise, cropped at the left or the top,
    mirrored before they are rotated, or of high dynamic range, and for malformed files.
    """
    try:
        return _picture(data, name)
    except (ValueError, KeyError, IndexError, struct.error) as error:
        raise damage_refusal(name) from error


def _picture(data: bytes, name: str) -> Heif:
    top = list(_boxes(data, 0, len(data)))
    if any(kind in (b"moov", b"moof") for kind, *_ in top):
        raise animation(0)
    [(start, end)] = [(start + 4, end) for kind, start, end in top if kind == b"meta"]
    parts = {kind: (start, end) for kind, start, end in _boxes(data, start, end)}
    primary = _primary(data, *parts[b"pitm"])
    kinds, properties = _kinds(data, *parts[b"iinf"]), _properties(data, *parts[b"iprp"])
    own, tiles = properties[primary], [primary]
    if kinds[primary] == b"grid":
        references = _references(data, *parts[b"iref"])
        tiles = references[primary]
    if {kinds[tile] for tile in tiles} != {CODED[name][0]}:
        raise Refused(f"is not coded as {name} files are", SAVE_ANEW)
    for kind, body in own:
        if kind == b"colr" and body[:4] == b"nclx" and int.from_bytes(body[6:8], "big") in BRIGHT:
            raise Refused("is of high dynamic range", "save it with standard range, or as an 8-bit PNG")
    sides = {_size(properties[tile]) for tile in tiles}
    side = BLOCK[name]
    even = tiles == [primary] or (len(sides) == 1 and not any(length % side for length in min(sides)))
    grid = (
        Grid(side, side, margin=MARGIN, codec=name) if even else Grid(1, 1, margin=side + MARGIN, codec=name)
    )
    depth = max(_depth(name, _single(properties[tile], CODED[name][1])) for tile in tiles)
    return Heif(_cropped_size(own, _size(own)), grid, _turn(own), depth)


def _boxes(data: bytes, at: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield type, and where the body starts and ends, of each box; raises `ValueError` if they do not fit."""
    while at < end:
        size, kind = struct.unpack_from(">I4s", data, at)
        head = 8
        if size == 1:
            (size,), head = struct.unpack_from(">Q", data, at + 8), 16
        size = size or end - at
        if not head <= size <= end - at:
            raise ValueError("a box does not fit")
        yield kind, at + head, at + size
        at += size


def _primary(data: bytes, start: int, end: int) -> int:
    return int.from_bytes(data[start + 4 : start + (8 if data[start] else 6)], "big")


def _kinds(data: bytes, start: int, end: int) -> dict[int, bytes]:
    """Return the types of all items."""
    found = {}
    for _, at, _ in _boxes(data, start + (8 if data[start] else 6), end):
        wide = 4 if data[at] == 3 else 2
        number = int.from_bytes(data[at + 4 : at + 4 + wide], "big")
        found[number] = data[at + 6 + wide : at + 10 + wide]
    return found


def _properties(data: bytes, start: int, end: int) -> dict[int, Properties]:
    """Return the properties of all items, type and body, in the order in which they apply."""
    [(_, first, last), *tables] = _boxes(data, start, end)
    stored = [(kind, data[a:b]) for kind, a, b in _boxes(data, first, last)]
    found: dict[int, Properties] = {}
    for _, at, _ in tables:
        wide, long = (4 if data[at] else 2), 1 + (data[at + 3] & 1)
        (count,) = struct.unpack_from(">I", data, at + 4)
        at += 8
        for _ in range(count):
            number, many = int.from_bytes(data[at : at + wide], "big"), data[at + wide]
            at += wide + 1
            every = [int.from_bytes(data[at + long * i : at + long * (i + 1)], "big") for i in range(many)]
            at += long * many
            mask = 0x7FFF if long == 2 else 0x7F
            found[number] = [stored[(index & mask) - 1] for index in every if index & mask]
    return found


def _references(data: bytes, start: int, end: int) -> dict[int, list[int]]:
    """Return the tiles of all items that are made of some."""
    form = ">I" if data[start] else ">H"
    wide = struct.calcsize(form)
    found = {}
    for kind, at, _ in _boxes(data, start + 4, end):
        number, count = struct.unpack_from(f"{form}H", data, at)
        if kind == b"dimg":
            found[number] = [*struct.unpack_from(f">{count}{form[1]}", data, at + wide + 2)]
    return found


def _single(properties: Properties, wanted: bytes) -> bytes:
    [body] = [body for kind, body in properties if kind == wanted]
    return body


def _size(properties: Properties) -> tuple[int, int]:
    width, height = struct.unpack(">4xII", _single(properties, b"ispe"))
    return width, height


def _depth(name: str, configured: bytes) -> int:
    """Return the bits of a level (ISO 14496-15 §8.3.3.1; AV1 in ISOBMFF §2.3)."""
    if name == "HEIC":
        return 8 + max(configured[17] & 7, configured[18] & 7)
    return 8 if not configured[2] & 0x40 else 12 if configured[2] & 0x20 else 10


def _cropped_size(properties: Properties, size: tuple[int, int]) -> tuple[int, int]:
    """Return the size after cropping (clap), which encoders use at the right and bottom for odd sides.

    Raises `Refused` for any other crop.
    """
    if b"clap" not in dict(properties):
        return size
    numbers = struct.unpack(">IIIIiIiI", _single(properties, b"clap"))
    sides: list[int] = []
    wide, high, right, down = zip(numbers[::2], numbers[1::2], strict=True)
    for whole, (top, bottom), (shift, per) in ((size[0], wide, right), (size[1], high, down)):
        if not bottom or not per or top % bottom or not 0 < top // bottom <= whole:
            raise ValueError("the crop is impossible")
        if 2 * shift != -(whole - top // bottom) * per:
            raise Refused("is cropped by its container", SAVE_ANEW)
        sides.append(top // bottom)
    return sides[0], sides[1]


def _turn(properties: Properties) -> Turn:
    """Return the rotation (irot) followed by mirroring (imir; 0 exchanges top and bottom)."""
    steps = [(kind, body[0] if body else 0) for kind, body in properties if kind in STEPS]
    kinds = [kind for kind, _ in steps]
    if kinds != [kind for kind in STEPS if kind in kinds]:
        raise ValueError("the steps are in no known order")
    turn = TURNS[1]
    for kind, value in steps:
        if kind == b"irot":
            turn = TURNS[TURNED[value & 3]]
        elif kind == b"imir" and value & 1:
            turn = turn._replace(flip_x=not turn.flip_x)
        elif kind == b"imir":
            turn = turn._replace(flip_y=not turn.flip_y)
    return turn
