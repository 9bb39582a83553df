"""Databases of ledgers, and of the service's results: an SQLite file, or a schema on a PostgreSQL server.

A transaction that writes has the database to itself, and is on the disk once it ends: SQLite flushes its log
with each commit (`synchronous = FULL`), and so does a server (`synchronous_commit = on`). If it fails, or the
connection is lost, `LedgerError` is raised and nothing may be drawn.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from dpveil.errors import DPVeilError, LedgerError, UsageError
from dpveil.io.locking import sole_writer
from dpveil.io.names import show_path

MIGRATIONS: Final = (
    (
        "CREATE TABLE ledger (name TEXT NOT NULL, secret TEXT NOT NULL)",
        "CREATE TABLE entries (number BIGINT PRIMARY KEY, head TEXT NOT NULL, unit TEXT, sha256 TEXT,"
        " text TEXT NOT NULL)",
        "CREATE INDEX entries_by_unit ON entries (unit)",
        "CREATE INDEX entries_by_sha256 ON entries (sha256)",
        "CREATE TABLE subjects (subject TEXT PRIMARY KEY, cost TEXT NOT NULL, relation TEXT NOT NULL,"
        " limits TEXT NOT NULL)",
        "CREATE TABLE reservations (id TEXT PRIMARY KEY, subject TEXT NOT NULL, unit TEXT NOT NULL,"
        " cost TEXT NOT NULL, relation TEXT NOT NULL, expires BIGINT NOT NULL)",
    ),
)
"""The statements of each version of the tables after the one before, which both databases understand."""
Connection = Any  # A connection of `sqlite3`, or `Server`
PATIENCE: Final = 30  # seconds to wait for others that write
SETTINGS: Final = ("trusted_schema = OFF", "cell_size_check = ON", "synchronous = FULL")
FILE_URL: Final = "sqlite:///"
SCHEMA: Final = "dpveil_ledger"
SERVER: Final = {
    "autocommit": True,
    "connect_timeout": PATIENCE,
    "keepalives_idle": 10,
    "tcp_user_timeout": 90_000,
    "client_encoding": "UTF8",
    "options": f"-c search_path={SCHEMA},pg_temp -c synchronous_commit=on -c lock_timeout={PATIENCE}s"
    " -c statement_timeout=60s -c idle_in_transaction_session_timeout=60s",
}
"""How a server is connected to. Temporary tables are looked up last, so that none hides ours."""
OPTIONS: Final = frozenset(
    {"user", "password", "host", "port", "dbname", "sslmode", "sslrootcert", "connect_timeout"}
)
"""What a server's URL may state: who connects, where it is, and how it is trusted."""
TABLES: Final = "SELECT tablename FROM pg_tables WHERE schemaname = 'dpveil_ledger'"
ALONE: Final = f"BEGIN; SELECT pg_advisory_xact_lock(7886470); CREATE SCHEMA IF NOT EXISTS {SCHEMA}"
"""How tables are made on a server; the number is any fixed one."""
OWNER: Final = """SELECT rolname = current_user OR rolsuper FROM pg_namespace
    JOIN pg_roles ON pg_roles.oid = nspowner WHERE nspname = :schema"""
HINTS: Final = {
    "locked": "another process holds it: try again when that is done",
    "full": "make room on the disk",
    "no space": "make room on the disk",
    "readonly": "make the file and its folder writable",
    "permission": "make the file and its folder writable",
    "unable to open": "run this as the user whose it is, who has to be able to write its folder",
    "no such file": "make the folder first",
    "other tables": "name the right one, or use the version of dpveil that made it",
    "not a database": "name the right file",
}
"""Remedies, by words of what a database or the system says."""


@contextmanager
def transaction(
    connection: Connection, begin: str = "BEGIN IMMEDIATE", end: str = "COMMIT"
) -> Iterator[None]:
    """Make all changes within or none."""
    try:
        connection.execute(begin)
        yield
        connection.execute(end)
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


class Foreign(Exception):
    """The tables are of something else, or of another version of dpveil."""


