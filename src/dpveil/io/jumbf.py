"""A C2PA manifest within a picture's file: taking it out, and looking at which boxes it is made of.

The boxes are those of JUMBF (ISO/IEC 19566-5); their places in files are those of the C2PA specification
(version 2.4, appendix A). Nothing of a manifest is decoded here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

MOST_BYTES: Final = 60_000
"""Largest manifest in bytes: it fits into one segment of a JPEG."""
MOST_BOXES: Final = 64
"""Most labelled boxes that are looked at, and so the deepest that they can be nested."""
PNG_CHUNK: Final = (33, b"caBX")
"""Where the manifest's chunk of a PNG begins, right after the header's, and its name."""
JPEG_AT: Final = 20
"""Where the manifest's segment of a JPEG begins: after that of JFIF."""
JPEG_SEGMENT: Final = re.compile(rb"\xff\xeb(..)JP..\x00\x00\x00\x01", re.DOTALL)
"""The beginning of an APP11 segment with the first part of a box; the length includes itself."""
WEBP_CHUNK: Final = b"C2PA"
MANIFEST: Final = re.compile(r"c2pa/urn:c2pa:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The path of the manifest's box."""
PARTS: Final = (
    "c2pa.assertions",
    "c2pa.assertions/c2pa.actions.v2",
    "c2pa.assertions/c2pa.hash.data",
    "c2pa.claim.v2",
    "c2pa.signature",
)
"""Paths of all boxes within the manifest's, each once: two assertions, a claim and its signature."""
DESCRIPTION: Final = re.compile(
    rb".{16}(?:\x03|(\x13))([A-Za-z0-9.:_-]+)\x00(?(1)\x00\x00\x00\x18c2sh.{16})", re.DOTALL
)
"""A box's type, its label, and the salt of an assertion's, which is 16 random bytes; nothing follows. Labels
have no slash or space, so that paths are unambiguous.
"""
CONTENT: Final = frozenset({b"cbor"})
"""Kinds of boxes that hold values and neither files nor pictures."""


def split(data: bytes, format: str) -> tuple[bytes, bytes]:  # noqa: A002  the field's word
    """Return a picture's file without its manifest, and the manifest, which is empty if there is none.

    `format` is png, jpeg or webp; files of others have none. A manifest anywhere else than where the C2PA
    library writes it stays in the file.
    """
    picture, manifest = SPLIT[format](data) if format in SPLIT else (data, b"")
    return (picture, manifest) if 0 < len(manifest) <= MOST_BYTES else (data, b"")


def plain(manifest: bytes) -> bool:
    """Return whether a manifest has the boxes that dpveil writes and no others.

    These are what was done, the hash of the file, the claim about both, and its signature: no thumbnail, no
    ingredient, no other picture and no metadata. What they say is not looked at.
    """
    found: list[str] = []
    try:
        for label in _labels(manifest, ""):
            found.append(label)
            if len(found) > MOST_BOXES:
                return False
    except (IndexError, ValueError):
        return False
    if len(found) != len(PARTS) + 2 or found[0] != "c2pa" or not MANIFEST.fullmatch(found[1]):
        return False
    return set(found[2:]) == {f"{found[1]}/{part}" for part in PARTS}


def _labels(data: bytes, path: str) -> Iterator[str]:
    """Yield the path of every labelled box, outer ones first; raises `ValueError` for malformed boxes and for
    other contents.
    """
    at = 0
    while at < len(data):
        length, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        if length < 8 or at + length > len(data):
            raise ValueError("a box without its length")
        body = data[at + 8 : at + length]
        if kind == b"jumb":
            described = int.from_bytes(body[:4], "big")
            stated = DESCRIPTION.fullmatch(body, 8, described) if described <= len(body) else None
            if body[4:8] != b"jumd" or stated is None:
                raise ValueError("a box without a description, or with more in it")
            name = stated[2].decode("ascii")
            label = f"{path}/{name}" if path else name
            yield label
            yield from _labels(body[described:], label)
        elif kind not in CONTENT:
            raise ValueError("a box of another kind")
        at += length


def _png(data: bytes) -> tuple[bytes, bytes]:
    at, name = PNG_CHUNK
    length = int.from_bytes(data[at : at + 4], "big")
    if data[at + 4 : at + 8] != name:
        return data, b""
    return data[:at] + data[at + 12 + length :], data[at + 8 : at + 8 + length]


def _jpeg(data: bytes) -> tuple[bytes, bytes]:
    head = JPEG_SEGMENT.match(data, JPEG_AT)
    if head is None:
        return data, b""
    end = JPEG_AT + 2 + int.from_bytes(head[1], "big")
    return data[:JPEG_AT] + data[end:], data[head.end() : end]


def _webp(data: bytes) -> tuple[bytes, bytes]:
    first = int.from_bytes(data[16:20], "little")
    at = 20 + first + first % 2
    length = int.from_bytes(data[at + 4 : at + 8], "little")
    end = at + 8 + length + length % 2
    if data[at : at + 4] != WEBP_CHUNK or end != len(data) or 8 + int.from_bytes(data[4:8], "little") != end:
        return data, b""
    return data[:4] + (at - 8).to_bytes(4, "little") + data[8:at], data[at + 8 : at + 8 + length]


SPLIT: Final[dict[str, Callable[[bytes], tuple[bytes, bytes]]]] = {"png": _png, "jpeg": _jpeg, "webp": _webp}
"""How the manifest of each format that can have one is taken out."""
