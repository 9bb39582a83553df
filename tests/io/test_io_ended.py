"""Where the compressed pixels of JPEG and WebP end: with the last byte of what is written."""

from __future__ import annotations

import struct
from itertools import product

import numpy as np
import pytest

from dpveil.io import encode, jpeg_bits
from dpveil.io.bare import bare
from dpveil.io.ended import jpeg_ends, webp_ends
from dpveil.noise import backend

RANDOM = np.random.Generator(np.random.PCG64(3))
SHAPES = [(1, 1, 1), (1, 1, 3), (8, 8, 3), (7, 9, 1), (16, 17, 3), (31, 43, 1), (1, 300, 3), (120, 90, 3)]
PICTURES = [
    *(RANDOM.integers(0, most, shape).astype(np.uint8) for shape, most in product(SHAPES, (2, 3, 17, 256))),
    *(np.full(shape, level, np.uint8) for shape, level in product(SHAPES, (0, 1, 128, 255))),
    *(RANDOM.integers(0, 256, (side, 40 - side, 3)).astype(np.uint8) for side in range(1, 40)),
]


def test_what_is_written_of_a_jpeg_ends_with_its_last_byte_and_nothing_may_follow() -> None:
    for image in PICTURES:
        data = encode(image, "jpeg")
        assert jpeg_ends(data)
        for more in (b"\0", b"\xfe", b"\xff\0", b"payload" * 99):
            assert not jpeg_ends(data[:-2] + more + data[-2:])
        assert not jpeg_ends(data[: -4 if data[-3] == 0 else -3] + data[-2:])


def webp(payload: bytes) -> bytes:
    chunk = b"VP8L" + struct.pack("<I", len(payload)) + payload + bytes(len(payload) % 2)
    return b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk


def test_what_is_written_of_a_webp_ends_with_its_last_byte_and_at_most_one_may_follow() -> None:
    for image in PICTURES:
        data = encode(image, "webp")
        payload = data[20 : 20 + struct.unpack_from("<I", data, 16)[0]]
        assert webp(payload) == data
        assert webp_ends(data)
        for more in (b"\0\0", b"ab", b"payload" * 99):
            assert not webp_ends(webp(payload + more))
            assert webp_ends(webp(payload + more)[:8] + data[8:])


def test_a_webp_has_no_more_bytes_than_pixels_need() -> None:
    data = encode(np.zeros((9, 9, 3), np.uint8), "webp")
    payload = data[20 : 20 + struct.unpack_from("<I", data, 16)[0]]
    assert bare(webp(payload + bytes(1200)), "webp")
    assert not bare(webp(payload + bytes(1400)), "webp")
    odd = webp(payload + b"x" * (1 - len(payload) % 2))
    assert bare(odd, "webp")
    assert not bare(odd[:-1] + b"x", "webp")


def test_the_bits_that_are_left_in_a_jpeg_are_ones() -> None:
    data = encode(np.full((8, 8), 128, np.uint8), "jpeg")
    assert data[-3] == 0b001010_11  # no difference of means, and the end of the block (T.81 tables K.3, K.5)
    assert [jpeg_ends(data[:-3] + bytes([0b001010_00 | bits]) + data[-2:]) for bits in range(4)] == [
        *(False, False, False, True)
    ]


TABLES = np.zeros((2, 1 << 16), np.uint16)
"""0 is no difference, 10 one of 1 bit; 0 is the end of a block, 10 is 16 zeros, 110 a number of 1 bit."""
TABLES[0, : 1 << 15] = 1 << 8
TABLES[0, 1 << 15 : 3 << 14] = 2 << 8 | 1
TABLES[1, : 1 << 15] = 1 << 8
TABLES[1, 1 << 15 : 3 << 14] = 2 << 8 | 0xF0
TABLES[1, 3 << 14 : 7 << 13] = 3 << 8 | 1
ONE = "1101"
SCANS = {
    "0 0": (1, 2), "0 0 0 0 0 0": (3, 6), "10 1 0": (1, 4), f"0 {ONE} 0": (1, 6), "0 0 0": (2, -1),
    "0 10 0": (1, -1), f"0 10 {ONE} 0": (1, 8), f"0 {ONE * 63}": (1, 253), f"0 {ONE * 64}": (1, 253),
    f"0 {'10' * 3}{ONE * 15}": (1, 67), f"0 {'10' * 3}{ONE * 14} 0": (1, 64), f"0 {ONE * 47} 10": (1, -1),
    f"0 {ONE * 48} 10": (1, -1), f"0 {ONE * 62} 10": (1, -1), "11": (1, -1), "0 111": (1, -1), "": (1, -1),
}  # fmt: skip


@pytest.mark.parametrize("plain", [False, True])
def test_bits_are_counted_as_the_standard_has_them(plain: bool) -> None:
    """Of a scan without whole bytes the last bits are ones, which no block begins with."""
    loops = jpeg_bits if plain else backend.loops((jpeg_bits,), backend.LOAD_COST + 1)
    for text, (blocks, most) in SCANS.items():
        bits = text.replace(" ", "")
        packed = int((bits + "1" * (-len(bits) % 8)) or "0", 2).to_bytes(-(-len(bits) // 8), "big")
        scan = np.frombuffer(packed + bytes(jpeg_bits.BEYOND), np.uint8)
        assert (text, loops.bits_of(scan, TABLES, 1, blocks)) == (text, most)
