"""HEIC and AVIF before decoding: only the coded picture is copied into a new file.

The decoder never sees the received container: no metadata, thumbnail, second picture or gain map, and no
unchecked number (docs: limits). Rotation and mirroring are returned separately.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from dpveil.core.photo import Grid
from dpveil.io.coded import CODED, Coded
from dpveil.io.isobmff import Item, Items, Reading, items_of
from dpveil.io.orientation import TURNS, Turn
from dpveil.io.refused import SAVE_ANEW, Refused, damaged

BRANDS: Final = {b"avif": "AVIF", b"avis": "AVIF"} | dict.fromkeys(
    (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx"), "HEIC"
)
"""The format of each brand in the file type box."""
NAMES: Final = {b"hvc1": "HEIC", b"av01": "AVIF"}
"""The format of each type of coded item."""
BLOCK: Final = {"HEIC": 64, "AVIF": 128}
"""Sides of H.265's largest coding tree units and AV1's largest superblocks, in pixels."""
MARGIN: Final = 16
"""How far in-loop filters and chroma interpolation reach across the edge of a block, in pixels.

Where the sides of tiles are not multiples of a block's, block edges are not evenly spaced, and the margin
includes a whole block.
"""
ALPHA: Final = (b"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha\0", b"urn:mpeg:hevc:2015:auxid:1\0")
"""Types of auxiliary pictures (auxC) that hold the alpha channel."""
KEPT: Final = frozenset({b"colr", b"pixi"})
"""Properties that are copied: colour information and bits per channel."""
STEPS: Final = (b"clap", b"irot", b"imir")
"""Transformative properties in the only order that is accepted (ISO 23000-22 §7.3.6.7)."""
TURNED: Final = (1, 8, 3, 6)
"""EXIF orientations of 0 to 3 rotations by 90° anticlockwise."""
BRIGHT: Final = {16, 18}
"""Transfer functions of high dynamic range: PQ and HLG (ITU-T H.273)."""
Check = Callable[[int, int], None]
"""Raises `Refused` if a picture of this width and height in pixels is too large."""


@dataclass(frozen=True)
class Heif:
    """The new file, its size in pixels after cropping at the right and the bottom, its grid of blocks, its
    rotation and mirroring, and its bit depth.
    """

    data: bytes
    size: tuple[int, int]
    grid: Grid
    turn: Turn
    depth: int


class Kept(NamedTuple):
    """An item of the new file: type, coded data, properties, and references to other items by number."""

    kind: bytes
    contents: bytes
    properties: tuple[tuple[bytes, bytes], ...]
    references: tuple[tuple[bytes, tuple[int, ...]], ...] = ()


@dataclass
class _Lean:
    items: list[Kept] = field(default_factory=list)
    size: tuple[int, int] = (0, 0)
    depth: int = 8
    tile: tuple[int, int] | None = None


def brand_name(head: bytes) -> str | None:
    """Return "HEIC" or "AVIF" if the first bytes are those of such a file, else None."""
    if head[4:8] != b"ftyp":
        return None
    end = min(int.from_bytes(head[:4], "big"), len(head))
    brands = [head[8:12], *(head[at : at + 4] for at in range(16, end - 3, 4))]
    return next((BRANDS[brand] for brand in brands if brand in BRANDS), None)


def lean_heif(data: bytes, name: str, check: Check) -> Heif:
    """Return a new file with only the primary picture and its alpha channel, from a file of format `name`.

    Raises `Refused` if the picture is a sequence, not coded as `name` says, cropped at the left or top,
    mirrored before it is rotated, or of high dynamic range; if sizes contradict one another; and where
    `check` raises.
    """
    items = items_of(data, name)
    primary = items.every.get(items.primary)
    if primary is None or any(kind == b"prem" for kind, _ in primary.references):
        raise damaged(name)
    lean = _Lean()
    _add_picture(lean, items, primary, check)
    _add_alpha(lean, items, check)
    side = BLOCK[name]
    even = lean.tile is None or not any(length % side for length in lean.tile)
    grid = (
        Grid(side, side, margin=MARGIN, codec=name) if even else Grid(1, 1, margin=side + MARGIN, codec=name)
    )
    return Heif(
        _file(name, lean.items), _crop(primary, lean.size, name), grid, _turn(primary, name), lean.depth
    )


def _add_picture(lean: _Lean, items: Items, item: Item, check: Check) -> None:
    """Add the picture `item`, with its tiles if it is a grid."""
    size = lean.size = _size(item, items.name)
    check(*size)
    if item.kind != b"grid":
        coded = _coded(items, item, check)
        lean.depth = coded.depth
        lean.items.append(_kept(item, coded, items.name))
        return
    numbers = [tiles for kind, tiles in item.references if kind == b"dimg"]
    columns, rows = _layout(items, item)
    tiles = [items.every[n] for group in numbers for n in dict.fromkeys(group) if n in items.every]
    if len(numbers) != 1 or not len(tiles) == len(numbers[0]) == columns * rows:
        raise damaged(items.name)
    width, height = lean.tile = _size(tiles[0], items.name)
    check(columns * width, rows * height)
    if not (0 <= columns * width - size[0] < width and 0 <= rows * height - size[1] < height):
        raise damaged(items.name)
    references = ((b"dimg", tuple(range(2, 2 + len(tiles)))),)
    properties = (_ispe(*size), *_plain(item))
    lean.items.append(Kept(b"grid", items.contents(item), properties, references))
    for tile in tiles:
        if _size(tile, items.name) != lean.tile:
            raise damaged(items.name)
        coded = _coded(items, tile, check)
        lean.depth = max(lean.depth, coded.depth)
        lean.items.append(_kept(tile, coded, items.name))


def _layout(items: Items, item: Item) -> tuple[int, int]:
    """Return columns and rows of a grid item; raises `Refused` if it states another size than its picture."""
    contents = items.contents(item)
    reading = Reading(contents, 0, len(contents), items.name)
    version, flags, rows, columns = (reading.number(1) for _ in range(4))
    size = tuple(reading.number(4 if flags & 1 else 2) for _ in range(2))
    if version or size != _size(item, items.name) or reading.at != reading.end:
        raise damaged(items.name)
    return columns + 1, rows + 1


def _add_alpha(lean: _Lean, items: Items, check: Check) -> None:
    """Add the picture's alpha channel, without which the decoder would show hidden colours."""
    for item in items.every.values():
        of = [numbers for kind, numbers in item.references if kind == b"auxl"]
        kinds = {body[4:] for kind, body in item.properties if kind == b"auxC"}
        if not of or not any(kind.startswith(ALPHA) for kind in kinds):
            continue
        if not any(items.primary in numbers for numbers in of):  # of a tile, which some decoders apply
            raise Refused("has transparency in several parts", SAVE_ANEW)
        if lean.items[0].references or lean.items[-1].references or len(kinds) != 1:
            raise Refused("has transparency in several parts", SAVE_ANEW)
        if _size(item, items.name) != lean.size:
            raise damaged(items.name)
        kept = _kept(item, _coded(items, item, check), items.name)
        kind = (b"auxC", bytes(4) + next(iter(kinds)))
        lean.items.append(kept._replace(properties=(*kept.properties, kind), references=((b"auxl", (1,)),)))


