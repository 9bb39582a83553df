"""Results until they expire: releases and what became of requests, in one SQLite database.

It holds no original. Callers and their keys are kept as HMACs, so that the database names nobody. In memory
it ends with the process; in a file, a retry after a crash finds the release that was paid for.
"""

from __future__ import annotations

import errno
import hmac
import os
import secrets
import shutil
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dpveil.errors import OutputError
from dpveil.io.names import show_path
from dpveil.ledger.database import Foreign, migrate, transaction
from dpveil.service.limits import Limits
from dpveil.service.problems import ServiceError

SLACK: Final = 8 << 20
"""Bytes for a release besides: the database's log of earlier changes is this long at most."""
COPIES: Final = 2  # a release is written to the database's log first, and to the database then


MEMORY: Final = ":memory:"
MIGRATIONS: Final = (
    (
        "CREATE TABLE secret (value BLOB NOT NULL, ledger TEXT NOT NULL)",
        "CREATE TABLE results (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,"
        " owner BLOB NOT NULL, request BLOB, content BLOB NOT NULL, state TEXT NOT NULL,"
        " expires REAL NOT NULL, bytes INTEGER NOT NULL DEFAULT 0, format TEXT, certificate TEXT, notes TEXT,"
        " sha256 TEXT, problem TEXT, fetched INTEGER NOT NULL DEFAULT 0)",
        "CREATE TABLE images (number INTEGER PRIMARY KEY, image BLOB NOT NULL)",
        "CREATE UNIQUE INDEX requests ON results (owner, request) WHERE request IS NOT NULL",
    ),
)
SETTINGS: Final = (
    "page_size = 16384",  # images are long, and shorter pages cost half as much again to write
    "trusted_schema = OFF",
    "locking_mode = EXCLUSIVE",  # a second service would forget what the first one makes
    "synchronous = FULL",  # what was paid for survives a loss of power
    "wal_autocheckpoint = 256",  # SQLite's log has up to 4 MB before it is copied to the database
)
WORKING: Final = "working"
KEPT: Final = "kept"
DONE: Final = "done"
FAILED: Final = "failed"
"""States of a result. What is kept may be shown once the ledger knows that it was paid for."""
EXPIRED: Final = "expires <= ? AND state IN (?, ?)"
COLUMNS: Final = "id, state, expires, format, certificate, notes, problem"
KEEP: Final = (
    "UPDATE results SET state = ?, bytes = ?, format = ?, certificate = ?, notes = ?, sha256 = ? WHERE id = ?"
)


@dataclass(frozen=True)
class Result:
    """One result without its image: its random `id`, its `state`, and when it expires, in Unix seconds."""

    id: str
    state: str
    expires: float
    format: str | None = None
    certificate: str | None = None
    notes: str | None = None
    problem: str | None = None


