"""A ledger in PostgreSQL: its tables in a schema of their own, one writer at a time, and forks.

*One writer.* A transaction that writes first locks the entries against other writers, for each entry holds
the hash of the one before. Readers are not held up: they see one consistent state.

*Durability.* A transaction that is not `durable` is not waited for. Another one flushes the server's log, so
that what it wrote survives a loss of power once `write` ends. A server that does not flush is refused: each
durable transaction reads its settings, which may change at any time.

*A lost connection* ends `write` with `LedgerError`, and nothing is drawn. If it is lost between the commit
and its answer, that debit is paid for nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from dpveil.errors import LedgerError, UsageError
from dpveil.io.names import shown
from dpveil.ledger import forks
from dpveil.ledger.postgres_tables import SCHEMA, TABLES, check_tables
from dpveil.ledger.store import SQL, Connection, Rows

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMES: Final = ("postgresql", "postgres")
OPTIONS: Final = frozenset({"host", "port", "sslmode", "sslrootcert", "connect_timeout"})
"""Parameters of a URL that are taken: where the server is, and how it is trusted."""
SETTINGS: Final = {
    "search_path": f"{SCHEMA}, pg_temp",
    "lock_timeout": "30s",
    "statement_timeout": "60s",
    "idle_in_transaction_session_timeout": "60s",
    "client_encoding": "UTF8",
    "synchronous_commit": "on",
}
"""What every connection is set to; temporary tables are looked up last, so that none hides ours."""
BEGIN: Final = {
    True: "BEGIN; LOCK TABLE entries IN EXCLUSIVE MODE;"
    " SELECT current_setting('fsync'), current_setting('full_page_writes')",
    False: "BEGIN; SET LOCAL synchronous_commit = off; LOCK TABLE entries IN EXCLUSIVE MODE",
}
"""How a transaction begins that writes, by whether it is durable; together they are one message."""
CREATION: Final = 7886470
"""The advisory lock under which tables are made: any fixed number."""


class PostgreSQL:
    """The ledger of a database at `url`, with one connection, which threads take turns to use.

    With `fill`, which writes the first rows, tables are made if there are none, and `created` tells. Raises
    `UsageError` for a URL with other parameters, or without psycopg, and `LedgerError` wherever the server
    cannot be reached, is not safe, or has no ledger.
    """

    files: tuple[Path, ...] = ()

    def __init__(self, url: str, fill: Callable[[Connection], None] | None = None) -> None:
        self._target, self.place = target_of(url)
        self._psycopg = _psycopg()
        self._lock = threading.Lock()
        self._open: Any = None
        self.created = False
        if fill is not None:
            with self._told():
                self._create(fill)
        forks.register(self)

    @contextmanager
    def write(self, *, durable: bool) -> Iterator[Connection]:
        """Run one transaction alone, and commit it at the end; with `durable`, wait until it is flushed."""
        with self._lock, self._told():
            opened = self._connected()
            try:
                begun = opened.execute(BEGIN[durable], prepare=False)
                if durable:
                    _check_server(begun, self.place)
                yield _Statements(opened)
                opened.execute("COMMIT", prepare=False)
            except BaseException:
                self._undo()
                raise

    def together(self) -> AbstractContextManager[None]:
        """Do nothing: each durable transaction is flushed by itself."""
        return nullcontext()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Read in one consistent state."""
        with self._lock, self._told():
            opened = self._connected()
            try:
                opened.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                yield _Statements(opened)
            finally:
                self._undo()

    def examine(self, connection: Connection) -> None:
        """Do nothing: whether the database itself is intact is the server's task."""

    def close(self) -> None:
        """Close the connection; using the ledger again opens it again."""
        with self._lock:
            self._shut()

    def _connected(self, *, new: bool = False) -> Any:
        """Return the connection; `new` if there may be no tables yet, which are not checked then."""
        if self._open is not None and self._open.closed:
            self._open = None
        if self._open is None:
            opened = self._psycopg.connect(**self._target, autocommit=True, prepare_threshold=1)
            try:
                for name, value in SETTINGS.items():
                    opened.execute("SELECT set_config(%s, %s, false)", (name, value))
                if not new:
                    check_tables(opened, self.place)
            except BaseException:
                opened.close()
                raise
            self._open = opened
        return self._open

    def _create(self, fill: Callable[[Connection], None]) -> None:
        opened = self._connected(new=True)
        try:
            self.created = _create(opened, fill)
            check_tables(opened, self.place)
        except BaseException:
            self._shut()
            raise

    def _undo(self) -> None:
        """End a transaction without committing it; a connection that cannot is given up."""
        try:
            if self._open is not None:
                self._open.execute("ROLLBACK")
        except self._psycopg.Error:
            self._shut()

    def _shut(self) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            with suppress(self._psycopg.Error):
                opened.close()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn errors of the server and of the driver into `LedgerError`."""
        try:
            yield
        except (self._psycopg.Error, OSError, OverflowError) as error:
            text = " ".join(str(error).split()) or type(error).__name__
            problem = f"the ledger at {self.place} cannot be used: {shown(text)}"
            raise LedgerError(
                problem, hint="nothing was drawn; see to the server, and run it again"
            ) from error

    def before_fork(self) -> None:
        """Close the connection and hold the lock: two processes must not share a connection."""
        self._lock.acquire()
        self._shut()

    def after_fork(self) -> None:
        """Let go of the lock, in parent and child."""
        self._lock.release()


class _Statements:
    """A connection that takes the statements of `store.SQL`, with parameters written :name."""

    def __init__(self, opened: Any) -> None:
        self._opened = opened

    def execute(self, sql: str, parameters: Any = None, /) -> Rows:
        """Run one statement."""
        found: Rows = self._opened.execute(WRITTEN.get(sql, sql), parameters)
        return found


def _translated(sql: str) -> str:
    """Return a statement with parameters as psycopg writes them.

    >>> _translated("SELECT 1 WHERE a = :a")
    'SELECT 1 WHERE a = %(a)s'
    """
    words = (
        f"%({word[1:].rstrip(',)')})s{word[len(word.rstrip(',)')) :]}" if word.startswith(":") else word
        for word in sql.replace("(:", "( :").split(" ")
    )
    return " ".join(words).replace("( %", "(%")


WRITTEN: Final = {sql: _translated(sql) for sql in SQL.values()}


def target_of(url: str) -> tuple[dict[str, str], str]:
    """Return the server of a URL as psycopg takes it, and how messages name it: without its password.

    Raises `UsageError` for anything but a user, a password, a host, a port, a database and `OPTIONS`.

    >>> target_of("postgresql://clerk:secret@db.example/budgets")[1]
    'postgresql://db.example/budgets'
    """
    try:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, strict_parsing=True)) if parts.query else {}
        found = {"user": parts.username, "password": parts.password, "host": parts.hostname}
        found |= {"port": str(parts.port) if parts.port else None, "dbname": parts.path[1:]}
    except ValueError as error:
        raise _no_url("it cannot be read") from error
    if parts.scheme not in SCHEMES or parts.fragment:
        raise _no_url("it is no postgresql:// URL")
    if wrong := sorted(set(options) - OPTIONS):
        raise _no_url(f"it has the parameter {shown(wrong[0])}")
    target = {name: unquote(value) for name, value in found.items() if value} | options
    if "@" in parts.path:
        raise _no_url("a / in its password has to be written %2F")
    if "dbname" not in target or not all(value.isprintable() for value in target.values()):
        raise _no_url("it names no database")
    return target, f"postgresql://{shown(target.get('host', 'localhost'))}/{shown(target['dbname'])}"


def _no_url(why: str) -> UsageError:
    return UsageError(
        f"the URL of the ledger cannot be used: {why}",
        hint="postgresql://USER:PASSWORD@HOST/DATABASE; ?sslmode=verify-full or ?host=/folder may follow",
    )


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise UsageError(
            "a ledger in PostgreSQL needs psycopg", hint="pip install 'dpveil[postgres]'"
        ) from error
    return psycopg


def _check_server(begun: Any, place: str) -> None:
    """Raise `LedgerError` for a server that may forget what it commits; `begun` is the answer to `BEGIN`."""
    while begun.nextset():
        pass
    for name, value in zip(("fsync", "full_page_writes"), begun.fetchone(), strict=True):
        if value != "on":
            problem = f"the server of {place} runs with {name} off, and may forget debits"
            raise LedgerError(problem, hint=f"set {name} = on in its configuration")


def _create(opened: Any, fill: Callable[[Connection], None]) -> bool:
    """Make the tables, unless they are there; return whether they were made."""
    with opened.transaction():
        opened.execute("SELECT pg_advisory_xact_lock(%s)", (CREATION,))
        if opened.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.ledger",)).fetchone() != (None,):
            return False
        for command in (f"CREATE SCHEMA {SCHEMA}", *TABLES):
            opened.execute(command)
        fill(_Statements(opened))
    return True