def _size(item: Item, name: str) -> tuple[int, int]:
    sizes = [body for kind, body in item.properties if kind == b"ispe"]
    if len(sizes) != 1 or len(sizes[0]) != 12:
        raise damaged(name)
    width, height = struct.unpack(">4xII", sizes[0])
    return width, height


def _coded(items: Items, item: Item, check: Check) -> Coded:
    """Return the coded picture of `item`, whose size must be the container's except for H.265's padding."""
    if NAMES.get(item.kind) != items.name:
        raise Refused(f"is not coded as {items.name} files are", SAVE_ANEW)
    kind, read = CODED[item.kind]
    configs = [body for name, body in item.properties if name == kind]
    if len(configs) != 1:
        raise damaged(items.name)
    coded = read(configs[0], items.contents(item))
    check(coded.width, coded.height)
    width, height = _size(item, items.name)
    spare = BLOCK["HEIC"] if items.name == "HEIC" else 1
    if not (0 <= coded.width - width < spare and 0 <= coded.height - height < spare):
        raise damaged(items.name)
    return coded


def _kept(item: Item, coded: Coded, name: str) -> Kept:
    config = next((kind, body) for kind, body in item.properties if kind == CODED[item.kind][0])
    return Kept(item.kind, coded.data, (_ispe(*_size(item, name)), config, *_plain(item)))


