"""Reads structs in Thrift's compact protocol, as Parquet files have them, from anyone.

Format: Apache Thrift, "Thrift Compact protocol encoding". Only what Parquet uses is read: no maps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from dpveil.io.refused import COPY_AGAIN, Refused

DEEPEST: Final = 8
"""Most structs and lists within each other."""
BOOLS: Final = (1, 2)
BYTE, DOUBLE, BINARY, STRUCT = 3, 7, 8, 12
INTS: Final = (4, 5, 6)
LISTS: Final = (9, 10)
Shape = Mapping[int, Callable[["Compact", int], Any]]
"""What reads each field of a struct, by its number, and is given its type."""


class Short(Exception):
    """The bytes end within a struct."""


class Compact:
    """Reads from bytes, and stands `at` one of them; raises `Refused` for what is malformed, and `Short`."""

    def __init__(self, held: bytes) -> None:
        self._held, self.at, self._depth = held, 0, 0

    def struct(self, shape: Shape, unknown: tuple[str, str] | None = None) -> dict[int, Any]:
        """Return the fields in `shape` of a struct; others are passed over, or refused with `unknown`.

        Fields are to be in the order of their numbers, each once, as all writers have them.
        """
        found = dict[int, Any]()
        last = 0
        self._depth += 1
        while kind := self._byte():
            step, kind = kind >> 4, kind & 15
            number = last + step if step else self._signed()
            if number <= last or self._depth > DEEPEST:
                raise _damaged()
            last = number
            if number in shape:
                found[number] = shape[number](self, kind)
            elif unknown:
                raise Refused(*unknown)
            else:
                self._skip(kind)
        self._depth -= 1
        return found

    def number(self, kind: int) -> int:
        """Return a number."""
        if kind not in INTS:
            raise _damaged()
        return self._signed()

    def text(self, kind: int) -> bytes:
        """Return a text as its bytes."""
        if kind != BINARY:
            raise _damaged()
        return self._take(self._unsigned())

    def count(self, kind: int) -> tuple[int, int]:
        """Return how many a list has, and their type."""
        if kind not in LISTS:
            raise _damaged()
        head = self._byte()
        return (self._unsigned() if head >> 4 == 15 else head >> 4), head & 15

    def _skip(self, kind: int, *, within: bool = False) -> None:
        if kind in (*BOOLS, BYTE):
            self._take(1 if within or kind == BYTE else 0)
        elif kind in INTS:
            self._unsigned()
        elif kind == DOUBLE:
            self._take(8)
        elif kind == BINARY:
            self._take(self._unsigned())
        elif kind == STRUCT:
            self.struct({})
        else:
            self._depth += 1
            many, inner = self.count(kind)
            for _ in range(many if self._depth <= DEEPEST else 0):
                self._skip(inner, within=True)
            self._depth -= 1

    def _take(self, many: int) -> bytes:
        if many > len(self._held) - self.at:
            raise Short
        self.at += many
        return self._held[self.at - many : self.at]

    def _byte(self) -> int:
        return self._take(1)[0]

    def _unsigned(self) -> int:
        """Return a number of at most 64 bits in as few bytes as there can be: 7 bits in each."""
        number, shift, part = 0, 0, 0x80
        while part & 0x80:
            part = self._byte()
            number |= (part & 0x7F) << shift
            shift += 7
            if number >> 64 or shift > 70:
                raise _damaged()
        if part == 0 and shift > 7:
            raise _damaged()
        return number

    def _signed(self) -> int:
        number = self._unsigned()
        return -(number >> 1) - 1 if number & 1 else number >> 1


def numbers(reader: Compact, kind: int) -> list[int]:
    """Return a list of few numbers."""
    many, inner = reader.count(kind)
    if many > DEEPEST:
        raise _damaged()
    return [reader.number(inner) for _ in range(many)]


def a(shape: Shape, unknown: tuple[str, str]) -> Callable[[Compact, int], dict[int, Any]]:
    """Return what reads a struct of this shape alone."""

    def read(reader: Compact, kind: int) -> dict[int, Any]:
        if kind != STRUCT:
            raise _damaged()
        return reader.struct(shape, unknown)

    return read


def each(
    read: Callable[[Compact, int], Any], most: int, *, kept: bool = False
) -> Callable[[Compact, int], list[Any]]:
    """Return what reads a list of at most so many, which is empty unless it is to be `kept`."""

    def read_all(reader: Compact, kind: int) -> list[Any]:
        many, inner = reader.count(kind)
        if many > most:
            raise _damaged()
        found = []
        for _ in range(many):
            one = read(reader, inner)
            if kept:
                found.append(one)
        return found

    return read_all


def _damaged() -> Refused:
    return Refused("is damaged, or no Parquet file that can be read", COPY_AGAIN)
