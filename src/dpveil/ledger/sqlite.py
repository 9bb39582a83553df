"""A ledger in an SQLite file: what is checked before SQLite sees it, its settings, transactions, and forks.

A received file is hostile. SQLite would play back a journal beside it and delete a file that the journal names, so a
journal is refused first; then the schema has to be ours to the letter, which leaves no trigger or view to run. A process
that opens and closes the file by another way, or forks, loses SQLite's locks without notice. So connections are closed
before a fork, and after every transaction the files under our path still have to be those that were opened.

*Durability.* Transactions commit to the write-ahead log without waiting for the disk, one at a time; then each durable
one flushes the log, for all that committed before it at once. SQLite flushes the log before it copies from it, so what
`write` with `durable` returned from survives a loss of power, as with synchronous=FULL, at one flush for many.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from dpveil.errors import LedgerError, UsageError
from dpveil.io.names import shown

if TYPE_CHECKING:
    from sqlalchemy import Connection

SCHEMA: Final = (
    "CREATE TABLE ledger (name TEXT NOT NULL, secret TEXT NOT NULL)",
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, head TEXT NOT NULL, unit TEXT, sha256 TEXT, text TEXT NOT NULL)",
    "CREATE INDEX entries_by_unit ON entries (unit)",
    "CREATE INDEX entries_by_sha256 ON entries (sha256)",
    "CREATE TABLE subjects (subject TEXT PRIMARY KEY, cost TEXT NOT NULL, relation TEXT NOT NULL, limits TEXT NOT NULL)",
    "CREATE TABLE reservations (id TEXT PRIMARY KEY, subject TEXT NOT NULL, unit TEXT NOT NULL, cost TEXT NOT NULL,"
    " relation TEXT NOT NULL, expires INTEGER NOT NULL)",
)
AUTOMATIC: Final = {"sqlite_autoindex_subjects_1", "sqlite_autoindex_reservations_1"}
"""Indexes that SQLite makes for primary keys."""
APPLICATION: Final = 0x6470766C
"""SQLite's application_id of ledgers: "dpvl"."""
PATIENCE: Final = 30.0
"""Seconds to wait for other processes that write."""
MOST_BYTES: Final = 1 << 20
"""Most bytes of a value or a row."""
SIDES: Final = ("-wal", "-shm")
JOURNAL: Final = "-journal"
LIMITS: Final = {
    sqlite3.SQLITE_LIMIT_LENGTH: MOST_BYTES,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
}
Identity = tuple[tuple[int, int], ...]


