"""A ledger in an SQLite file: what is checked before SQLite sees it, its settings, transactions, and forks.

A received file is hostile. SQLite would play back a journal beside it and delete a file that the journal
names, so a journal is refused first; then the schema has to be ours to the letter, which leaves no trigger or
view to run. A process that opens and closes one of the files by another way, or forks, loses SQLite's locks
without notice. So whoever opens, writes or closes also holds a lock of the log that is not lost so
(`locks`), connections are closed before a fork, and after every transaction the files under our path still
have to be those that were opened.

*Durability.* Transactions commit to the write-ahead log one at a time, without waiting for the disk; then
each durable one flushes the log, for all that committed before it at once. SQLite flushes the log before it
copies from it. So what was written with `durable` survives a loss of power once `write` ends, as with
synchronous=FULL, at one flush for many.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from errno import EIO
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from dpveil.errors import LedgerError
from dpveil.io.names import shown
from dpveil.ledger import forks, locks
from dpveil.ledger.sqlite_files import (
    APPLICATION,
    AUTOMATIC,
    JOURNAL,
    LIMITS,
    SCHEMA,
    SETTINGS,
    SIDES,
    Later,
    check_files,
    failure,
    flush,
    identity,
    replaced,
)
from dpveil.ledger.store import Connection, Read

PATIENCE: Final = 30.0
"""Seconds to wait for other processes that write."""


class SQLite:
    """The file at `path`, opened on first use with one connection, which threads take turns to use.

    Raises `LedgerError` wherever the file is missing, damaged, busy, full, replaced, or not a ledger.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.realpath(path.parent)) / path.name
        self._lock, self._flushing = threading.Lock(), threading.Lock()
        self._open: _Open | None = None
        self._written = self._flushed = 0
        self._failed = False
        self._later = Later()
        forks.register(self)

    @property
    def files(self) -> tuple[Path, ...]:
        """The database and the files that SQLite puts beside it, which nothing else may open."""
        return (self.path, *(Path(f"{self.path}{end}") for end in (*SIDES, JOURNAL)))

    @contextmanager
    def write(self, *, durable: bool, reads: Sequence[Read] = ()) -> Iterator[sqlite3.Connection]:
        """Run one transaction alone, and commit it at the end; with `durable`, also flush it to the disk.

        `reads` are for servers: here reading takes no time.
        """
        with self._lock, self._told():
            opened = self._opened()
            with opened.alone():
                try:
                    opened.run("BEGIN IMMEDIATE", self.path)
                    yield opened.connection
                    opened.run("COMMIT", self.path)
                except BaseException:
                    opened.undo()
                    raise
            self._written += 1
            mine = self._written
        if durable and self._later.wanted is not None:
            self._later.wanted = mine
        elif durable:
            with self._told():
                self._flush(mine)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Flush once, at the end, all that this thread writes: nothing of it is durable before."""
        self._later.wanted = 0
        try:
            yield
        finally:
            wanted, self._later.wanted = self._later.wanted, None
        if wanted:
            with self._told():
                self._flush(wanted)

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Read in one consistent state."""
        with self._lock, self._told():
            opened = self._opened()
            try:
                opened.run("BEGIN", self.path)
                yield opened.connection
            finally:
                opened.undo()

    def examine(self, connection: Connection) -> None:
        """Raise `LedgerError` if the database is damaged, which includes its indexes."""
        if connection.execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
            hint = "do not rely on it: compare it with a backup"
            raise LedgerError(f"the database {shown(self.path)} is damaged", hint=hint)

    def close(self) -> None:
        """Flush and close the connection; using the ledger again opens it again."""
        with self._lock, self._flushing:
            self._shut()

    def _opened(self) -> _Open:
        self._check_flushed()
        if self._open is None:
            self._open = _Open(self.path)
        return self._open

    def _check_flushed(self) -> None:
        """Raise `OSError` if a flush failed: systems report that once, and the next one seems to succeed."""
        if self._failed:
            raise OSError(EIO, "the log could not be flushed to the disk")

    def _flush(self, wanted: int) -> None:
        """Flush the log unless another thread did since."""
        with self._flushing:
            self._check_flushed()
            if self._flushed < wanted and self._open is not None:
                reached = self._written
                self._flush_log(self._open)
                self._flushed = reached

    def _flush_log(self, opened: _Open) -> None:
        try:
            opened.flush()
        except OSError:
            self._failed = True
            raise

    def _shut(self) -> None:
        """Flush the log and close the connection; both locks are held."""
        opened, self._open = self._open, None
        if opened is not None:
            try:
                if self._flushed < self._written:
                    self._flush_log(opened)
                    self._flushed = self._written
            finally:
                opened.close()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn errors of SQLite, of its driver and of the file system into `LedgerError`."""
        try:
            yield
        except (sqlite3.Error, OSError, OverflowError, UnicodeError) as error:
            raise failure(self.path, error) from error

    def before_fork(self) -> None:
        """Close the connection and hold the locks: SQLite's own are void in a child."""
        self._lock.acquire()
        self._flushing.acquire()
        with suppress(OSError, sqlite3.Error):
            self._shut()

    def after_fork(self) -> None:
        """Let go of the locks, in parent and child."""
        self._flushing.release()
        self._lock.release()