def _plain(item: Item) -> Iterable[tuple[bytes, bytes]]:
    """Yield the properties in `KEPT`; raises `Refused` for high dynamic range."""
    for kind, body in item.properties:
        if kind == b"colr" and body[:4] == b"nclx" and int.from_bytes(body[6:8], "big") in BRIGHT:
            raise Refused("is of high dynamic range", "save it with standard range, or as an 8-bit PNG")
        if kind in KEPT:
            yield kind, body


def _ispe(width: int, height: int) -> tuple[bytes, bytes]:
    return b"ispe", struct.pack(">4xII", width, height)


def _crop(item: Item, size: tuple[int, int], name: str) -> tuple[int, int]:
    """Return the size after cropping (clap), which encoders use at the right and bottom for odd sides.

    Raises `Refused` for any other crop.
    """
    bodies = [body for kind, body in item.properties if kind == b"clap"]
    if not bodies:
        return size
    if len(bodies) != 1 or len(bodies[0]) != 32:
        raise damaged(name)
    numbers = struct.unpack(">IIIIiIiI", bodies[0])
    sides: list[int] = []
    pairs = zip(numbers[::2], numbers[1::2], strict=True)
    wide, high, right, down = pairs
    for whole, (top, bottom), (shift, per) in ((size[0], wide, right), (size[1], high, down)):
        if not bottom or not per or top % bottom or not 0 < top // bottom <= whole:
            raise damaged(name)
        if 2 * shift != -(whole - top // bottom) * per:
            raise Refused("is cropped by its container", SAVE_ANEW)
        sides.append(top // bottom)
    return sides[0], sides[1]


def _turn(item: Item, name: str) -> Turn:
    """Return the rotation (irot) followed by mirroring (imir; 0 exchanges top and bottom)."""
    steps = [(kind, body[0] if body else 0) for kind, body in item.properties if kind in STEPS]
    kinds = [kind for kind, _ in steps]
    if kinds != [kind for kind in STEPS if kind in kinds]:
        raise damaged(name)
    turn = TURNS[1]
    for kind, value in steps:
        if kind == b"irot":
            turn = TURNS[TURNED[value & 3]]
        elif kind == b"imir" and value & 1:
            turn = turn._replace(flip_x=not turn.flip_x)
        elif kind == b"imir":
            turn = turn._replace(flip_y=not turn.flip_y)
    return turn


def _box(kind: bytes, *bodies: bytes) -> bytes:
    body = b"".join(bodies)
    return (8 + len(body)).to_bytes(4, "big") + kind + body


def _file(name: str, items: list[Kept]) -> bytes:
    """Return a file with these items; the first is the primary picture."""
    brand = name.lower().encode()
    head = _box(b"ftyp", brand, bytes(4), brand, b"mif1", b"miaf")
    empty = _meta(items, 0)
    meta = _meta(items, len(head) + len(empty) + 8)
    return head + meta + _box(b"mdat", *(item.contents for item in items))


def _meta(items: list[Kept], start: int) -> bytes:
    stored = list(dict.fromkeys(each for item in items for each in item.properties))
    index = {each: at for at, each in enumerate(stored, 1)}
    needed = {kind for kind, _ in CODED.values()}
    infos, places, links, references = [], [], [], []
    for number, item in enumerate(items, 1):
        infos.append(_box(b"infe", struct.pack(">IHH", 2 << 24 | (number > 1), number, 0), item.kind, b"\0"))
        places.append(struct.pack(">HHHII", number, 0, 1, start, len(item.contents)))
        start += len(item.contents)
        links.append(struct.pack(">HB", number, len(item.properties)))
        links += [
            (index[each] | (0x8000 if each[0] in needed else 0)).to_bytes(2, "big")
            for each in item.properties
        ]
        references += [
            _box(kind, struct.pack(f">HH{len(to)}H", number, len(to), *to)) for kind, to in item.references
        ]
    count = len(items).to_bytes(2, "big")
    return _box(
        b"meta",
        bytes(4),
        _box(b"hdlr", bytes(8), b"pict", bytes(13)),
        _box(b"pitm", bytes(4), b"\0\1"),
        _box(b"iloc", bytes(4), b"\x44\0", count, *places),
        _box(b"iinf", bytes(4), count, *infos),
        _box(
            b"iprp",
            _box(b"ipco", *(_box(*each) for each in stored)),
            _box(b"ipma", b"\0\0\0\1", len(items).to_bytes(4, "big"), *links),
        ),
        _box(b"iref", bytes(4), *references) if references else b"",
    )
