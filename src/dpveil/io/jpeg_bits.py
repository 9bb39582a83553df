"""A plain loop over the bits of a JPEG's pixels, which `backend.loops` compiles (ITU-T T.81 §F.2.2)."""

from __future__ import annotations

BEYOND = 3
"""Bytes that a scan is followed by, so that the loop may read them."""
DEEPEST = 11
"""Most bits of a difference of means; other coefficients have one less."""


def bits_of(scan, tables, components, blocks):
    """Return how many bits of a scan so many blocks take that follow one another, or -1 if they do not end.

    `scan` is uint8, without stuffed bytes and with `BEYOND` zeros behind it. `tables` is uint16, two for each
    of the components, for means and for other coefficients: by the next 16 bits, 256 times the length of
    their code, plus its symbol, or 0. Also -1 for blocks that an encoder writes with fewer bits.
    """
    size = 8 * (len(scan) - BEYOND)
    at = 0
    for block in range(blocks):
        row = 2 * (block % components)
        place = 0
        skips = False
        while place < 64:
            if at > size:
                return -1
            byte = at >> 3
            ahead = int(scan[byte]) << 16 | int(scan[byte + 1]) << 8 | int(scan[byte + 2])
            entry = int(tables[row + (place > 0), ahead >> (8 - (at & 7)) & 65535])
            length = entry >> 8
            skip = entry >> 4 & 15
            more = entry & 15
            if length == 0 or more + (place > 0) > DEEPEST or (place == 0 and skip > 0):
                return -1
            at += length + more
            if place == 0:
                place = 1
            elif more > 0:
                place += skip + 1
                skips = False
            elif skip == 15:
                place += 16
                skips = True
            elif skip == 0 and not skips:
                break
            else:
                return -1
        if place > 64 or (place == 64 and skips):
            return -1
    return at if at <= size else -1