def migrate(
    connection: Connection,
    kind: str,
    migrations: Sequence[Sequence[str]],
    fill: Callable[[Connection], None] | None,
    tables: str = "SELECT name FROM sqlite_master WHERE type = 'table'",
    begin: str = "BEGIN IMMEDIATE",
) -> int:
    """Bring the tables of a database of this kind to the newest version; return which they had before.

    Where there are none yet (0), `fill` writes the first rows; without it, none are made. `tables` lists
    them, and `begin` begins a transaction alone. Raises `Foreign`.
    """

    def version() -> int:
        names = {name for (name,) in connection.execute(tables).fetchall()}
        told = connection.execute("SELECT kind, number FROM version").fetchall() if "version" in names else []
        if names and (len(told) != 1 or told[0][0] != kind or not 0 < told[0][1] <= len(migrations)):
            raise Foreign(f"it has other tables than the {kind} of this version of dpveil")
        return int(told[0][1]) if told else 0

    before = version()
    if before == len(migrations) or (before == 0 and fill is None):
        return before
    with transaction(connection, begin):
        before = version()
        if before == 0:
            connection.execute("CREATE TABLE version (kind TEXT NOT NULL, number BIGINT NOT NULL)")
            connection.execute("INSERT INTO version VALUES (:kind, 0)", {"kind": kind})
        for statement in (each for step in migrations[before:] for each in step):
            connection.execute(statement)
        connection.execute("UPDATE version SET number = :number", {"number": len(migrations)})
        if before == 0 and fill is not None:
            fill(connection)
    return before


class Database:
    """A ledger's database: one connection of this process, which its threads take turns to use.

    It is closed before a fork, as a child may share no connection and no lock of SQLite, and opened again
    where it is used. With `fill`, which writes the first rows, a missing ledger is made, which `created`
    tells. `place` is how messages name it.
    """

    files: tuple[Path, ...] = ()
    errors: tuple[type[Exception], ...] = (OSError, OverflowError, UnicodeError, sqlite3.Error, Foreign)
    begin, begin_reading = "BEGIN IMMEDIATE", "BEGIN"

    def __init__(self, place: str, fill: Callable[[Connection], None] | None) -> None:
        self.place, self.lock, self.created = place, threading.RLock(), False
        self._fill = fill
        self._connection: Connection | None = None
        _databases.add(self)

    def open(self) -> None:
        """Connect, and make the ledger if it is missing and shall be made."""
        with self.lock, self._as_ledger_error():
            self._connection, self._fill = self._connect(), None

    def _migrate(self, opened: Connection, *how: str) -> None:
        missing = migrate(opened, "ledger", MIGRATIONS, self._fill, *how) == 0
        if missing and self._fill is None:
            raise self._missing()
        self.created = self.created or missing

    def _missing(self) -> LedgerError:
        hint = "check the name; dpveil ledger limit makes one where there is none"
        return LedgerError(f"there is no ledger {self.place}", hint=hint)

    def _connect(self) -> Connection:
        raise NotImplementedError

    def write(self) -> AbstractContextManager[Connection]:
        return self._transaction(self.begin, "COMMIT")

    def read(self) -> AbstractContextManager[Connection]:
        return self._transaction(self.begin_reading, "ROLLBACK")

    @contextmanager
    def _transaction(self, begin: str, end: str) -> Iterator[Connection]:
        with self.lock, self._as_ledger_error():
            if self._connection is None:
                self._connection = self._connect()
            try:
                self._check()
                with transaction(self._connection, begin, end):
                    yield self._connection
                    self._check()
            except DPVeilError:  # a refusal, which was rolled back
                raise
            except BaseException:  # whatever state it left
                self.close()
                raise

    def _check(self) -> None:
        """Raise `LedgerError` if the database is not the one that was opened."""

    def damage(self, connection: Connection) -> str:
        """Return what the database says of damage to itself: nothing on a server, whose task that is."""
        return ""

    def close(self) -> None:
        with self.lock:
            opened, self._connection = self._connection, None
            if opened is not None:
                with suppress(*self.errors):
                    opened.close()

    @contextmanager
    def _as_ledger_error(self) -> Iterator[None]:
        try:
            yield
        except self.errors as error:
            text = getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__
            hints = (hint for word, hint in HINTS.items() if word in text.lower())
            raise LedgerError(
                f"the ledger {self.place} cannot be used: {show_path(text)}",
                hint=next(hints, "nothing was drawn; see to it, and run it again"),
            ) from error


