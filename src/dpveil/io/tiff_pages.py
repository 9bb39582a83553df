"""Pages of TIFF files: each as a file with no other one (TIFF 6.0 §2, §8: NewSubfileType)."""

from __future__ import annotations

from typing import BinaryIO, Final, Literal

from dpveil.io.refused import Refused, damaged
from dpveil.io.tiff import MOST_TAGS, Reader

SUBFILE: Final = 254
"""The tag NewSubfileType."""
NO_PAGE: Final = 0b101
"""Its bits of a smaller copy of a page and of a mask for one, which are no pages."""
MOST: Final = 1 << 13
"""Most directories of one file."""


class _Parts:
    """Bytes of an open file, by slices."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._size = file, size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice) -> bytes:
        start = min(part.start or 0, self._size)
        self._file.seek(start)
        return self._file.read(max(0, min(self._size, part.stop or self._size) - start))


def tiff_pages(file: BinaryIO, size: int) -> list[int]:
    """Return where the directory of each page is in a TIFF of `size` bytes; raises `Refused`.

    Smaller copies of pages, such as thumbnails, and masks are left out.
    """
    parts = _Parts(file, size)
    head = parts[0:4]
    if head[:2] not in (b"II", b"MM") or head[2:] not in (b"*\0", b"\0*", b"+\0", b"\0+"):
        raise Refused("is no TIFF", "name a PDF or TIFF")
    reader = Reader(parts, "<" if head[:2] == b"II" else ">", head[2:] in (b"+\0", b"\0+"))
    found, seen = list[int](), set[int]()
    at = reader.number(8, 8) if reader.big else reader.number(4, 4)
    while at:
        if at in seen or len(seen) >= MOST or at >= size:
            raise damaged("TIFF")
        seen.add(at)
        kinds = [tag.first for number, tag in reader.tags(at) if number == SUBFILE]
        if not any(kind & NO_PAGE for kind in kinds):
            found.append(at)
        at = reader.number(_end(reader, at), 8 if reader.big else 4)
    return found


def tiff_page(contents: bytes, at: int) -> bytes:
    """Return a TIFF whose only directory is the one at the offset `at` of another TIFF.

    The rest of the bytes stays where it is, and nothing leads to it.
    """
    order: Literal["little", "big"] = "little" if contents[:2] == b"II" else "big"
    big = contents[2:4] in (b"+\0", b"\0+")
    word, first = (8, 8) if big else (4, 4)
    alone = bytearray(contents)
    alone[first : first + word] = at.to_bytes(word, order)
    end = _end(Reader(contents, "<" if order == "little" else ">", big), at)
    alone[end : end + word] = bytes(word)
    return bytes(alone[: len(contents)])


def _end(reader: Reader, at: int) -> int:
    """Return where the directory at `at` tells the next one; raises `Refused` for too many tags."""
    head, entry = (8, 20) if reader.big else (2, 12)
    count = reader.number(at, head)
    if count > MOST_TAGS:
        raise damaged("TIFF")
    return at + head + count * entry
