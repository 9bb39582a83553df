"""Images in a column of Parquet files: those from anyone are read row by row, and releases are written.

Source: Apache Parquet format. Images are as `datasets` of Hugging Face has them, a struct of bytes and path.
"""

from __future__ import annotations

import json
import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate, count
from typing import Any, BinaryIO, Final

from dpveil.errors import UsageError
from dpveil.io.names import escape_text
from dpveil.io.unreadable import COPY_AGAIN, Refused, Unread

IMAGE: Final = "image"
CERTIFICATE: Final = "certificate"
ROW: Final = "row"
MOST_FOOTER: Final = 1 << 27  # most bytes, and most parts, of what a file says of itself: pyarrow is told so
KEPT: Final = 16  # rows that are kept when they are passed over, as readers are not quite in order
MOST_KEPT: Final = 1 << 28  # most bytes of columns that go along with releases
COLUMNS: Final = {"keep_columns": "columns"}
SELECT: Final = f"give {IMAGE} (bytes and path), {CERTIFICATE}, {ROW}, and what certificates state"
GROUP: Final = 64  # rows of a group that is written, and less if they are large
GROUP_BYTES: Final = 1 << 26
FEATURES: Final = {
    IMAGE: {"_type": "Image"},
    CERTIFICATE: {"dtype": "string", "_type": "Value"},
    ROW: {"dtype": "int64", "_type": "Value"},
}
"""By this, `datasets` shows the column as images."""