class SQLite(Database):
    """The file of a URL such as sqlite:///budget.db; where it may not be written, it is read as it is."""

    def __init__(self, url: str, fill: Callable[[Connection], None] | None = None) -> None:
        path = path_of(url)
        super().__init__(show_path(path), fill)
        self.path, self._file = Path(os.path.realpath(path.parent)) / path.name, (0, 0)
        self.files = tuple(Path(f"{self.path}{end}") for end in ("", "-wal", "-shm", "-journal"))

    def _connect(self) -> sqlite3.Connection:
        with nullcontext() if self._fill is None else sole_writer([self.path.parent]):
            if self._fill is not None and not os.path.lexists(self.path):
                self.path.touch(0o600)
            if not self.path.exists():
                raise self._missing()
            status = self.path.stat()
            self._file = status.st_dev, status.st_ino
            writable = os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)
            if not writable and os.path.lexists(self.files[1]):
                problem = f"{self.place} is read-only, and its last entries are in a log beside it"
                raise LedgerError(problem, hint="copy both to a folder that you may write to")
            uri = f"file:{quote(os.fsencode(self.path))}?mode={'rw' if writable else 'ro&immutable=1'}"
            opened = sqlite3.connect(uri, PATIENCE, isolation_level=None, check_same_thread=False, uri=True)
            try:
                new = self._fill is not None and status.st_size == 0
                for setting in (*SETTINGS, "journal_mode = WAL") if new else SETTINGS:
                    opened.execute(f"PRAGMA {setting}")
                self._migrate(opened)
            except BaseException:
                opened.close()
                raise
            return opened

    def _check(self) -> None:
        with suppress(FileNotFoundError):
            status = self.path.stat()
            if self._file == (status.st_dev, status.st_ino):
                return
        problem = f"the ledger {self.place} was replaced or removed while it was open"
        raise LedgerError(problem, hint="nothing was drawn; run it again")

    def damage(self, connection: sqlite3.Connection) -> str:
        """Return what SQLite finds damaged, which includes its indexes; nothing if it is intact."""
        found = str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
        return "" if found == "ok" else found


