"""Damage to image files: blind (bits, cuts, splices) and informed (sizes, lengths, counts, packed data)."""

import random
import struct
import zlib
from collections.abc import Callable

Field = tuple[int, int, str]
"""A number in a file: where, how many bytes, and which end first."""


def _riff(data: bytes) -> list[Field]:
    found: list[Field] = [(4, 4, "little")]
    at = 12
    while at + 8 <= len(data):
        name, length = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        found.append((at + 4, 4, "little"))
        if name == b"VP8X":
            found += [(at + 8, 1, "little"), *[(at + 12, 3, "little"), (at + 15, 3, "little")] * 3]
        if name == b"VP8 ":
            found += [(at + 14, 2, "little"), (at + 16, 2, "little")] * 3 + [(at + 8, 3, "little")]
        if name == b"VP8L":
            found += [(at + 9, 4, "little")] * 3
        if name == b"ANMF":
            found += [(at + 8 + 3 * i, 3, "little") for i in range(5)]
        at += 8 + length + length % 2
    return found


def _png(data: bytes) -> list[Field]:
    found: list[Field] = []
    at = 8
    while at + 12 <= len(data):
        found.append((at, 4, "big"))
        if data[at + 4 : at + 8] == b"IHDR":
            found += [(at + 8, 4, "big"), (at + 12, 4, "big")] * 4
            found += [(at + 16 + i, 1, "big") for i in range(5)] * 2
        elif data[at + 4 : at + 8] in (b"acTL", b"fcTL", b"tRNS", b"pHYs"):
            found += [(i, 4, "big") for i in range(at + 8, at + 32, 4)]
        at += 12 + int.from_bytes(data[at : at + 4], "big")
    return found


def _jpeg(data: bytes) -> list[Field]:
    found: list[Field] = []
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF and data[at + 1] != 0xDA:
        found.append((at + 2, 2, "big"))
        if data[at + 1] in (0xC0, 0xC1, 0xC2):
            found += [(at + 5, 2, "big"), (at + 7, 2, "big")] * 4
            found += [(at + i, 1, "big") for i in (4, 9, 10, 11, 12, 13, 14)]
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return [*found, (at + 2, 2, "big")]


def _tiff(data: bytes) -> list[Field]:
    order = "little" if data[:2] == b"II" else "big"
    big = data[2:4] in (b"+\0", b"\0+")
    word, entry, head = (8, 20, 8) if big else (4, 12, 2)
    at = int.from_bytes(data[8 : 8 + word] if big else data[4:8], order)
    found: list[Field] = [(8 if big else 4, word, order), (at, head, order)]
    for i in range(min(int.from_bytes(data[at : at + head], order), 60)):
        start = at + head + i * entry
        tag = int.from_bytes(data[start : start + 2], order)
        weight = 4 if tag in (256, 257, 258, 259, 262, 277, 278, 322, 323, 530) else 1
        found += [(start + 4, word, order), *[(start + 4 + word, word, order)] * weight]
        found += [(start + 4 + word, 2, order)] * weight + [(start, 2, order), (start + 2, 2, order)]
        if weight > 1 and start + 4 + word + 4 <= len(data):  # several values lie elsewhere
            spill = int.from_bytes(data[start + 4 + word : start + 8 + word], order)
            found += [(spill, 2, order)] if int.from_bytes(data[start + 4 : start + 8], order) > 2 else []
    return found


def _bmp(data: bytes) -> list[Field]:
    sizes = [(18, 4, "little"), (22, 4, "little"), (18, 2, "little"), (20, 2, "little"), (28, 2, "little")]
    return [(i, 4, "little") for i in (2, 10, 14, 30, 34, 38, 42, 46, 50)] + sizes * 2 + [(54, 4, "little")]


def _gif(data: bytes) -> list[Field]:
    found: list[Field] = [(6, 2, "little"), (8, 2, "little"), (10, 1, "little")] * 3
    at = 13 + _palette(data, 10)
    while data[at : at + 1] in (b"!", b","):
        if data[at : at + 1] == b",":
            found += [(at + 1 + 2 * i, 2, "little") for i in range(4)] * 3 + [(at + 9, 1, "little")]
            at += 11 + _palette(data, at + 9)
        else:
            at += 2
        while at < len(data) and data[at]:
            found.append((at, 1, "little"))
            at += 1 + data[at]
        at += 1
    return found


def _palette(data: bytes, at: int) -> int:
    return 3 << (data[at] & 7) + 1 if at < len(data) and data[at] & 0x80 else 0


NESTED = {b"meta": 4, b"iprp": 0, b"ipco": 0, b"iinf": 6, b"iref": 4}
"""Boxes that hold boxes, and the bytes before them."""


