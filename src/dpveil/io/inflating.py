"""Compressed rows of pictures: one zlib stream with all of them and nothing else (RFC 1950)."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

PIECE: Final = 1 << 20
"""Bytes that are inflated at a time."""
SPARE: Final = 1024
"""Bytes that a stream may have in any case."""


def most_coded(size: int) -> int:
    """Return how many bytes the lossless encoders of `encode` need at most for so many bytes of levels.

    Where nothing can be compressed, zlib-ng writes 9 bits for 8, and the others hardly more than 8.
    """
    return size + size // 4 + SPARE


def filled(parts: Sequence[bytes], size: int) -> bool:
    """Return whether the parts are one zlib stream of so many bytes, with nothing behind it.

    It may have no more bytes than `most_coded`, as blocks that inflate to nothing have room for others.
    """
    if sum(map(len, parts)) > most_coded(size):
        return False
    inflating, left = zlib.decompressobj(), size
    try:
        for part in parts:
            rest = part
            while rest and not inflating.eof:
                left -= len(inflating.decompress(rest, min(PIECE, left + 1)))
                if left < 0:
                    return False
                rest = inflating.unconsumed_tail
            if rest:
                return False
    except zlib.error:
        return False
    return inflating.eof and not inflating.unused_data and left == 0
