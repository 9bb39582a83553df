"""The work on a few rows in one process, whatever engine hands them out."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from dpveil import errors
from dpveil.batch.report import FAILED, NO_REGION, RELEASED, UNTRIED, Failure
from dpveil.batch.task import check_apart
from dpveil.core.parameters import check_count
from dpveil.core.urls import Status, Url, place, rebuild_url
from dpveil.datasets.cache import KEY, RELEASES, Cache
from dpveil.datasets.releaser import ENDS, Releaser
from dpveil.errors import DPVeilError, InvalidParameter, NoRegion, OutputError, PhotoError, UsageError
from dpveil.io import is_present, make_folder, write_together
from dpveil.io.names import show_path
from dpveil.io.unreadable import Refused
from dpveil.io.untrusted import open_untrusted
from dpveil.io.writing import OWN, refusal
from dpveil.mechanisms.method import Method
from dpveil.processes import limit_seconds

STATUSES: Final = (RELEASED, FAILED, NO_REGION, UNTRIED)


@dataclass(frozen=True)
class Row:
    """What became of the row `key`: one of the `STATUSES`.

    `release` is the name of its PNG in the store's folder of releases, or else `error` the name of a class of
    `dpveil.errors`, `problem` what is wrong, and `hint` the remedy. `stamp` tells versions of a file apart.
    """

    key: str
    stamp: str
    status: str
    release: str = ""
    error: str = ""
    problem: str = ""
    hint: str = ""

    @classmethod
    def of(cls, key: str, stamp: str, error: Exception, *, tried: bool = True) -> Row:
        """Return the row of which nothing was released because of this error."""
        failure = Failure.of(error, {})
        status = UNTRIED if not tried else NO_REGION if isinstance(error, NoRegion) else FAILED
        own = (kind.__name__ for kind in failure.kind.__mro__ if kind.__module__ == errors.__name__)
        named = next(own, DPVeilError.__name__)
        return cls(key, stamp, status, error=named, problem=failure.message, hint=failure.hint)

    @property
    def failure(self) -> Failure | None:
        """Why nothing was released, or None."""
        if self.status == RELEASED:
            return None
        kind = getattr(errors, self.error, DPVeilError)
        known = isinstance(kind, type) and issubclass(kind, DPVeilError)
        return Failure(kind if known else DPVeilError, self.problem, self.hint)

    def to_line(self) -> str:
        """Return one line of JSON."""
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def parse(cls, line: str) -> Row | None:
        """Return the row of a line that `to_line` wrote, or None: a process may be killed while it writes."""
        try:
            row = cls(**json.loads(line))
        except (ValueError, TypeError):
            return None
        return row if row.status in STATUSES else None


FOLDER: Final = "outcomes"
"""The folder of these files in a store. It names inputs: it is for their owner only."""
FAILURES: Final = "failed.jsonl"
"""The table of rows without a release, in a store."""


class Outcomes:
    """What became of the rows of all runs in the folder `store` with the settings of `releaser`.

    Who pays is one of them: what another ledger or subject paid for, or nobody, is not finished. Raises
    `LedgerError` if the ledger cannot be opened.
    """

    def __init__(self, store: Path, releaser: Releaser) -> None:
        chosen = [releaser.settings, releaser.if_none, releaser.at_least, releaser.payer]
        settings = hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()[:16]
        self.store, self.folder = store, store / FOLDER / settings

    def add(self, run: str) -> Log:
        """Return a new file for what this process does in a `run`, whose name sorts after earlier ones."""
        return Log(self.folder / f"{run}-{secrets.token_hex(8)}.jsonl")

    def rows(self, run: str = "") -> Iterator[Row]:
        """Yield all rows of a run, or of all runs, the earliest first; one that was retried comes again.

        What cannot be read is left out: its photos are met again, and found by their content.
        """
        for path in sorted(self.folder.glob(f"{run}*.jsonl")):
            with suppress(Refused), open_untrusted(path) as (file, _):
                for line in file:
                    if (row := Row.parse(line.decode(errors="replace"))) is not None:
                        yield row

    def finished_names(self) -> set[bytes]:
        """Return the names, by `name`, of all rows whose release is there; about 100 bytes for each."""
        there = self.store / RELEASES
        released = (row for row in self.rows() if row.status == RELEASED and is_present(there / row.release))
        return {name(row.key, row.stamp) for row in released}

    def final(self, run: str) -> Iterator[Row]:
        """Yield one row of a run for each key: the release if there is one, else the last."""
        done: set[bytes] = set()
        others: dict[bytes, Row] = {}
        for row in self.rows(run):
            which = name(row.key, row.stamp)
            if row.status != RELEASED:
                others[which] = row
            elif which not in done:
                done.add(which)
                yield row
        yield from (row for which, row in others.items() if which not in done)

    def write_failed(self, run: str) -> Path:
        """Write the table of the rows of a run without a release, as JSON lines, for their owner only.

        Return its path. Raises `OutputError`.
        """
        path = self.store / FAILURES
        lines = (row.to_line() for row in self.final(run) if row.status != RELEASED)
        write_together([(path, "".join(lines).encode())], replace=True, private=True)
        return path


class Log:
    """A file to which one process appends what became of its rows; it is made by the first of them."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, rows: list[Row]) -> None:
        """Append these rows; raises `OutputError`."""
        try:
            make_folder(self._path.parent)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            with os.fdopen(os.open(self._path, flags, OWN), "ab") as file:
                file.write("".join(row.to_line() for row in rows).encode())
        except OSError as error:
            raise refusal(self._path, error) from error