class SQLite:
    """The file at `path`, opened on first use with one connection, which threads take turns to use.

    Raises `LedgerError` wherever the file is missing, damaged, busy, full, replaced, or not a ledger.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.realpath(path.parent)) / path.name
        self._lock, self._flushing = threading.Lock(), threading.Lock()
        self._open: _Open | None = None
        self._written = self._flushed = 0
        _alive.add(self)

    @property
    def files(self) -> tuple[Path, ...]:
        """The database and the files that SQLite puts beside it, which nothing else may open."""
        return (self.path, *(Path(f"{self.path}{end}") for end in (*SIDES, JOURNAL)))

    @contextmanager
    def write(self, *, durable: bool) -> Iterator[Connection]:
        """Run one transaction alone, and commit it at the end; with `durable`, also flush it to the disk."""
        with self._lock, self._told():
            opened = self._opened()
            opened.run("BEGIN IMMEDIATE", self.path)
            try:
                yield opened.connection
                opened.run("COMMIT", self.path)
            except BaseException:
                opened.undo()
                raise
            self._written += 1
            mine = self._written
        if durable:
            with self._told():
                self._flush(mine)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Read in one consistent state."""
        with self._lock, self._told():
            opened = self._opened()
            opened.run("BEGIN", self.path)
            try:
                yield opened.connection
            finally:
                opened.undo()

    def close(self) -> None:
        """Flush and close the connection; using the ledger again opens it again."""
        with self._lock, self._flushing:
            self._shut()

    def _opened(self) -> _Open:
        if self._open is None:
            self._open = _Open(self.path)
        return self._open

    def _flush(self, wanted: int) -> None:
        """Flush the log unless another thread did since."""
        with self._flushing:
            if self._flushed < wanted:
                if self._open is None:  # closing it did not flush it
                    raise OSError(EIO, "the log was not flushed to the disk")
                reached = self._written
                self._open.flush()
                self._flushed = reached

    def _shut(self) -> None:
        """Close the connection; both locks are held."""
        opened, self._open = self._open, None
        if opened is not None:
            try:
                if self._flushed < self._written:
                    opened.flush()
                    self._flushed = self._written
            finally:
                opened.close()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn errors of SQLite, of its driver and of the file system into `LedgerError`."""
        from sqlalchemy.exc import SQLAlchemyError

        try:
            yield
        except (SQLAlchemyError, sqlite3.Error, OSError, OverflowError) as error:
            raise failure(self.path, error) from error

    def before_fork(self) -> None:
        """Close the connection and hold the locks: SQLite's own are void in a child, and close the parent's."""
        self._lock.acquire()
        self._flushing.acquire()
        with suppress(OSError, sqlite3.Error):
            self._shut()

    def after_fork(self) -> None:
        """Let go of the locks, in parent and child."""
        self._flushing.release()
        self._lock.release()


class _Open:
    """An open connection, the identity of the files it has open, and the log's descriptor to flush it."""

    def __init__(self, path: Path) -> None:
        check_files(path)
        before = _identity(path, ())
        self.raw = sqlite3.connect(
            f"file:{quote(os.fsencode(path))}?mode=rw",
            uri=True,
            isolation_level=None,
            timeout=PATIENCE,
            check_same_thread=False,
        )
        self._log, self.connection = -1, wrapped(self.raw)
        try:
            self._settle(path)
            self.files = _identity(path, SIDES)
            self._log = os.open(f"{path}-wal", os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0))
        except BaseException:
            self.close()
            raise
        if self.files[0] != before[0]:
            self.close()
            raise _replaced(path)

    def _settle(self, path: Path) -> None:
        """Take SQLite's strictest settings, and check that the file is a ledger."""
        for limit, value in LIMITS.items():
            self.raw.setlimit(limit, value)
        for setting in (
            "trusted_schema = OFF",
            "cell_size_check = ON",
            "mmap_size = 0",
            "synchronous = NORMAL",
        ):
            self.raw.execute(f"PRAGMA {setting}")
        found = [self.raw.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "journal_mode")]
        if found != [(APPLICATION,), ("wal",)]:
            raise LedgerError(f"{shown(path)} is not a ledger of dpveil", hint="name the right file")
        rows = self.raw.execute("SELECT type, name, sql FROM sqlite_master").fetchmany(2 * len(SCHEMA))
        ours = {(kind, name) for kind, name, sql in rows if sql is None} == {("index", n) for n in AUTOMATIC}
        if not ours or sorted(str(sql) for *_, sql in rows if sql is not None) != sorted(SCHEMA):
            raise LedgerError(
                f"{shown(path)} has other tables than a ledger",
                hint="do not use it: somebody changed it, or another version of dpveil wrote it",
            )

    def run(self, command: str, path: Path) -> None:
        """Run BEGIN or COMMIT, then check that the files are still the ones that are open."""
        self.raw.execute(command)
        if _identity(path, SIDES) != self.files:
            raise _replaced(path)

    def undo(self) -> None:
        """End a transaction without committing it."""
        with suppress(sqlite3.Error):
            if self.raw.in_transaction:
                self.raw.execute("ROLLBACK")

    def flush(self) -> None:
        """Flush the log to the disk."""
        getattr(os, "fdatasync", os.fsync)(self._log)

    def close(self) -> None:
        """Close everything."""
        if self._log >= 0:
            os.close(self._log)
            self._log = -1
        unwrap(self.connection)


def wrapped(raw: sqlite3.Connection) -> Connection:
    """Return SQLAlchemy's connection around a connection whose transactions we begin and end ourselves."""
    from sqlalchemy import create_engine
    from sqlalchemy.pool import StaticPool

    engine = create_engine(
        "sqlite://", creator=lambda: raw, poolclass=StaticPool, isolation_level="AUTOCOMMIT"
    )
    return engine.connect()


def unwrap(connection: Connection) -> None:
    """Close a connection and what is around it."""
    connection.close()
    connection.engine.dispose()


