"""Coded pictures of HEIC and AVIF: the size for which a decoder allocates memory, and the units to decode.

Decoders take the size not from the container but from the sequence parameter set (ITU-T H.265 §7.3.2.2) or
the sequence header (AV1 §5.5), where a small file may ask for gigabytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dpveil.io.isobmff import Reading
from dpveil.io.refused import damaged, overloaded

MOST_CONFIGURED: Final = 4096
"""Most bytes of the decoder configuration of one picture, which is parsed for each of thousands of tiles."""
MOST_UNITS: Final = 4096
"""Most NAL units or OBUs of one coded picture."""
MOST_FRAMES: Final = 8
"""Most layers of one AVIF picture."""
SEQUENCE: Final = 1
"""AV1's OBU type of sequence headers."""
KEPT: Final = frozenset({SEQUENCE, 2, 3, 4, 6})
"""AV1's OBU types of a picture: sequence header, temporal delimiter, frame header, tile group, frame."""
DROPPED: Final = frozenset({5, 15})
"""AV1's OBU types that are left out: metadata and padding."""
INTRA: Final = range(16, 22)
"""H.265's NAL unit types of intra pictures (IRAP)."""
REMARKS: Final = frozenset({35, 39, 40})
"""H.265's NAL unit types that are left out: access unit delimiters and SEI messages."""
PARAMETERS: Final = frozenset({32, 33, 34})
"""H.265's NAL unit types of parameter sets, which are left out among the slices."""


@dataclass(frozen=True)
class Coded:
    """A coded picture: its size in pixels, its bit depth, and the units to decode."""

    width: int
    height: int
    depth: int
    data: bytes


class Bits:
    """Reads bits, most significant first; raises `Refused` at the end of the data."""

    def __init__(self, data: bytes, name: str) -> None:
        self._value, self._left, self._name = int.from_bytes(data, "big"), 8 * len(data), name

    def take(self, count: int) -> int:
        """Return the next `count` bits as an unsigned integer."""
        if count > self._left:
            raise damaged(self._name)
        self._left -= count
        return self._value >> self._left & ((1 << count) - 1)

    def golomb(self) -> int:
        """Return the next unsigned Exp-Golomb code (H.265 §9.2)."""
        zeros = 0
        while not self.take(1):
            zeros += 1
            if zeros > 31:
                raise damaged(self._name)
        return (1 << zeros) - 1 + self.take(zeros)


def hevc(config: bytes, contents: bytes) -> Coded:
    """Return the picture of an hvc1 item, reduced to its slices; raises `Refused`.

    `config` is the body of its hvcC property, `contents` its coded data.
    """
    if len(config) > MOST_CONFIGURED:
        raise overloaded(f"more than {MOST_CONFIGURED:,} bytes of parameters")
    reading = Reading(config, 21, len(config), "HEIC")
    size = 1 + (reading.number(1) & 3)
    sets: list[bytes] = []
    for _ in range(reading.number(1)):
        kind = reading.number(1) & 63
        units = [reading.take(reading.number(2)) for _ in range(reading.number(2))]
        if kind not in PARAMETERS | REMARKS or any(len(u) < 3 or u[0] >> 1 & 63 != kind for u in units):
            raise damaged("HEIC")
        sets += units if kind == 33 else []
    if len(sets) != 1:
        raise damaged("HEIC")
    return Coded(*_size_in_set(sets[0]), _slices(contents, size))


def _size_in_set(unit: bytes) -> tuple[int, int, int]:
    """Return width and height in pixels, and the bit depth, from a sequence parameter set."""
    bits = Bits(unit[2:96].replace(b"\0\0\3", b"\0\0"), "HEIC")
    bits.take(4)
    if bits.take(3):  # temporal sub-layers, which a still picture does not have
        raise damaged("HEIC")
    bits.take(1 + 96)
    bits.golomb()
    if bits.golomb() == 3:
        bits.take(1)
    width, height = bits.golomb(), bits.golomb()
    if bits.take(1):
        left, _, top, _ = (bits.golomb() for _ in range(4))
        if left or top:  # the block grid would not start at the picture's corner
            raise damaged("HEIC")
    return width, height, 8 + max(bits.golomb(), bits.golomb())


