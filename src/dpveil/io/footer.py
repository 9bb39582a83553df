"""Refuses a Parquet file of releases that holds anything beside their rows, where readers do not look.

Source: Apache Parquet format, parquet.thrift (FileMetaData). What is not named here is refused.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO, Final

from dpveil.io.pages import DAMAGED, DATA, MOST_ROWS, START, Page, pages, parts, start_of
from dpveil.io.refused import Refused
from dpveil.io.thrift import Compact, Shape, Short, a, each, numbers

MOST_FOOTER: Final = 1 << 26
END: Final = 8
"""Bytes after what a file says of itself: its length, and a mark."""
MORE: Final = (
    "says more than its rows: statistics, indexes, notes, or what only some tools read",
    "write it with write_statistics=False, write_page_index=False, use_content_defined_chunking=False",
)
PLAIN: Final = (
    "does not have its values as they are, so that others could be among them",
    'write it with compression="none" and use_dictionary=False',
)
FILLED: Final = ("holds more than its rows", "write its rows anew")
SHORT: Final = re.compile(rb"[A-Za-z0-9_ .()+-]{0,100}")
"""Names of columns, and of the program that wrote a file."""
LEVELS: Final = 16
"""Most bytes of a page that are no values, and one more for each of these."""
FEW: Final = 32
"""Most of what there is for each column, or for the file."""
UNCOMPRESSED: Final = "UNCOMPRESSED"
VALUES: Final = 0
"""The encoding of values as they are."""


def _short(reader: Compact, kind: int) -> bytes:
    found = reader.text(kind)
    if SHORT.fullmatch(found) is None:
        raise Refused(*MORE)
    return found


def _ints(*fields: int) -> Shape:
    return dict.fromkeys(fields, Compact.number)


def _shape(shape: Shape) -> Callable[[Compact, int], dict[int, Any]]:
    return a(shape, MORE)


NOTE: Final = _shape({1: Compact.text, 2: Compact.text})
KIND: Final = _shape({1: _shape({})})
"""What says that a column is text, or in the usual order."""
ENCODED: Final = each(_shape(_ints(1, 2, 3)), FEW)
SIZES: Final = _shape({1: Compact.number, 2: numbers, 3: numbers})
COLUMN: Final = {**_ints(1, 4, 5, 6, 7, 9), 2: numbers, 3: each(_short, FEW), 13: ENCODED, 16: SIZES}
CHUNK: Final = _shape({2: Compact.number, 3: _shape(COLUMN)})
GROUP: Final = _shape({1: each(CHUNK, FEW), **_ints(2, 3, 5, 6, 7)})
NODE: Final = _shape({**_ints(1, 2, 3, 5, 6, 7, 8, 9), 4: _short, 10: KIND})
FILE: Final[Shape] = {
    **_ints(1, 3),
    2: each(NODE, FEW),
    4: each(GROUP, MOST_ROWS),
    5: each(NOTE, FEW, kept=True),
    6: _short,
    7: each(KIND, FEW),
}
PAGE: Final[Shape] = {**_ints(1, 2, 3, 4), 5: _shape({**_ints(1, 2, 3, 4), 5: _shape({})})}


def check_bare(file: BinaryIO, told: Any, schemas: Iterable[Any]) -> int:
    """Return how many bytes the values of all rows have at least, in a file that holds nothing else.

    Its notes may be those of one of these `schemas` alone. Raises `Refused` for anything that is not in the
    values of its rows, up to numbers: pages that do not fill the file, statistics, and what is unknown.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(size - END)
    length = int.from_bytes(file.read(4), "little")
    if length > min(MOST_FOOTER, size - END - START):
        raise Refused(*DAMAGED)
    _check_footer(file, size - END - length, length, schemas)
    at, least = START, 0
    for part in sorted(parts(told, None), key=start_of):
        if start_of(part) != at:
            raise Refused(*FILLED)
        if part.compression != UNCOMPRESSED:
            raise Refused(*PLAIN)
        for page in pages(file, part, PAGE, MORE):
            least += _values(page)
        at += part.total_compressed_size
    if at != size - END - length:
        raise Refused(*FILLED)
    return least


def _check_footer(file: BinaryIO, at: int, length: int, schemas: Iterable[Any]) -> None:
    file.seek(at)
    reader = Compact(file.read(length))
    try:
        found = reader.struct(FILE, MORE)
    except Short as error:
        raise Refused(*DAMAGED) from error
    notes = {note.get(1): note.get(2) for note in found.get(5, [])}
    if reader.at != length or len(notes) != len(found.get(5, [])):
        raise Refused(*MORE)
    allowed = [{}, *map(_notes, schemas)]
    if notes not in allowed:
        raise Refused("has notes beside its columns, which are not verified", "write it without metadata")


def _notes(schema: Any) -> dict[bytes, bytes]:
    """Return the notes that pyarrow writes for a schema."""
    return {**(schema.metadata or {}), b"ARROW:schema": base64.b64encode(schema.serialize().to_pybytes())}


def _values(page: Page) -> int:
    """Return how many bytes of a page are values, at least."""
    many, encoding = page.told.get(1, 0), page.told.get(2, -1)
    if page.kind != DATA or encoding != VALUES or page.held != page.taken:
        raise Refused(*PLAIN)
    if many < 1:
        raise Refused(*FILLED)
    return max(0, page.contents - LEVELS - int(many))