class Rows:
    """The images of one file, by row; several threads may read them, and fast if they are about in order.

    The column is called "image", or is the only one of bytes, or of structs with a field "bytes", and is not
    read if its type is a dictionary of them, which would be made again for every row. Memory is
    that of a page of the column, a row, and up to `KEPT` more. Raises `Refused` if there is no such column,
    and for damage.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._lock = threading.Lock()
        with _refusing():
            self._table = _open_parquet(file)
        self._column, self._leaf = _column(self._table.schema_arrow)
        with _refusing():
            told = self._table.metadata
            self._ends = [*accumulate(told.row_group(n).num_rows for n in range(told.num_row_groups))]
        self._next, self._end = 0, 0
        self._values: Iterator[Any] = iter(())
        self._kept: deque[tuple[int, bytes | None]] = deque(maxlen=KEPT)

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[bytes | None]:
        yield from map(self.at, range(len(self)))

    def at(self, row: int) -> bytes | None:
        """Return the bytes of an image; None if the row has none."""
        with self._lock:
            for place, value in self._kept:
                if place == row:
                    return value
            if not self._next <= row < self._end:
                self._start(bisect_right(self._ends, row))
            while self._next < row:
                self._kept.append((self._next, self._value()))
            return self._value()

    def _start(self, group: int) -> None:
        self._next, self._end = (self._ends[group - 1] if group else 0), self._ends[group]
        self._values = _values(self._table, [self._leaf], [group])

    def _value(self) -> bytes | None:
        with _refusing():
            found: dict[str, Any] = next(self._values, {})
        if self._column not in found:
            self._end = 0
            raise Refused("ends early", COPY_AGAIN)
        self._next += 1
        value = found[self._column]
        value = value.get("bytes") if isinstance(value, dict) else value
        return value if isinstance(value, bytes) else None


def column_names(file: BinaryIO, names: Iterable[str]) -> tuple[str, ...]:
    """Return those of the named columns that a file has; raises `Refused`, and as `read_columns`."""
    with _refusing():
        return tuple(_kept_schema(_open_parquet(file), names).names)


def read_columns(file: BinaryIO, names: Iterable[str]) -> Any:
    """Return a pyarrow table of those of the named columns that a file has, without their metadata.

    Raises `Refused`, also for columns that take more than `MOST_KEPT` bytes, and `UsageError` for one that
    may hold pictures.
    """
    import pyarrow

    with _refusing():
        table = _open_parquet(file)
        schema = _kept_schema(table, names)
        parts, size = [], 0
        for batch in table.iter_batches(KEPT, columns=schema.names, use_threads=False):
            size += batch.nbytes
            if size > MOST_KEPT:
                raise Refused(f"has more than {MOST_KEPT:,} bytes in the columns to keep", "keep fewer")
            parts.append(pyarrow.Table.from_batches([batch]).select(schema.names).cast(schema))
        return pyarrow.concat_tables(parts) if parts else schema.empty_table()


def _kept_schema(table: Any, names: Iterable[str]) -> Any:
    import pyarrow

    there = table.schema_arrow
    fields = []
    for name in (name for name in names if name in there.names):
        kind = _type_to_write(there.field(name).type)
        if kind is None:
            only = "only numbers, texts and lists of them are kept"
            problem = f"the column {escape_text(name)} may hold pictures, and {only}"
            raise UsageError(problem, hint="leave it out of {keep_columns}", arguments=COLUMNS)
        fields.append(pyarrow.field(name, kind))
    return pyarrow.schema(fields)


def _type_to_write(kind: Any) -> Any:
    import pyarrow
    import pyarrow.types as types

    if types.is_dictionary(kind):
        return _type_to_write(kind.value_type)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        item = _type_to_write(kind.value_type)
        return None if item is None else pyarrow.list_(item)
    text = types.is_string(kind) or types.is_large_string(kind)
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return kind if text or number or types.is_boolean(kind) or types.is_temporal(kind) else None


Row = tuple[int | None, str | None, bytes | None, bytes | None, tuple[str, ...]]
"""Number, path, image, certificate, and the names of all other columns."""


def any_rows(file: BinaryIO) -> Iterator[Row]:
    """Yield all rows of a file with the columns of releases, of which others are not read.

    Where there is no column of rows, they are counted. Raises `Refused` for any other file, and for damage.
    """
    with _refusing():
        table = _open_parquet(file)
        told = _schema()
        names = table.schema_arrow.names
        own = [table.schema_arrow.field(name) for name in names if name in told.names]
        if own not in ([*told], [*told][:2]) or len({*names}) != len(names):
            raise Refused("holds other columns than releases", SELECT)
        groups = [*range(table.metadata.num_row_groups)]
    others = tuple(name for name in names if name not in told.names)
    rows = _values(table, [field.name for field in own], groups)
    for number in count():
        with _refusing():
            found = next(rows, None)
        if found is None:
            return
        image, text = found[IMAGE] or {}, found[CERTIFICATE]
        certificate = None if text is None else text.encode()
        yield found.get(ROW, number), image.get("path"), image.get("bytes"), certificate, others


def write_parquet(
    file: BinaryIO, releases: Iterable[tuple[int, str, bytes, bytes]], columns: Any = None
) -> None:
    """Write releases by row, name, image and certificate, and of a table of all rows what each has there.

    Raises `OSError`.
    """
    import pyarrow
    import pyarrow.parquet

    features = json.dumps({"info": {"features": FEATURES}})
    told = _schema().with_metadata({"huggingface": features})
    for each in () if columns is None else columns.schema:
        told = told.append(each)
    bare = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    waiting: list[dict[str, Any]] = []
    try:
        with pyarrow.parquet.ParquetWriter(file, told, **bare) as made:
            for row, name, image, certificate in releases:
                text = certificate.decode("utf-8", "replace")
                kept = [] if columns is None else columns.slice(row, 1).to_pylist()
                others = kept[0] if kept else {}  # a row that has left has none
                waiting.append({IMAGE: {"bytes": image, "path": name}, CERTIFICATE: text, ROW: row, **others})
                size = sum(len(each[IMAGE]["bytes"]) for each in waiting)
                if len(waiting) == GROUP or size > GROUP_BYTES:
                    made.write_table(pyarrow.Table.from_pylist(waiting, told))
                    waiting.clear()
            if waiting:
                made.write_table(pyarrow.Table.from_pylist(waiting, told))
    except pyarrow.ArrowException as error:
        raise OSError(f"pyarrow cannot write it: {error}") from error


def _schema() -> Any:
    import pyarrow

    image = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    return pyarrow.schema([(IMAGE, image), (CERTIFICATE, pyarrow.string()), (ROW, pyarrow.int64())])


def _open_parquet(file: BinaryIO) -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise Unread("is read by pyarrow, which is not installed", "pip install 'dpveil[data]'") from error
    bounds = {"thrift_string_size_limit": MOST_FOOTER, "thrift_container_size_limit": MOST_FOOTER}
    return pyarrow.parquet.ParquetFile(file, memory_map=False, pre_buffer=False, **bounds)


def _column(schema: Any) -> tuple[str, str]:
    import pyarrow.types as types

    def is_bytes(kind: Any) -> bool:
        return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind))

    found = dict[str, str]()
    for field in schema:
        at = field.type.get_field_index("bytes") if types.is_struct(field.type) else -1
        kind = field.type.field(at).type if at >= 0 else field.type
        if is_bytes(kind):
            found[field.name] = field.name if at < 0 else f"{field.name}.bytes"
    chosen = [IMAGE] if IMAGE in found else list(found)
    if len(chosen) != 1 or len(schema.get_all_field_indices(chosen[0])) != 1:
        problem = "has several columns of bytes" if found else "has no column of images, as bytes"
        raise Refused(problem, f"call the one with the bytes of images {IMAGE}")
    return chosen[0], found[chosen[0]]


def _values(table: Any, columns: list[str], groups: list[int]) -> Iterator[dict[str, Any]]:
    # One row at a time: a dictionary makes many large rows of a small file.
    for batch in table.iter_batches(1, row_groups=groups, columns=columns, use_threads=False):
        yield from batch.to_pylist()


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except (Refused, UsageError):
        raise
    except Exception as error:  # a hostile file ends in errors of many kinds
        raise Refused("is damaged, or no Parquet file that can be read", COPY_AGAIN) from error