class _Open:
    """An open connection, the identity of the files it has open, and the log's descriptor to flush it.

    Where the file or its folder may not be written, it is opened to be read as it is, without a log.
    """

    def __init__(self, path: Path) -> None:
        check_files(path)
        before = identity(path, ())
        self.sides = SIDES if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK) else ()
        if not self.sides and os.path.lexists(f"{path}-wal"):
            problem = f"{shown(path)} is read-only, and its last entries are in a log beside it"
            raise LedgerError(problem, hint="copy both to a folder that you may write to")
        self._log = locks.opened(f"{path}-wal") if self.sides else -1
        self.connection: sqlite3.Connection | Any = None
        try:
            with self.alone():
                self._connect(path)
                self._settle(path)
                self.files = identity(path, self.sides)
                self._open_log(path)
            if self.files[0] != before[0]:
                raise replaced(path)
        except BaseException:
            self.close()
            raise

    def _connect(self, path: Path) -> None:
        self.connection = sqlite3.connect(
            f"file:{quote(os.fsencode(path))}?mode={'rw' if self.sides else 'ro&immutable=1'}",
            uri=True,
            isolation_level=None,
            timeout=PATIENCE,
            check_same_thread=False,
        )

    def _settle(self, path: Path) -> None:
        """Take SQLite's strictest settings, and check that the file is a ledger."""
        run = self.connection.execute
        for limit, value in LIMITS.items():
            self.connection.setlimit(limit, value)
        for setting in SETTINGS:
            run(f"PRAGMA {setting}")
        kind, mode = (run(f"PRAGMA {name}").fetchone() for name in ("application_id", "journal_mode"))
        if kind != (APPLICATION,) or (self.sides and mode != ("wal",)):
            raise LedgerError(f"{shown(path)} is not a ledger of dpveil", hint="name the right file")
        rows = run("SELECT type, name, sql FROM sqlite_master").fetchmany(2 * len(SCHEMA))
        ours = {(kind, name) for kind, name, sql in rows if sql is None} == {("index", n) for n in AUTOMATIC}
        if not ours or sorted(str(sql) for *_, sql in rows if sql is not None) != sorted(SCHEMA):
            raise LedgerError(
                f"{shown(path)} has other tables than a ledger",
                hint="do not use it: somebody changed it, or another version of dpveil wrote it",
            )

    def _open_log(self, path: Path) -> None:
        """Open the log unless it is open, and flush the folder, in which it may be new."""
        if self.sides:
            if not self._is_log():  # there was none, or the last one to close removed it meanwhile
                self._close_log()
                self._log = locks.opened(f"{path}-wal")
            if not self._is_log():
                raise replaced(path)
            flush(path.parent)

    def _is_log(self) -> bool:
        """Whether the descriptor is of the log that SQLite has open."""
        status = None if self._log < 0 else os.fstat(self._log)
        return status is not None and (status.st_dev, status.st_ino) == self.files[1]

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock of the log, if there is one, during the context; raises `OSError` if it is busy."""
        if self._log >= 0:
            locks.hold(self._log, PATIENCE)
        try:
            yield
        finally:
            if self._log >= 0:
                locks.free(self._log)

    def run(self, command: str, path: Path) -> None:
        """Run BEGIN or COMMIT, then check that the files are still the ones that are open."""
        self.connection.execute(command)
        if identity(path, self.sides) != self.files:
            raise replaced(path)

    def undo(self) -> None:
        """End a transaction without committing it."""
        with suppress(sqlite3.Error):
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")

    def flush(self) -> None:
        """Flush the log to the disk."""
        getattr(os, "fdatasync", os.fsync)(self._log)

    def close(self) -> None:
        """Close everything, alone: the last one to close removes the log."""
        if not locks.LOCKS:  # nor can an open file be removed there
            self._close_log()
        with suppress(OSError):
            if self._log >= 0:
                locks.hold(self._log, PATIENCE)
        try:
            if self.connection is not None:
                self.connection.close()
        finally:
            self._close_log()

    def _close_log(self) -> None:
        log, self._log = self._log, -1
        if log >= 0:
            locks.free(log)
            os.close(log)
