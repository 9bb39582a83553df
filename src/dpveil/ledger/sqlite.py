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

from dpveil.errors import LedgerError
from dpveil.io.names import shown
from dpveil.ledger import forks
from dpveil.ledger.sqlite_files import JOURNAL, SIDES, Later, failure
from dpveil.ledger.sqlite_open import Open
from dpveil.ledger.store import Connection, Read


class SQLite:
    """The file at `path`, opened on first use with one connection, which threads take turns to use.

    Raises `LedgerError` wherever the file is missing, damaged, busy, full, replaced, or not a ledger.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.realpath(path.parent)) / path.name
        self._lock, self._flushing = threading.Lock(), threading.Lock()
        self._open: Open | None = None
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
        """Flush once, at the end, all that this thread writes: nothing of it is durable before.

        Within another such context, that one flushes.
        """
        outer = self._later.wanted
        self._later.wanted = outer or 0
        try:
            yield
        finally:
            wanted, self._later.wanted = self._later.wanted, None
            if outer is not None:
                self._later.wanted = wanted
            elif wanted:
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

    def _opened(self) -> Open:
        self._check_flushed()
        if self._open is None:
            self._open = Open(self.path)
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

    def _flush_log(self, opened: Open) -> None:
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