def name(key: str, stamp: str) -> bytes:
    """Return 16 bytes that stand for a row: which one it is, and which version of it."""
    return hashlib.blake2b(json.dumps([key, stamp]).encode(), digest_size=16).digest()


TRIES_FOLDER: Final = "tries"
MOST: Final = 2
"""How many processes may die of a row."""
SECONDS: Final = 100
"""The usual limit of the time for one photo: shorter than others wait for a lock that its process holds."""
OTHERS: Final = (errno.EBUSY, errno.EEXIST)
"""Errors of a store where another process has the photo: the one that waits for long, or comes second."""
DIED: Final = "the processes that released it ended: killed, out of memory, crashed on it, or out of time"
POSTGRES: Final = "use PostgreSQL, such as postgresql://host/budgets"
ALONE: Final = "look at the photo; another run tries it again, and pays again for what was drawn"


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What every worker of a run is told; `of` makes one. It can be pickled, and holds no key of the store.

    `run` is the run's name, `fingerprint` that of the store, and `version` that of dpveil.
    """

    store: str
    fingerprint: str
    version: str
    run: str
    files: bool
    urls: bool
    seconds: int
    releaser: Releaser = field(repr=False)

    @classmethod
    def of(
        cls,
        method: str | Method | None = None,
        *,
        store: str | Path,
        files: bool = False,
        urls: bool = False,
        seconds: int = SECONDS,
        **settings: Any,
    ) -> Setup:
        """Return the setup of a new run, and make its `store`, a folder that all machines see.

        With `files`, rows hold names of files, which workers open, and with `urls` also URLs of objects, with
        the stamps of `release_files`: only for names that come from nobody else. A photo on which a process
        works for more than `seconds` is taken for one of which processes die. `settings` are those of
        `Releaser.of`, where `ledger` has to be a URL. Raises errors of `dpveil.errors`.
        """
        if "cache" in settings:
            raise InvalidParameter("cache", "", "is not possible here", hint="name the store")
        given = settings.get("ledger")
        if given is not None and not isinstance(given, str):
            hint = "give its URL, such as postgresql://host/budgets"
            raise InvalidParameter("ledger", type(given).__name__, "cannot be sent to others", hint=hint)
        cache = Cache(Path(store).absolute())
        return cls(
            store=str(cache.folder),
            fingerprint=cache.fingerprint,
            version=version("dpveil"),
            run=f"{time.time_ns():020d}-{secrets.token_hex(4)}",
            files=files,
            urls=urls,
            seconds=check_count(seconds, "seconds"),
            releaser=Releaser.of(method, **settings),
        )

    @property
    def outcomes(self) -> Outcomes:
        """What became of rows in this store with these settings."""
        return Outcomes(Path(self.store), self.releaser)

    @property
    def has_file_ledger(self) -> bool:
        """Whether the ledger is a file, whose locks cannot be relied on between machines."""
        ledger = self.releaser.ledger
        return isinstance(ledger, str) and ledger.lower().startswith("sqlite")

    def ready(self) -> Releaser:
        """Return the releaser for a process, with the store opened.

        Raises `UsageError` for another version of dpveil, and `OutputError` unless the folder is the run's
        store: on a machine that lacks it, every photo would be drawn again.
        """
        if version("dpveil") != self.version:
            problem = f"a machine has dpveil {version('dpveil')}, and the run {self.version}"
            raise UsageError(problem, hint="install one version on all of them")
        folder = Path(self.store)
        if is_present(folder / KEY):
            cache = Cache(folder)
            if cache.fingerprint == self.fingerprint:
                return replace(self.releaser, cache=cache)
        problem = f"{show_path(folder)} is not the store of this run on every machine"
        raise OutputError(problem, hint="name a folder that all machines see, such as one on a network disk")


class Worker:
    """Releases rows, with the networks that it has loaded; it never raises for a row.

    After an error that is about no single photo, such as a ledger that fails, every row is untried. With
    `own`, the process belongs to the worker, which has it end when a photo takes too long.
    """

    def __init__(self, setup: Setup, *, own: bool = False) -> None:
        self._setup = setup
        self._timed = partial(limit_seconds, setup.seconds) if own else nullcontext
        self._tries = Tries(Path(setup.store) / TRIES_FOLDER, setup.run)
        self._stopped: Exception | None = None
        self._log: Log | None = None
        try:
            self._releaser = setup.ready()
            self._log = setup.outcomes.add(setup.run)
        except DPVeilError as error:
            self._releaser, self._stopped = setup.releaser, error

    def __call__(self, rows: Sequence[tuple[str, str, object]]) -> list[Row]:
        """Return what became of each of these keys, stamps and contents, and write it down in the store.

        A content is the bytes of a file, or with `files` of the setup its name.
        """
        done = [self._row(*row) for row in rows]
        if self._log is not None:
            try:
                self._log.add(done)
            except OutputError as error:
                self._stopped = self._stopped or error
        return done

    def _row(self, key: str, stamp: str, content: object) -> Row:
        try:
            if self._stopped is not None:
                return Row.of(key, stamp, self._stopped, tried=False)
            released = self._release(key, stamp, content)
        except ENDS as error:
            if getattr(error.__cause__, "errno", None) not in OTHERS:
                self._stopped = error
            return Row.of(key, stamp, error)
        except Exception as error:  # noqa: BLE001  one photo must not stop the rest, and nothing was written
            return Row.of(key, stamp, error)
        return Row(key, stamp, RELEASED, release=released)

    def _release(self, key: str, stamp: str, content: object) -> str:
        """Return the name of the release; raises `DPVeilError`."""
        if not key:
            raise PhotoError("the row has no name", hint="give each row one of its own")
        wanted = str if self._setup.files else bytes
        if not isinstance(content, wanted):
            hint = "give the bytes of image files, as ray.data.read_binary_files does"
            raise PhotoError(f"the row holds {type(content).__name__}", hint=hint)
        if isinstance(content, str):
            content = self._source_path(content, stamp)
        cache = self._releaser.cache
        if cache is None:
            raise OutputError("there is no store", hint="please report this")
        with self._tries.of(cache.name(name(key, ""))) as before:
            if before >= MOST:
                raise DPVeilError(DIED, hint=ALONE)
            path = self._releaser.release(content, row=key, timed=self._timed).path
        return "" if path is None else f"{path.parent.name}/{path.name}"

    def _source_path(self, called: str, stamp: str) -> Path:
        """Return a file, or an object as it was listed: reading refuses another version of it."""
        found = place(called) if self._setup.urls else Path(called)
        if isinstance(found, Url):
            return rebuild_url(called, Status(*map(int, stamp.split())), False, None)
        check_apart(self._releaser.ledger_files, [found])
        return found


class Tries:
    """Counts in `folder`, in one of its folders for each `run`, which all processes of the run share.

    A row has a file with one byte for every process that died of it, and one more while a process has it.
    Deaths are never taken back, and another run counts from zero.
    """

    def __init__(self, folder: Path, run: str) -> None:
        self._folder = folder / run

    @contextmanager
    def of(self, name: str) -> Iterator[int]:
        """Have the row `name`; yield how many processes died of it before.

        An interrupt, or a signal that ends the process, counts as a death. Raises `OutputError`.
        """
        path = self._folder / name[:2] / name[2:]
        try:
            make_folder(path.parent)
            with path.open("ab") as file:
                file.write(b".")
                file.flush()
                before = os.fstat(file.fileno()).st_size - 1
        except OSError as error:
            raise refusal(path, error) from error
        try:
            yield before
        except Exception:
            _take_back(path, before)
            raise
        _take_back(path, before)


def _take_back(path: Path, before: int) -> None:
    with suppress(OSError):
        if before:
            os.truncate(path, before)
        else:
            path.unlink()


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
        self._check_kinds(schema)

    def _check_kinds(self, schema: Any) -> None:
        """Raise `InvalidParameter` unless keys are text or whole numbers, and stamps these or times, and for
        columns that are passed on and could hold photos; those of nulls cannot.

        A number of another type has no single name: where pandas misses a key of a batch, it writes 7 as 7.0,
        and the photo of that row would be drawn and paid for again.
        """
        import pyarrow.types as kinds

        for name in (self._key, *self._keep):
            kind = schema.field(name).type
            if not (kinds.is_primitive(kind) or kinds.is_null(kind) or _is_text(kind)):
                named, hint = "key" if name == self._key else "keep", "keep numbers and text only"
                raise InvalidParameter(named, name, f"could hold an original: {kind}", hint=hint)
        for named, column in (("key", self._key), ("stamp", self._stamp)):
            kind = None if column is None else schema.field(column).type
            timed = named == "stamp" and kind is not None and kinds.is_temporal(kind)
            plain = kind is None or _is_text(kind) or kinds.is_integer(kind) or kinds.is_null(kind)
            if not (plain or timed):
                hint = "use text, or whole numbers: pandas turns 7 into 7.0 where one is missing"
                raise InvalidParameter(named, column, f"holds {kind}", hint=hint)

    def __call__(self, table: Any) -> Any:
        """Return the columns of the result for a `pyarrow.Table` or `RecordBatch`.

        Raises `InvalidParameter` if a column that is passed on could hold photos, or keys are not text or
        whole numbers.
        """
        try:
            import pyarrow
        except ImportError as error:
            raise UsageError("pyarrow is not installed", hint=INSTALL) from error
        self._check_kinds(table.schema)
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


def _is_text(kind: Any) -> bool:
    import pyarrow.types as kinds

    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind))


def _texts(column: Any) -> list[str]:
    """Return the names that a column holds; one that is missing is empty."""
    return ["" if each is None else str(each) for each in column.to_pylist()]


def _cell(row: Row, column: str) -> str:
    if column == "problem" and row.hint:
        return f"{row.problem}: {row.hint}"
    return str(getattr(row, column))