class Server:
    """A connection of psycopg that takes parameters as SQLite does, written :name."""

    def __init__(self, connection: Any, idle: object) -> None:
        self._connection, self._idle, self.close = connection, idle, connection.close

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is under way, or may be."""
        return bool(self._connection.info.transaction_status != self._idle)

    def execute(self, sql: str, values: dict[str, Any] | None = None) -> Any:
        return self._connection.execute(_for_psycopg(sql), values)


@cache
def _for_psycopg(sql: str) -> str:
    return re.sub(r":([a-z0-9]+)", r"%(\1)s", sql)


class PostgreSQL(Database):
    """The schema dpveil_ledger of the database of a URL such as postgresql://USER@HOST/DATABASE.

    Transactions that write lock the entries against each other. A server that may forget what it commits is
    refused, and so is a schema of another user, who decides what becomes of what is written there.
    """

    begin = "BEGIN; LOCK TABLE entries IN EXCLUSIVE MODE"
    begin_reading = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

    def __init__(self, url: str, fill: Callable[[Connection], None] | None = None) -> None:
        self._target, place = target_of(url)
        super().__init__(f"at {place}", fill)
        import psycopg

        self._psycopg: Any = psycopg
        self.errors = (*self.errors, psycopg.Error)

    def _connect(self) -> Server:
        raw = self._psycopg.connect(**{**SERVER, **self._target})
        opened = Server(raw, self._psycopg.pq.TransactionStatus.IDLE)
        try:
            for name in ("fsync", "full_page_writes"):
                if (value := opened.execute(f"SHOW {name}").fetchone()[0]) != "on":
                    problem = f"the server of the ledger {self.place} may forget debits: {name} is {value}"
                    raise LedgerError(problem, hint=f"set {name} = on in its configuration")
            self._migrate(opened, TABLES, ALONE)
            if opened.execute(OWNER, {"schema": SCHEMA}).fetchone() != (True,):
                problem = f"the schema {SCHEMA} {self.place} belongs to another user"
                raise LedgerError(problem, hint="have it removed, or name another database")
        except BaseException:
            opened.close()
            raise
        return opened


def is_server(url: str) -> bool:
    """Whether a URL is one of PostgreSQL, which may hold a password."""
    return url.lower().startswith(("postgresql:", "postgres:"))


def database_of(url: str, fill: Callable[[Connection], None] | None = None) -> Database:
    """Return the database of a URL. With `fill`, which writes the first rows, a missing ledger is made.

    Raises `UsageError` for other URLs, and `LedgerError`.
    """
    found = PostgreSQL(url, fill) if is_server(url) else SQLite(url, fill)
    found.open()
    return found


def path_of(url: str) -> Path:
    """Return the file of an SQLite URL; raises `UsageError` for anything but sqlite:/// and a plain path.

    >>> path_of("sqlite:///budget.db").name
    'budget.db'
    """
    name = url[len(FILE_URL) :]
    plain = name[:1] not in ("", ":") and name.isprintable() and not set("?#%") & set(name)
    if plain and url.lower().startswith(FILE_URL):
        return Path(name)
    shown = "this" if "@" in url or (":" in url and not url.lower().startswith("sqlite")) else show_path(url)
    hint = "write sqlite:///budget.db, without any parameters, or postgresql://USER@HOST/DATABASE"
    raise UsageError(f"{shown} is no URL of a ledger", hint=hint)


def target_of(url: str) -> tuple[dict[str, str], str]:
    """Return the server of a URL as psycopg takes it, and how messages name it: without its password.

    Raises `UsageError` for anything but a user, a password and `OPTIONS`, and without psycopg.

    >>> target_of("postgresql://clerk:secret@db.example/budgets")[1]
    'postgresql://db.example/budgets'
    """
    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as error:
        hint = "pip install 'dpveil[postgres]'"
        raise UsageError("a ledger in PostgreSQL needs psycopg", hint=hint) from error
    try:
        target = {name: str(value) for name, value in conninfo_to_dict(url).items() if value}
    except (ProgrammingError, UnicodeError):  # whose words may hold the password
        target = {}
    database = target.get("dbname", "")
    wrong = sorted({*target} - OPTIONS)
    # a / in a password, which has to be written %2F, ends the host, and so the rest is taken for the database
    if (
        wrong
        or not database
        or set("@#") & {*database, *target.get("host", "")}
        or not all(map(str.isprintable, target.values()))
    ):
        why = f"it has the parameter {show_path(wrong[0])}" if wrong else "it names no database"
        hint = "postgresql://USER:PASSWORD@HOST/DATABASE, with %2F for a / in the password"
        hint += "; ?sslmode=verify-full or ?host=/folder may follow"
        raise UsageError(f"the URL of the ledger cannot be used: {why}", hint=hint)
    return target, f"postgresql://{show_path(target.get('host', 'localhost'))}/{show_path(database)}"


_databases: weakref.WeakSet[Database] = weakref.WeakSet()
_forking: list[Database] = []
_one_fork = threading.Lock()
"""Held while a thread forks: two that wait for each other's databases would wait for ever."""


def _before_fork() -> None:
    _one_fork.acquire()
    _forking[:] = list(_databases)
    for each in _forking:
        each.lock.acquire()
        each.close()


def _after_fork() -> None:
    while _forking:
        _forking.pop().lock.release()
    _one_fork.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
