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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from dpveil.errors import OutputError
from dpveil.io.names import show_path
from dpveil.ledger.database import Foreign, migrate, transaction
from dpveil.service.problems import KeyReused, NotFound
from dpveil.service.settings import Limits

SLACK: Final = 8 << 20
"""Bytes for a release besides: the database's log of earlier changes is this long at most."""
COPIES: Final = 2
"""A release is written to the database's log first, and to the database then."""


class Images(Protocol):
    """The images of results. In a transaction of the database, changes are part of it."""

    def keep(self, number: int, image: bytes) -> None:
        """Keep the image of a result, in place of an earlier one."""

    def size(self, number: int) -> int | None:
        """Return the bytes of an image; None if there is none."""

    def part(self, number: int, start: int, size: int) -> bytes:
        """Return bytes of an image that is there."""

    def forget(self, numbers: Iterable[int]) -> None:
        """Forget images, of which some may not be there."""


class InTable:
    """Images in the table `images`."""

    def __init__(self, base: sqlite3.Connection) -> None:
        self._base = base

    def keep(self, number: int, image: bytes) -> None:
        """Write an image."""
        self._base.execute("INSERT OR REPLACE INTO images VALUES (?, ?)", [number, image])

    def size(self, number: int) -> int | None:
        """Return the bytes of an image, which is not read for that; None if there is none."""
        select = "SELECT length(image) FROM images WHERE number = ?"
        found = self._base.execute(select, [number]).fetchone()
        return None if found is None else int(found[0])

    def part(self, number: int, start: int, size: int) -> bytes:
        """Return bytes of an image, of which no others are read."""
        with self._base.blobopen("images", "image", number, readonly=True) as image:
            image.seek(start)
            return image.read(size)

    def forget(self, numbers: Iterable[int]) -> None:
        """Delete images."""
        self._base.executemany("DELETE FROM images WHERE number = ?", [(number,) for number in numbers])