def _boxes(data: bytes, at: int = 0, end: int | None = None) -> list[Field]:
    """Sizes of boxes, and the numbers in those that say what there is and where."""
    found: list[Field] = []
    end = len(data) if end is None else end
    while at + 8 <= end:
        size, kind = max(8, int.from_bytes(data[at : at + 4], "big")), data[at + 4 : at + 8]
        stop = min(end, at + size)
        found.append((at, 4, "big"))
        if kind in NESTED:
            found += _boxes(data, at + 8 + NESTED[kind], stop)
        elif kind == b"ispe":
            found += [(at + 12, 4, "big"), (at + 16, 4, "big")] * 3
        else:
            found += [(i, 1, "big") for i in range(at + 8, min(stop, at + 60))]
        at += size
    return found


def _netpbm(data: bytes) -> list[Field]:
    return [(i, 1, "big") for i in range(min(len(data), 24))]


FIELDS: dict[str, Callable[[bytes], list[Field]]] = {
    "jpeg": _jpeg, "png": _png, "webp": _riff, "tiff": _tiff, "bmp": _bmp,
    "avif": _boxes, "heic": _boxes, "gif": _gif, "netpbm": _netpbm,
}  # fmt: skip


def damaged(name: str, seeds: dict[str, bytes], rng: random.Random) -> bytes:
    """The seed `name` after one to four rounds of damage."""
    kind = name.split()[0]
    data = seeds[name]
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        data = rng.choices(WAYS, WEIGHTS)[0](kind, data, seeds, rng) if data else data
    return _mended(data) if kind == "png" and rng.random() < 0.8 else data


def _bits(kind: str, data: bytes, seeds: dict[str, bytes], rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def _head_bytes(kind: str, data: bytes, seeds: dict[str, bytes], rng: random.Random) -> bytes:
    """Bytes near the beginning, where headers are, take values at the edges."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        out[min(rng.randrange(len(out)), rng.randrange(len(out)))] = rng.choice((0, 1, 2, 127, 128, 254, 255))
    return bytes(out)


def _cut(kind: str, data: bytes, seeds: dict[str, bytes], rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def _splice(kind: str, data: bytes, seeds: dict[str, bytes], rng: random.Random) -> bytes:
    """A part is left out, doubled, or taken from a file of the same format, rarely from any."""
    names = [name for name in seeds if name.startswith(kind) or rng.random() < 0.05]
    other = seeds[rng.choice(names)]
    a, b = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    c, d = sorted(rng.randrange(len(other) + 1) for _ in range(2))
    middle = rng.choice((b"", data[a:b] * 2, other[c:d], bytes(rng.choice((1, 16, 5000)))))
    return data[:a] + middle + data[rng.choice((a, b)) :]


def _numbers(kind: str, data: bytes, seeds: dict[str, bytes], rng: random.Random) -> bytes:
    """A length, count, size or offset takes a value at an edge or near the one it had."""
    out = bytearray(data)
    for at, size, order in rng.choices(FIELDS[kind](data) or [(0, 1, "big")], k=rng.choice((1, 1, 1, 2, 3))):
        if at < 0 or at + size > len(out):
            continue
        old, top = int.from_bytes(out[at : at + size], order), 256**size - 1
        edges = (0, 1, 2, 3, 7, 8, 255, 256, 4096, 65535, top, top // 2, top // 2 + 1, len(data))
        near = (old - 1, old + 1, old * 2, old // 2, old * 17, -old, old ^ 1 << rng.randrange(8 * size))
        value = rng.choice((rng.choice(edges), rng.choice(near), rng.randrange(top + 1), rng.randrange(2000)))
        out[at : at + size] = (value & top).to_bytes(size, order)
    return bytes(out)


def _packed(kind: str, data: bytes, seeds: dict[str, bytes], rng: random.Random) -> bytes:
    """What a PNG holds compressed is damaged inside, or is much longer than it should be."""
    if kind != "png":
        return _numbers(kind, data, seeds, rng)
    at = data.find(b"IDAT", 8) - 4
    if at < 0:
        return _bits(kind, data, seeds, rng)
    length = int.from_bytes(data[at : at + 4], "big")
    try:
        rows = bytearray(zlib.decompress(data[at + 8 : at + 8 + length]))
    except zlib.error:
        return _bits(kind, data, seeds, rng)
    for _ in range(rng.choice((0, 1, 4)) if rows else 0):
        rows[rng.randrange(len(rows))] = rng.randrange(256)
    long = bytes(rows) + bytes(rng.choice((0, 0, 1, 100_000, 3_000_000)))
    kept = rng.choice((len(long), len(long), rng.randrange(len(long) + 1)))
    body = zlib.compress(long[:kept], 1)
    return data[:at] + struct.pack(">I", len(body)) + b"IDAT" + body + data[at + 8 + length :]


def _mended(data: bytes) -> bytes:
    """Give the chunks of a PNG checksums that are right, so that the damage gets past them."""
    out = bytearray(data)
    at = 8
    while at + 12 <= len(out):
        end = at + 8 + int.from_bytes(out[at : at + 4], "big")
        if end + 4 > len(out):
            break
        out[end : end + 4] = struct.pack(">I", zlib.crc32(out[at + 4 : end]))
        at = end + 4
    return bytes(out)


WAYS = (_bits, _head_bytes, _cut, _splice, _numbers, _packed)
WEIGHTS = (3, 2, 1, 2, 5, 1)