def _slices(contents: bytes, size: int) -> bytes:
    reading = Reading(contents, 0, len(contents), "HEIC")
    kept: list[bytes] = []
    for _ in range(MOST_UNITS):
        if reading.at == reading.end:
            break
        unit = reading.take(reading.number(size))
        kind = unit[0] >> 1 & 63 if len(unit) > 2 else -1
        if kind in INTRA and bool(kept) != bool(unit[2] & 0x80):  # exactly one slice is the first
            kept.append(len(unit).to_bytes(size, "big") + unit)
        elif kind not in PARAMETERS | REMARKS:
            raise damaged("HEIC")
    else:
        raise overloaded(f"more than {MOST_UNITS:,} slices")
    return b"".join(kept)


def av1(config: bytes, contents: bytes) -> Coded:
    """Return the picture of an av01 item without metadata; raises `Refused`.

    `config` is the body of its av1C property, `contents` its coded data.
    """
    if len(config) < 4 or config[0] != 0x81:
        raise damaged("AVIF")
    if len(config) > MOST_CONFIGURED:
        raise overloaded(f"more than {MOST_CONFIGURED:,} bytes of parameters")
    _, before = _units(config[4:])
    kept, sizes = _units(contents)
    if len(sizes) != 1 or before - sizes:
        raise damaged("AVIF")
    return Coded(*sizes.pop(), kept)


def _units(data: bytes) -> tuple[bytes, set[tuple[int, int, int]]]:
    """Return the OBUs that make up the picture, and the (width, height, bit depth) of their headers."""
    reading = Reading(data, 0, len(data), "AVIF")
    kept: list[bytes] = []
    sizes: set[tuple[int, int, int]] = set()
    frames = 0
    for _ in range(MOST_UNITS):
        if reading.at == reading.end:
            break
        start, head = reading.at, reading.number(1)
        kind = head >> 3 & 15
        if head & 0x81 or not head & 2 or kind not in KEPT | DROPPED:
            raise damaged("AVIF")
        reading.take(1 if head & 4 else 0)
        body = reading.take(_leb128(reading))
        frames += kind in (3, 6)
        if kind == SEQUENCE:
            sizes.add(_size_in_header(body))
        if kind in KEPT:
            kept.append(data[start : reading.at])
    else:
        raise overloaded(f"more than {MOST_UNITS:,} parts")
    if frames > MOST_FRAMES:
        raise overloaded(f"{frames:,} layers")
    return b"".join(kept), sizes


def _leb128(reading: Reading) -> int:
    value = 0
    for shift in range(0, 35, 7):
        byte = reading.number(1)
        value |= (byte & 127) << shift
        if byte < 128:
            return value
    raise damaged("AVIF")


def _size_in_header(body: bytes) -> tuple[int, int, int]:
    """Return width, height and bit depth from a sequence header; raises `Refused` for timing information."""
    bits = Bits(body[:512], "AVIF")
    profile, _, reduced = bits.take(3), bits.take(1), bits.take(1)
    bits.take(5) if reduced else _skip_levels(bits)
    lengths = 1 + bits.take(4), 1 + bits.take(4)
    width, height = (1 + bits.take(length) for length in lengths)
    bits.take(3) if reduced else _skip_tools(bits)
    bits.take(3)
    high = bits.take(1)
    twelve = high and profile == 2 and bits.take(1)
    return width, height, 12 if twelve else 10 if high else 8


def _skip_levels(bits: Bits) -> None:
    if bits.take(1):
        raise damaged("AVIF")
    delays = bits.take(1)
    for _ in range(1 + bits.take(5)):
        bits.take(12)
        if bits.take(5) > 7:
            bits.take(1)
        if delays and bits.take(1):
            bits.take(4)


def _skip_tools(bits: Bits) -> None:
    if bits.take(1):
        bits.take(4 + 3)
    bits.take(3 + 4)
    order = bits.take(1)
    bits.take(2 if order else 0)
    screen = 2 if bits.take(1) else bits.take(1)
    if screen and not bits.take(1):
        bits.take(1)
    bits.take(3 if order else 0)


CODED: Final[dict[bytes, tuple[bytes, Callable[[bytes, bytes], Coded]]]] = {
    b"hvc1": (b"hvcC", hevc),
    b"av01": (b"av1C", av1),
}
"""For each type of item, the property with its decoder configuration, and the parser."""
