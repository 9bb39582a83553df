"""The files of a ledger in SQLite: how they are named, made, and checked before SQLite opens them."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from dpveil.errors import LedgerError, UsageError
from dpveil.io.locking import sole_writer
from dpveil.io.names import shown

SCHEMA: Final = (
    "CREATE TABLE ledger (name TEXT NOT NULL, secret TEXT NOT NULL)",
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, head TEXT NOT NULL, unit TEXT, sha256 TEXT,"
    " text TEXT NOT NULL)",
    "CREATE INDEX entries_by_unit ON entries (unit)",
    "CREATE INDEX entries_by_sha256 ON entries (sha256)",
    "CREATE TABLE subjects (subject TEXT PRIMARY KEY, cost TEXT NOT NULL, relation TEXT NOT NULL,"
    " limits TEXT NOT NULL)",
    "CREATE TABLE reservations (id TEXT PRIMARY KEY, subject TEXT NOT NULL, unit TEXT NOT NULL,"
    " cost TEXT NOT NULL, relation TEXT NOT NULL, expires INTEGER NOT NULL)",
)
AUTOMATIC: Final = {"sqlite_autoindex_subjects_1", "sqlite_autoindex_reservations_1"}
"""Indexes that SQLite makes for primary keys."""
APPLICATION: Final = 0x6470766C
"""SQLite's application_id of ledgers: "dpvl"."""
START: Final = "sqlite:///"
"""How the URL of a file begins."""
MOST_BYTES: Final = 1 << 16
"""Most bytes of a value or a row."""
SETTINGS: Final = ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0", "synchronous = NORMAL")
LIMITS: Final = {
    sqlite3.SQLITE_LIMIT_LENGTH: MOST_BYTES,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
}
SIDES: Final = ("-wal", "-shm")
JOURNAL: Final = "-journal"
Identity = tuple[tuple[int, int], ...]


class Later(threading.local):
    """The transaction that a thread has flushed later, 0 if none yet; None if it flushes each at once."""

    wanted: int | None = None


def create(path: Path, fill: Callable[[sqlite3.Connection], None]) -> bool:
    """Make a ledger at `path`, whose first rows `fill` writes; return False if something is there already.

    It is written under another name, flushed, and then given its own while no other dpveil process makes one
    there. Raises `LedgerError`, also where the log of another ledger lies, which SQLite would apply to this.
    """
    made = path.parent / f".{path.name}.{os.urandom(8).hex()}.new"
    try:
        with sole_writer([path.parent]):
            if os.path.lexists(path):
                return False
            for end in (*SIDES, JOURNAL):
                if os.path.lexists(f"{path}{end}"):
                    problem = f"{shown(f'{path}{end}')} was left by a ledger that is gone"
                    raise LedgerError(problem, hint="bring that ledger back, or move this file away, too")
            _fill(made, fill)
            flush(made)
            made.rename(path)
            flush(path.parent)
    except (OSError, sqlite3.Error) as error:
        raise failure(path, error) from error
    finally:
        for end in ("", *SIDES, JOURNAL):
            with suppress(OSError):
                Path(f"{made}{end}").unlink(missing_ok=True)
    return True


def _fill(made: Path, fill: Callable[[sqlite3.Connection], None]) -> None:
    os.close(os.open(made, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    with closing(sqlite3.connect(made, isolation_level=None)) as raw:
        for command in (f"PRAGMA application_id = {APPLICATION}", "PRAGMA journal_mode = WAL", *SCHEMA):
            raw.execute(command)
        fill(raw)


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
    start, name = url[: len(START)], url[len(START) :]
    if start.lower() != START or name[:1] in ("", ":") or not name.isprintable() or set("?#%") & set(name):
        ours = url.lower().startswith("sqlite:") and "@" not in url  # else it may hold a password
        raise UsageError(
            f"{shown(url) if ours else 'this'} is no URL of a ledger",
            hint="write sqlite:///budget.db, without any parameters, or postgresql://USER@HOST/DATABASE",
        )
    return Path(name)


def check_files(path: Path) -> None:
    """Raise `LedgerError` unless `path` and what SQLite left beside it are plain files, without a journal."""
    if not os.path.lexists(path):
        hint = "check the name; dpveil ledger limit makes one where there is none"
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
    text = getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__
    hints = {
        "locked": "another process holds it: try again when that is done",
        "full": "make room on the disk",
        "space": "make room on the disk",
        "readonly": "make the file and its folder writable",
        "permission": "make the file and its folder writable",
        "unable to open": "run this as the user whose it is, who has to be able to write its folder",
        "no such file": "make the folder first",
    }
    hint = next(
        (hint for word, hint in hints.items() if word in text.lower()),
        "nothing was drawn; get an intact copy",
    )
    return LedgerError(f"the ledger {shown(path)} cannot be used: {shown(text)}", hint=hint)


def identity(path: Path, sides: tuple[str, ...]) -> Identity:
    """Return device and inode of the files; raises `LedgerError` if one is gone."""
    try:
        found = [Path(f"{path}{end}").lstat() for end in ("", *sides)]
    except FileNotFoundError as error:
        raise replaced(path) from error
    return tuple((status.st_dev, status.st_ino) for status in found)


def replaced(path: Path) -> LedgerError:
    """Return the error for a file that is no longer the one that was opened."""
    return LedgerError(
        f"the ledger {shown(path)} was replaced or removed while it was open",
        hint="nothing was drawn; run it again",
    )
