"""Protocol Buffers as far as ONNX files need them: fields are read with the wire type that they must have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
FIXED32: Final = 5
"""Wire types: a number, 8 bytes, something with a length, 4 bytes."""
WIDTHS: Final = {FIXED64: 8, FIXED32: 4}
KEYS: Final = 1 << 32
"""Least number that is no key of a field: number and wire type in 32 bits."""
NUMBERS: Final = 1 << 64
"""Least number that fits no field."""
MOST: Final = 200_000
"""Most fields of a message; readers take a microsecond for each."""

Fields: TypeAlias = dict[int, list[bytes]]
"""Contents by field number, in their order; of a number, its encoded form."""


def fields(message: bytes, known: Mapping[int, int], what: str) -> Fields:
    """Return the fields of a message by their numbers; `known` are the wire types that they must have.

    Raises `ValueError`, which says `what` the message is, for other fields, other wire types, more than
    `MOST` fields, and what is no message.
    """
    found: Fields = {number: [] for number in known}
    for count, (number, kind, contents) in enumerate(every(message)):
        if known.get(number) != kind:
            raise ValueError(f"the {what} has a field {number} of wire type {kind}, which none needs")
        if count >= MOST:
            raise ValueError(f"the {what} has more than {MOST} parts")
        found[number].append(contents)
    return found


def every(message: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield number, wire type and contents of every field; raises `ValueError` for what is no message."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if key >= KEYS:  # which other readers take for a small one
            raise ValueError("the file is no ONNX file")
        if kind == VARINT:
            _, end = _varint(message, at)
        elif kind == BYTES:
            size, at = _varint(message, at)
            end = at + size
        elif kind in WIDTHS:
            end = at + WIDTHS[kind]
        else:
            raise ValueError("the file is no ONNX file")
        if end > len(message):
            raise ValueError("the file is cut off")
        yield key >> 3, kind, message[at:end]
        at = end


def only(found: Fields, number: int, what: str) -> bytes:
    """Return the contents of a field that comes once; raises `ValueError` otherwise."""
    if len(found[number]) != 1:
        raise ValueError(f"the {what} has {len(found[number])} fields {number}, not one")
    return found[number][0]


def number_in(contents: bytes) -> int:
    """Return the number in a field, from -2^63 to 2^63 - 1."""
    value, _ = _varint(contents, 0)
    return value - NUMBERS if value >= NUMBERS >> 1 else value


def numbers_in(contents: list[bytes]) -> list[int]:
    """Return the numbers of a field that is repeated, each in a field of its own."""
    return [number_in(one) for one in contents]


def field(number: int, value: int | bytes | str, kind: int | None = None) -> bytes:
    """Return one field: a number, something with a length, or contents of another wire type, `kind`."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value % NUMBERS)
    contents = value.encode() if isinstance(value, str) else value
    if kind is not None and kind != BYTES:
        return varint(number << 3 | kind) + contents
    return varint(number << 3 | BYTES) + varint(len(contents)) + contents


def varint(value: int) -> bytes:
    """Return the encoded form of a number from 0."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Return the number at a position, and the position after it."""
    value = 0
    for place in range(10):
        if at + place >= len(message):
            break
        byte = message[at + place]
        value |= (byte & 127) << (7 * place)
        if byte < 128 and value < NUMBERS:
            return value, at + place + 1
        if byte < 128:
            break
    raise ValueError("the file is no ONNX file")
