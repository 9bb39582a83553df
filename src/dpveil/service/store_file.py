"""The file of results: its tables and settings, and what it takes for its own."""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
from pathlib import Path
from typing import Final

MEMORY: Final = ":memory:"
APPLICATION: Final = 0x64705672
"""SQLite's application_id of files of results: "dpVr"."""
VERSION: Final = 2
SCHEMA: Final = f"""
BEGIN;
CREATE TABLE IF NOT EXISTS secret (value BLOB NOT NULL, ledger TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS results (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE, owner BLOB NOT NULL, request BLOB, content BLOB NOT NULL, state TEXT NOT NULL,
  expires REAL NOT NULL, bytes INTEGER NOT NULL DEFAULT 0, format TEXT, certificate TEXT, notes TEXT,
  sha256 TEXT, problem TEXT, fetched INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS images (number INTEGER PRIMARY KEY, image BLOB NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS requests ON results (owner, request) WHERE request IS NOT NULL;
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
COMMIT;
"""
PAGE: Final = 1 << 14
"""Bytes of a page of a new file: images are long, and shorter pages cost half as much again to write."""
LOG: Final = 1 << 22
"""Bytes of SQLite's log after which it is copied to the database."""
PRAGMAS: Final = (
    f"page_size = {PAGE}",
    "trusted_schema = OFF",
    "locking_mode = EXCLUSIVE",  # a second service would forget what the first one makes
    "journal_mode = WAL",
    "synchronous = NORMAL",  # only what is kept has to survive a crash: see `keep`
)
OWNER: Final = "or run this as the owner of this one, who has to be able to write its folder"
HINTS: Final = {
    "denied": OWNER,
    "readonly": OWNER,
    "unable to open": OWNER,
    "No such file": "or make its folder first",
    "another ledger": "or give the ledger that this one was made with",
    "locked": "or stop the service that has this one",
}
"""Remedies where the results cannot be kept, by words of what the system or SQLite says."""


def opened(path: str | Path, ledger: str) -> tuple[sqlite3.Connection, bytes]:
    """Return the database at `path`, made if there is none, and its own secret.

    Raises `sqlite3.Error` and `OSError`, also for a file of another ledger or of no results.
    """
    if path != MEMORY:
        Path(path).touch(0o600)  # nobody else reads it; SQLite's other files take its mode
        if Path(path).is_dir():  # SQLite would not say why it cannot
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    base = sqlite3.connect(path, timeout=1, isolation_level=None, check_same_thread=False)
    try:
        _settle(base)
        if base.execute("SELECT count(*) FROM secret").fetchone()[0] == 0:
            base.execute("INSERT INTO secret VALUES (?, ?)", [secrets.token_bytes(32), ledger])
        secret, paying = base.execute("SELECT value, ledger FROM secret").fetchone()
        if paying != ledger:
            raise sqlite3.DatabaseError("the file was made with another ledger, or without one")
    except BaseException:
        base.close()
        raise
    return base, secret


def _settle(base: sqlite3.Connection) -> None:
    """Take the settings, and make the tables; raises `sqlite3.Error` for another database."""
    tables = base.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    told = [base.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
    if told != ([APPLICATION, VERSION] if tables else [0, 0]):
        other = "of another version of dpveil" if tables and told[0] == APPLICATION else "another database"
        raise sqlite3.DatabaseError(f"the file is {other}")
    for pragma in PRAGMAS:
        base.execute(f"PRAGMA {pragma}")
    page = base.execute("PRAGMA page_size").fetchone()[0]
    base.execute(f"PRAGMA wal_autocheckpoint = {LOG // page}")
    base.executescript(SCHEMA)
