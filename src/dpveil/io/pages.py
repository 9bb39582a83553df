"""What the parts of a Parquet file take, by their pages' own headers, before a library believes them.

Source: Apache Parquet format, parquet.thrift (PageHeader, FileMetaData).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

from dpveil.io.refused import COPY_AGAIN, Refused
from dpveil.io.thrift import Compact, Shape, Short

MOST_ROWS: Final = 1 << 21
"""Most rows of one file."""
MOST_PAGES: Final = 1 << 28
MOST_TIMES: Final = 100
"""A part of a column is refused if it has more bytes than `MOST_PAGES`, and so many times what it takes."""
MOST_HEADER: Final = 1 << 16
"""Most bytes of a page's header."""
USUAL_HEADER: Final = 1 << 9
HEADER: Final[Shape] = {1: Compact.number, 2: Compact.number, 3: Compact.number}
DATA: Final = 0
"""The type of a page of values, in the first version of the format."""
START: Final = 4
"""Where the first page may be, after the bytes that files begin with."""
DAMAGED: Final = ("is damaged, or no Parquet file that can be read", COPY_AGAIN)


@dataclass(frozen=True)
class Page:
    """A page of the `kind`: its header and it take `taken` bytes, and `held` when it is decompressed.

    Its `contents` are without the header, and `told` is what that says of values.
    """

    kind: int
    taken: int
    held: int
    contents: int
    told: dict[int, Any] = field(default_factory=dict)


def counts(told: Any) -> list[int]:
    """Return the rows of each group; raises `Refused` unless they are those of the file, and not too many."""
    found = [told.row_group(n).num_rows for n in range(told.num_row_groups)]
    if min(found, default=0) < 0 or sum(found) != told.num_rows:
        raise Refused("states another number of rows than its parts have", COPY_AGAIN)
    if sum(found) > MOST_ROWS:
        raise Refused(f"has more than {MOST_ROWS:,} rows", "split it")
    return found


def parts(told: Any, leaf: str | None, groups: range | None = None) -> Iterator[Any]:
    """Yield the parts of a column in groups, or of all columns without a `leaf`, that are in this file."""
    for number in range(told.num_row_groups) if groups is None else groups:
        group = told.row_group(number)
        for part in map(group.column, range(group.num_columns)):
            if part.file_path:
                raise Refused("has columns in another file", "write it as one file")
            if leaf in (None, part.path_in_schema):
                yield part


def check_stated(told: Any, leaf: str | None) -> None:
    """Refuse a column that states that it decompresses to far more than photos do.

    Without a `leaf`, all columns are checked.
    """
    for part in parts(told, leaf):
        _check(part.total_uncompressed_size, part)


def check_pages(file: BinaryIO, told: Any, leaf: str | None, groups: range | None = None) -> None:
    """Refuse a column whose pages decompress to far more than photos do; they are in memory as a whole."""
    for part in parts(told, leaf, groups):
        held = 0
        for page in pages(file, part):
            held += page.held
            _check(held, part)


def pages(
    file: BinaryIO, part: Any, shape: Shape = HEADER, unknown: tuple[str, str] | None = None
) -> Iterator[Page]:
    """Yield the pages of a part of a column; raises `Refused` unless they fill it.

    Fields of headers that are not in the `shape` are passed over, or refused as `unknown`.
    """
    at = start_of(part)
    end = at + part.total_compressed_size
    if at < START or part.total_compressed_size < 0:
        raise Refused(*DAMAGED)
    while at < end:
        page = _page(file, at, end, shape, unknown)
        at += page.taken
        yield page


def start_of(part: Any) -> int:
    """Return where a part of a column begins, as pyarrow has it: at the dictionary, if that is first."""
    first: int = part.data_page_offset
    coded = part.dictionary_page_offset if part.has_dictionary_page else None
    return min(first, coded) if coded else first


def _page(file: BinaryIO, at: int, end: int, shape: Shape, unknown: tuple[str, str] | None) -> Page:
    for most in (USUAL_HEADER, MOST_HEADER):
        file.seek(at)
        reader = Compact(file.read(min(most, end - at)))
        try:
            found = reader.struct(shape, unknown)
        except Short:
            continue
        kind, held, taken = (found.get(number, -1) for number in HEADER)
        if min(kind, held, taken) < 0 or at + reader.at + taken > end:
            break
        return Page(kind, reader.at + taken, reader.at + held, held, found.get(5, {}))
    raise Refused(*DAMAGED)


def _check(held: int, part: Any) -> None:
    if held > max(MOST_PAGES, MOST_TIMES * part.total_compressed_size):
        raise Refused(f"decompresses to {held:,} bytes", COPY_AGAIN)
