"""Columns of photos in, columns of outcomes out: what engines that hand out Arrow tables need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from dpveil.errors import InvalidParameter, UsageError
from dpveil.scale.worker import Row, Setup, Worker

MADE: Final = ("release", "status", "problem")
"""The columns that are made, of text."""
INSTALL: Final = "pip install 'dpveil[scale]'"


class Mapper:
    """Releases the column of photos of Arrow tables; it can be sent to other processes.

    `column` holds the bytes of image files, or their names with `files` of the `setup`, and `key` names of
    rows, as text or whole numbers, each once, and a row without one fails; `stamp` tells versions of a row
    apart. The columns of the result are `key`, those in `keep`, which are passed on unchanged, and three of
    text: `release`, the name of the PNG in the store's folder `releases`; `status`, which is "released",
    "no_region", "failed" or "untried"; and `problem`. Nothing is promised for any of them but the release
    itself. With `own`, a process that works on one photo for too long ends.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        column: str = "bytes",
        key: str = "path",
        stamp: str | None = None,
        keep: Iterable[str] = (),
        own: bool = False,
    ) -> None:
        if isinstance(keep, str):
            raise InvalidParameter("keep", keep, "is one name", hint=f"write [{keep!r}]")
        kept = [name for name in keep if name != key]
        for name in (*kept, key):
            if name in (column, *MADE):
                problem = "holds photos, or is made anew"
                raise InvalidParameter("keep" if name in kept else "key", name, problem, hint="leave it out")
        self._setup, self._column, self._key, self._keep, self._own = setup, column, key, kept, own
        self._stamp = stamp
        self._worker: Worker | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return everything but the worker: each process makes its own."""
        return {**self.__dict__, "_worker": None}

    @property
    def columns(self) -> list[str]:
        """The columns that it reads."""
        stamp = [] if self._stamp is None else [self._stamp]
        return list(dict.fromkeys([self._key, self._column, *stamp, *self._keep]))

    def check(self, schema: Any) -> None:
        """Raise `InvalidParameter` unless an Arrow schema has these columns, none of which could hold photos
        but the one that does.
        """
        import pyarrow.types as kinds

        names = ", ".join(schema.names)
        for name in self.columns:
            if name not in schema.names:
                raise InvalidParameter("column", name, "is not there", hint=f"there are {names}")
        held = schema.field(self._column).type
        binary = kinds.is_binary, kinds.is_large_binary, kinds.is_binary_view
        if not (_is_text(held) if self._setup.files else any(each(held) for each in binary)):
            hint = "give the bytes of image files, as ray.data.read_binary_files does"
            raise InvalidParameter("column", self._column, f"holds {held}", hint=hint)
        self._check_names(schema)
        self._check_passed(schema)

    def _check_names(self, schema: Any) -> None:
        """Raise `InvalidParameter` unless keys are text or whole numbers, and stamps these or times.

        A number of another type has no single name: where pandas misses a key of a batch, it writes 7 as 7.0,
        and the photo of that row would be drawn and paid for again.
        """
        import pyarrow.types as kinds

        for named, column in (("key", self._key), ("stamp", self._stamp)):
            if column is None:
                continue
            kind = schema.field(column).type
            timed = named == "stamp" and kinds.is_temporal(kind)
            if not (_is_text(kind) or kinds.is_integer(kind) or kinds.is_null(kind) or timed):
                hint = "use text, or whole numbers: pandas turns 7 into 7.0 where one is missing"
                raise InvalidParameter(named, column, f"holds {kind}", hint=hint)

    def _check_passed(self, schema: Any) -> None:
        """Raise `InvalidParameter` if a column that is passed on could hold photos; one of nulls cannot."""
        import pyarrow.types as kinds

        for name in (self._key, *self._keep):
            kind = schema.field(name).type
            if not (kinds.is_primitive(kind) or kinds.is_null(kind) or _is_text(kind)):
                named, hint = "key" if name == self._key else "keep", "keep numbers and text only"
                raise InvalidParameter(named, name, f"could hold an original: {kind}", hint=hint)

    def __call__(self, table: Any) -> Any:
        """Return the columns of the result for a `pyarrow.Table` or `RecordBatch`.

        Raises `InvalidParameter` if a column that is passed on could hold photos, or keys are not text or
        whole numbers.
        """
        pyarrow = _pyarrow()
        self._check_passed(table.schema)
        self._check_names(table.schema)
        keys = table.column(self._key)
        named, stamps = _texts(keys), [""] * len(keys)
        if self._stamp is not None:
            stamps = _texts(table.column(self._stamp))
        if self._worker is None:
            self._worker = Worker(self._setup, own=self._own)
        rows = self._worker(list(zip(named, stamps, table.column(self._column).to_pylist(), strict=True)))
        made = {name: pyarrow.array([_cell(row, name) for row in rows], pyarrow.string()) for name in MADE}
        kept = {name: table.column(name) for name in self._keep}
        return type(table).from_pydict({self._key: keys, **kept, **made})

    def batches(self, tables: Iterable[Any]) -> Iterator[Any]:
        """Yield the result for each of several, as `mapInArrow` of Spark wants it, and close its files."""
        try:
            yield from map(self, tables)
        finally:
            self.close()

    def frames(self, frames: Iterable[Any]) -> Iterator[Any]:
        """Yield the same for data frames of pandas, as `mapInPandas` of Spark wants it.

        Keys should be text: pandas makes whole numbers floating-point ones, which are refused, where one of
        a frame is missing.
        """
        table = _pyarrow().Table
        tables = (table.from_pandas(frame, preserve_index=False) for frame in frames)
        yield from (made.to_pandas() for made in self.batches(tables))

    def close(self) -> None:
        """Close the files of this process; they are opened again for another table."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()


def _is_text(kind: Any) -> bool:
    import pyarrow.types as kinds

    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind))


def _texts(column: Any) -> list[str]:
    """Return the names that a column holds; one that is missing is empty."""
    return ["" if each is None else str(each) for each in column.to_pylist()]


def _cell(row: Row, column: str) -> str:
    if column == "problem":
        return f"{row.problem}: {row.hint}" if row.hint else row.problem
    return str(getattr(row, column))


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise UsageError("pyarrow is not installed", hint=INSTALL) from error
    return pyarrow
