"""Netpbm before decoding: one picture in PBM, PGM or PPM, plain or raw, with levels up to 255."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from dpveil.io.refused import SAVE_ANEW, Refused, damaged

GAP: Final = rb"(?:\s|#[^\n\r]{0,1000}[\n\r]){1,100}"
"""White space and comments between the numbers of a header."""
NUMBER: Final = GAP + rb"0{0,9}(\d{1,9})"
HEADS: Final = {
    kind: re.compile(b"P%d" % kind + NUMBER * (2 if kind in (1, 4) else 3) + rb"\s") for kind in range(1, 7)
}
"""The header of each of P1 to P6; one white-space character ends it, and the levels follow."""
PLAIN: Final = (1, 2, 3)
"""Formats whose levels are decimal digits."""
DIGITS: Final = re.compile(rb"[\s\d]*")


def lean_netpbm(data: bytes, check: Callable[[int, int], None]) -> bytes:
    """Return the file without comments.

    `check` is called with width and height in pixels and raises if they are too large. Raises `Refused` if
    the largest level is not 255, there are comments among plain levels, or the length of raw levels does not
    fit the size.
    """
    kind = data[1] - ord("0")
    head = HEADS[kind].match(data)
    if head is None:
        raise damaged("Netpbm")
    width, height, *top = map(int, head.groups())
    check(width, height)
    if top and top[0] != 255:
        raise Refused(f"has levels up to {top[0]:,}, not 255", SAVE_ANEW)
    lean = b"P%d\n%d %d\n" % (kind, width, height) + b"255\n" * len(top)
    if kind in PLAIN:
        if not DIGITS.fullmatch(data, head.end()):
            raise Refused("has comments amid its levels, or is damaged", SAVE_ANEW)
        return lean + data[head.end() :]
    row = (width + 7) // 8 if kind == 4 else width * (3 if kind == 6 else 1)
    end = head.end() + row * height
    if len(data) < end:
        raise damaged("Netpbm")
    if data[end:].strip():
        raise Refused("has more than one picture", "save one of them as a PNG")
    return lean + data[head.end() : end]
