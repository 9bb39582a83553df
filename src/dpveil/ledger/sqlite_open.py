"""An open connection to a ledger in an SQLite file, and the files that it has open."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from dpveil.errors import LedgerError
from dpveil.io.names import shown
from dpveil.ledger import locks
from dpveil.ledger.sqlite_files import (
    APPLICATION,
    AUTOMATIC,
    LIMITS,
    SCHEMA,
    SETTINGS,
    SIDES,
    check_files,
    flush,
    identity,
    replaced,
)

PATIENCE: Final = 30.0
"""Seconds to wait for other processes that write."""


class Open:
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