def create(path: Path, fill: Any) -> bool:
    """Make a ledger at `path`, where `fill` writes the first rows; return False if something is there already.

    It is written under another name, flushed, and only then given its own. Raises `LedgerError`.
    """
    if os.path.lexists(path):
        return False
    made = path.parent / f".{path.name}.{os.urandom(8).hex()}.new"
    try:
        os.close(os.open(made, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
        raw = sqlite3.connect(made, isolation_level=None)
        connection = wrapped(raw)
        try:
            for command in (f"PRAGMA application_id = {APPLICATION}", "PRAGMA journal_mode = WAL", *SCHEMA):
                raw.execute(command)
            fill(connection)
        finally:
            unwrap(connection)
        flush(made)
        os.link(made, path)
    except FileExistsError:
        return False
    except (OSError, sqlite3.Error) as error:
        raise failure(path, error) from error
    finally:
        for end in ("", *SIDES, JOURNAL):
            Path(f"{made}{end}").unlink(missing_ok=True)
    flush(path.parent)
    return True


def flush(path: Path) -> None:
    """Flush a file or a folder to the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def path_of(url: str) -> Path:
    """Return the file of an SQLite URL; raises `UsageError` for anything but sqlite:/// and a plain path.

    >>> path_of("sqlite:///budget.db").name
    'budget.db'
    """
    name = url.removeprefix("sqlite:///")
    if name == url or not name or name.startswith(":") or not name.isprintable() or set("?#%") & set(name):
        raise UsageError(
            f"{shown(url)} is no URL of a ledger", hint="write sqlite:///budget.db, without any parameters"
        )
    return Path(name)


def check_files(path: Path) -> None:
    """Raise `LedgerError` unless `path` and what SQLite may have left beside it are plain files, without journal."""
    if not os.path.lexists(path):
        hint = f"check the name; dpveil ledger limit SUBJECT --epsilon E --ledger sqlite:///{path.name} makes one"
        raise LedgerError(f"there is no ledger {shown(path)}", hint=hint)
    for each in (path, *(Path(f"{path}{end}") for end in SIDES)):
        with suppress(FileNotFoundError):
            status = each.lstat()
            if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
                problem = f"{shown(each)} is no plain file with one name"
                raise LedgerError(problem, hint="name the ledger itself, and no link to it")
    if os.path.lexists(f"{path}{JOURNAL}"):
        raise LedgerError(
            f"{shown(path)} has a journal beside it, which no ledger has and which may name other files",
            hint="do not use this file: get an intact copy",
        )


def failure(path: Path, error: BaseException) -> LedgerError:
    """Return an error of SQLite, its driver or the file system as `LedgerError`."""
    cause: BaseException = getattr(error, "orig", None) or error
    text = getattr(cause, "strerror", None) or " ".join(str(cause).split()) or type(cause).__name__
    hints = {
        "locked": "another process holds it: try again when that is done",
        "full": "make room on the disk",
        "space": "make room on the disk",
        "readonly": "make the file and its folder writable",
        "permission": "make the file and its folder writable",
    }
    hint = next(
        (hint for word, hint in hints.items() if word in text.lower()),
        "nothing was drawn; get an intact copy",
    )
    return LedgerError(f"the ledger {shown(path)} cannot be used: {shown(text)}", hint=hint)


def _identity(path: Path, sides: tuple[str, ...]) -> Identity:
    """Return device and inode of the files; raises `LedgerError` if one is gone."""
    try:
        found = [os.stat(f"{path}{end}", follow_symlinks=False) for end in ("", *sides)]
    except FileNotFoundError as error:
        raise _replaced(path) from error
    return tuple((status.st_dev, status.st_ino) for status in found)


def _replaced(path: Path) -> LedgerError:
    return LedgerError(
        f"the ledger {shown(path)} was replaced or removed while it was open",
        hint="nothing was drawn; run it again",
    )


_alive: weakref.WeakSet[SQLite] = weakref.WeakSet()
_held: list[SQLite] = []


def _before() -> None:
    _held[:] = list(_alive)
    for database in _held:
        database.before_fork()


def _after() -> None:
    while _held:
        _held.pop().after_fork()


os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