class Store:
    """The results in the database at `path`; used by one thread at a time. `used` counts their bytes.

    `ledger` is the name of the ledger that pays, empty without one: a file belongs to one, as no other knows
    what was paid for. What was being made when the process ended is forgotten when the next one starts
    (`recover`): nothing of it was shown. Raises `OutputError` if the file cannot be used.
    """

    def __init__(self, path: str | Path, limits: Limits, ledger: str = "") -> None:
        self.limits = limits
        self.used = self._room = 0
        self._doubted = False
        try:
            self._base, self._secret = _open_database(path, ledger)
            self._folder = None if path == MEMORY else Path(path).parent
        except (sqlite3.Error, OSError, Foreign) as error:
            why = getattr(error, "strerror", None) or error
            problem = f"the results {show_path(path)} cannot be kept: {why}"
            hint = "name a file in a folder of yours that no other service and no other ledger uses"
            raise OutputError(problem, hint=hint) from error

    def close(self) -> None:
        self._base.close()

    def mac(self, *parts: str | bytes) -> bytes:
        """Return the HMAC of these parts under the store's own secret."""
        each = [part.encode() if isinstance(part, str) else part for part in parts]
        text = b"".join(len(data).to_bytes(8, "big") + data for data in each)
        return hmac.digest(self._secret, text, "sha256")

    def begin(self, owner: str, key: str | None, content: bytes) -> tuple[Result, bool]:
        """Return the result for this caller's key, and whether it is new and has to be made.

        Without a `key` it always is, and nothing of the content is kept. `content` is the digest of photo and
        settings. Raises "KeyReused" if the key came with other content.
        """
        request = None if key is None else self.mac("request", owner, key)
        content = secrets.token_bytes(32) if key is None else self.mac("content", key, content)
        row = None
        if request is not None:
            select = f"SELECT {COLUMNS}, content FROM results WHERE owner = ? AND request = ?"  # noqa: S608
            row = self._base.execute(select, [self.mac("owner", owner), request]).fetchone()
        if row is not None and self._forget(f"id = ? AND {EXPIRED}", [row[0], time.time(), DONE, FAILED]):
            row = None
        if row is None:
            return self._new(owner, request, content), True
        if not hmac.compare_digest(row[-1], content):
            raise ServiceError(
                "KeyReused",
                "this Idempotency-Key came with another photo or other settings",
                hint="send another key with another request",
            )
        return Result(*row[:-1]), False

    def _new(self, owner: str, request: bytes | None, content: bytes) -> Result:
        made = Result(secrets.token_urlsafe(24), WORKING, time.time() + self.limits.result_seconds)
        values = [made.id, self.mac("owner", owner), request, content, made.state, made.expires]
        self._base.execute(
            "INSERT INTO results (id, owner, request, content, state, expires) VALUES (?, ?, ?, ?, ?, ?)",
            values,
        )
        return made

    def has_room(self, size: int) -> bool:
        """Whether there is room for a release of `size` bytes; if so, it is kept until `free`.

        This and `free` are called in one thread, which may be another than that of all other methods.
        """
        fits = self.used + self._room + size <= self.limits.results_bytes
        self._room += size * fits
        return fits

    def make_room(self, size: int) -> bool:
        """Forget what expired, then what was downloaded, the oldest first; return whether there is room."""
        self.sweep()
        seen = self._base.execute("SELECT id FROM results WHERE fetched ORDER BY expires DESC").fetchall()
        while (full := self.used + self._room + size > self.limits.results_bytes) and seen:
            self.delete(*seen.pop())
        return not full

    def free(self, size: int) -> None:
        self._room -= size

    def check_disk(self, id_: str, size: int) -> None:
        """Raise `OSError` or `sqlite3.Error` if the disk has no room for all releases for which room is kept.

        After a release that was paid for and could not be kept, `size` bytes are also written once.
        """
        if self._folder is not None and shutil.disk_usage(self._folder).free < COPIES * self._room + SLACK:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self._doubted:
            self._write(id_, bytes(size))
            self._doubted = False

    def _write(self, id_: str, image: bytes) -> None:
        """Write an image; nothing if its result was deleted meanwhile."""
        select = "INSERT OR REPLACE INTO images SELECT number, ? FROM results WHERE id = ?"
        self._base.execute(select, [image, id_])

    def keep(self, id_: str, release: Mapping[str, Any], image: bytes) -> None:
        """Keep a release, durably, which is not shown before `show`."""
        self._doubted = True
        text, notes, kind = release["certificate"], release["notes"], release["format"]
        size = len(image) + len(text) + len(notes)
        with transaction(self._base):
            values = [KEPT, size, kind, text, notes, release["sha256"], id_]
            known = self._base.execute(KEEP, values).rowcount
            self._write(id_, image)
        self._doubted = False
        self.used += size * known

    def show(self, id_: str) -> Result:
        """Let a release that is kept be found; its time until it expires begins."""
        expires = time.time() + self.limits.result_seconds
        change = f"UPDATE results SET state = ?, expires = ? WHERE id = ? RETURNING {COLUMNS}"  # noqa: S608
        ((*row,),) = self._base.execute(change, [DONE, expires, id_]).fetchall()
        return Result(*row)

    def recover(self, paid: Callable[[str], bool]) -> None:
        """Show what an earlier process kept and did not show, if its SHA-256 was `paid`; forget the rest."""
        for id_, sha256 in self._base.execute(
            "SELECT id, sha256 FROM results WHERE state = ?", [KEPT]
        ).fetchall():
            if paid(sha256):
                self.show(id_)
        self._forget("state IN (?, ?)", [WORKING, KEPT])
        self.used = int(self._base.execute("SELECT coalesce(sum(bytes), 0) FROM results").fetchone()[0])

    def fail(self, id_: str, problem: str) -> None:
        """Keep why a release was not made; a retry with its key makes a new attempt."""
        unfinished, values = "id = ? AND state IN (?, ?)", [id_, WORKING, KEPT]
        before = self._base.execute(f"SELECT bytes FROM results WHERE {unfinished}", values).fetchone()  # noqa: S608
        if before is None:
            return
        with transaction(self._base):
            change = (
                "UPDATE results SET state = ?, problem = ?, bytes = ?, expires = ?, request = NULL,"  # noqa: S608
                f" format = NULL, certificate = NULL, notes = NULL, sha256 = NULL WHERE {unfinished}"
            )
            expires = time.time() + self.limits.result_seconds
            self._base.execute(change, [FAILED, problem, len(problem), expires, *values])
            delete = "DELETE FROM images WHERE number = (SELECT number FROM results WHERE id = ?)"
            self._base.execute(delete, [id_])
        self.used += len(problem) - int(before[0])

    def unfinished_ids(self) -> list[str]:
        which = "SELECT id FROM results WHERE state IN (?, ?)"
        return [str(id_) for (id_,) in self._base.execute(which, [WORKING, KEPT])]

    def find(self, owner: str, id_: str) -> Result | None:
        """Return a caller's result; None if there is none, or it has expired."""
        row = self._base.execute(
            f"SELECT {COLUMNS} FROM results WHERE id = ? AND owner = ? AND (expires > ? OR state IN (?, ?))",  # noqa: S608
            [id_, self.mac("owner", owner), time.time(), WORKING, KEPT],
        ).fetchone()
        return None if row is None else Result(*row)

    def size(self, owner: str, id_: str) -> int:
        """Return the bytes of the image of a caller's release; raises "NotFound"."""
        return self._image(owner, id_)[1]

    def part(self, owner: str, id_: str, start: int, size: int) -> bytes:
        """Return bytes of the image of a caller's release: none has to be in memory as a whole."""
        number, _ = self._image(owner, id_)
        with self._base.blobopen("images", "image", number, readonly=True) as image:
            image.seek(start)
            return image.read(size)

    def _image(self, owner: str, id_: str) -> tuple[int, int]:
        found = self._base.execute(
            "SELECT number, length(image) FROM results JOIN images USING (number)"
            " WHERE id = ? AND owner = ? AND state = ?",
            [id_, self.mac("owner", owner), DONE],
        ).fetchone()
        if found is None:
            text = "there is nothing of this name, or no longer"
            raise ServiceError("NotFound", text, hint="results expire")
        return int(found[0]), int(found[1])

    def note_fetched(self, id_: str) -> None:
        self._base.execute("UPDATE results SET fetched = 1 WHERE id = ?", [id_])

    def delete(self, id_: str) -> None:
        self._forget("id = ? AND state IN (?, ?)", [id_, DONE, FAILED])

    def sweep(self) -> None:
        self._forget(EXPIRED, [time.time(), DONE, FAILED])

    def _forget(self, which: str, values: Sequence[Any]) -> int:
        delete = f"DELETE FROM results WHERE {which} RETURNING number, bytes"  # noqa: S608
        with transaction(self._base):
            freed = self._base.execute(delete, values).fetchall()
            self._base.executemany("DELETE FROM images WHERE number = ?", [row[:1] for row in freed])
        self.used -= sum(size for _, size in freed)
        return len(freed)


def _open_database(path: str | Path, ledger: str) -> tuple[sqlite3.Connection, bytes]:
    if path != MEMORY:
        Path(path).touch(0o600)  # nobody else reads it; SQLite's other files take its mode
        if Path(path).is_dir():  # SQLite would not say why it cannot
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    base = sqlite3.connect(path, timeout=1, isolation_level=None, check_same_thread=False)
    try:
        for setting in SETTINGS:
            base.execute(f"PRAGMA {setting}")
        first = [secrets.token_bytes(32), ledger]
        insert = "INSERT INTO secret VALUES (?, ?)"
        migrate(base, "results", MIGRATIONS, lambda new: new.execute(insert, first))
        base.execute("PRAGMA journal_mode = WAL")
        secret, paying = base.execute("SELECT value, ledger FROM secret").fetchone()
        if paying != ledger:
            raise Foreign("the file was made with another ledger, or without one")
    except BaseException:
        base.close()
        raise
    return base, secret