class InMemory:
    """Images as they came, without a copy. No transaction undoes their changes, which may be made again."""

    def __init__(self) -> None:
        self._images: dict[int, bytes] = {}

    def keep(self, number: int, image: bytes) -> None:
        """Keep an image."""
        self._images[number] = image

    def size(self, number: int) -> int | None:
        """Return the bytes of an image; None if there is none."""
        return len(self._images[number]) if number in self._images else None

    def part(self, number: int, start: int, size: int) -> bytes:
        """Return bytes of an image: itself, if these are all."""
        return self._images[number][start : start + size]

    def forget(self, numbers: Iterable[int]) -> None:
        """Forget images."""
        for number in numbers:
            self._images.pop(number, None)


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
    "synchronous = NORMAL",  # only what is kept has to survive a crash: see `keep`
    "wal_autocheckpoint = 256",  # SQLite's log has up to 4 MB before it is copied to the database
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
        self.limits, self.in_memory = limits, path == MEMORY
        self.used = self._room = 0
        self._doubted = False
        try:
            self._base, self._secret = _open_database(path, ledger)
            self._images: Images = InMemory() if self.in_memory else InTable(self._base)
            self._folder = None if path == MEMORY else Path(path).parent
        except (sqlite3.Error, OSError, Foreign) as error:
            text = getattr(error, "strerror", None) or str(error)
            hint = next((told for word, told in HINTS.items() if word in text), "or remove this one")
            problem = f"the results {show_path(path)} cannot be kept: {text}"
            raise OutputError(problem, hint=f"name another file, {hint}") from error

    def close(self) -> None:
        """Close the database."""
        self._base.close()

    def mac(self, *parts: str | bytes) -> bytes:
        """Return the HMAC of these parts under the store's own secret."""
        each = [part.encode() if isinstance(part, str) else part for part in parts]
        text = b"".join(len(data).to_bytes(8, "big") + data for data in each)
        return hmac.digest(self._secret, text, "sha256")

    def begin(self, owner: str, key: str | None, content: bytes) -> tuple[Result, bool]:
        """Return the result for this caller's key, and whether it is new and has to be made.

        Without a `key` it always is, and nothing of the content is kept. `content` is the digest of photo and
        settings. Raises `KeyReused` if the key came with other content.
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
            raise KeyReused(
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
        """Give back what `has_room` kept."""
        self._room -= size

    def check_disk(self, id_: str, size: int) -> None:
        """Raise `OSError` or `sqlite3.Error` if the disk has no room for all releases for which room is kept.

        After a release that could not be kept, `size` bytes are also written once.
        """
        if self._folder is not None and shutil.disk_usage(self._folder).free < COPIES * self._room + SLACK:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self._doubted:
            for number in self._numbers(id_):
                self._images.keep(number, bytes(size))
            self._doubted = False

    def keep(self, id_: str, release: Mapping[str, Any], image: bytes) -> None:
        """Keep a release, durably, which is not shown before `show`."""
        self._doubted = True
        text, notes, kind = release["certificate"], release["notes"], release["format"]
        size = len(image) + len(text) + len(notes)
        values = [KEPT, size, kind, text, notes, release["sha256"], id_]
        with self._synchronous(), transaction(self._base):
            for number in self._numbers(id_):
                self._images.keep(number, image)
            self._base.execute(KEEP, values)
        self._doubted = False
        self.used += size

    @contextmanager
    def _synchronous(self) -> Iterator[None]:
        """Have what is committed within survive a loss of power."""
        if not self.in_memory:
            self._base.execute("PRAGMA synchronous = FULL")
        try:
            yield
        finally:
            if not self.in_memory:
                self._base.execute("PRAGMA synchronous = NORMAL")

    def _numbers(self, id_: str) -> list[int]:
        """Return the number of a result; none if it was deleted."""
        found = self._base.execute("SELECT number FROM results WHERE id = ?", [id_]).fetchall()
        return [int(number) for (number,) in found]

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
            self._images.forget(self._numbers(id_))
        self.used += len(problem) - int(before[0])

    def unfinished_ids(self) -> list[str]:
        """Return the names of all results that are neither done nor failed."""
        which = "SELECT id FROM results WHERE state IN (?, ?)"
        return [str(id_) for (id_,) in self._base.execute(which, [WORKING, KEPT])]

    def find(self, owner: str, id_: str) -> Result | None:
        """Return a caller's result; None if there is none, or it has expired."""
        row = self._base.execute(
            f"SELECT {COLUMNS} FROM results WHERE id = ? AND owner = ? AND (expires > ? OR state IN (?, ?))",  # noqa: S608
            [id_, self.mac("owner", owner), time.time(), WORKING, KEPT],
        ).fetchone()
        return None if row is None else Result(*row)

    def opening(self, owner: str, id_: str, most: int) -> tuple[int, bytes]:
        """Return the bytes of the image of a caller's release, and the first of them, at most so many.

        Raises `NotFound`.
        """
        number, size = self._image(owner, id_)
        return size, self._read(number, 0, min(most, size))

    def part(self, owner: str, id_: str, start: int, size: int) -> bytes:
        """Return bytes of the image of a caller's release, so that no image has to be in memory as a whole.

        Raises `NotFound` if it was forgotten meanwhile: each part is of the release that was asked for.
        """
        return self._read(self._image(owner, id_)[0], start, size)

    def _read(self, number: int, start: int, size: int) -> bytes:
        return self._images.part(number, start, size) if size else b""

    def _image(self, owner: str, id_: str) -> tuple[int, int]:
        found = self._base.execute(
            "SELECT number FROM results WHERE id = ? AND owner = ? AND state = ?",
            [id_, self.mac("owner", owner), DONE],
        ).fetchone()
        size = None if found is None else self._images.size(found[0])
        if size is None:
            raise NotFound("there is nothing of this name, or no longer", hint="results expire")
        return int(found[0]), size

    def note_fetched(self, id_: str) -> None:
        """Note that a release was downloaded."""
        self._base.execute("UPDATE results SET fetched = 1 WHERE id = ?", [id_])

    def delete(self, id_: str) -> None:
        """Forget a result that is not being made."""
        self._forget("id = ? AND state IN (?, ?)", [id_, DONE, FAILED])

    def sweep(self) -> None:
        """Forget what has expired."""
        self._forget(EXPIRED, [time.time(), DONE, FAILED])

    def _forget(self, which: str, values: Sequence[Any]) -> int:
        """Forget some results; return how many."""
        delete = f"DELETE FROM results WHERE {which} RETURNING number, bytes"  # noqa: S608
        with transaction(self._base):
            freed = self._base.execute(delete, values).fetchall()
            self._images.forget(number for number, _ in freed)
        self.used -= sum(size for _, size in freed)
        return len(freed)


def _open_database(path: str | Path, ledger: str) -> tuple[sqlite3.Connection, bytes]:
    """Return the database at `path`, made if there is none, and its own secret.

    Raises `sqlite3.Error`, `OSError`, and `Foreign`, also for a file of another ledger.
    """
    if path != MEMORY:
        Path(path).touch(0o600)  # nobody else reads it; SQLite's other files take its mode
        if Path(path).is_dir():  # SQLite would not say why it cannot
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    base = sqlite3.connect(path, timeout=1, isolation_level=None, check_same_thread=False)
    try:
        for setting in SETTINGS:
            base.execute(f"PRAGMA {setting}")
        first = [secrets.token_bytes(32), ledger]
        migrate(
            base, "results", MIGRATIONS, lambda new: new.execute("INSERT INTO secret VALUES (?, ?)", first)
        )
        base.execute("PRAGMA journal_mode = WAL")
        secret, paying = base.execute("SELECT value, ledger FROM secret").fetchone()
        if paying != ledger:
            raise Foreign("the file was made with another ledger, or without one")
    except BaseException:
        base.close()
        raise
    return base, secret
