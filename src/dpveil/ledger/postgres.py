"""A ledger in PostgreSQL: its tables in a schema of their own, one writer at a time, and forks.

*One writer.* A transaction that writes first locks the entries against other writers, for each entry holds
the hash of the one before. Readers are not held up: they see one consistent state.

*Durability.* Transactions commit one at a time without waiting for the disk, which lets the next one begin;
then each durable one waits until the server has flushed its log, for all that committed before it at once.
It does so by a second transaction on the same connection, `FLUSH`, which looks for the entry of the first one
and writes a record of its own to the log. PostgreSQL flushes the log up to that record before it answers. The
first commit was visible to it, so its record precedes. So what was written with `durable` survives a loss of
power once `write` ends. If a server crashed in between and forgot the entry, it is not found. A server that
does not flush is refused: both transactions read its settings, which may change at any time.

*A lost connection* ends `write` with `LedgerError`, and nothing is drawn. If it is lost after the commit,
that debit is paid for nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dpveil.errors import LedgerError, UsageError
from dpveil.io.names import shown
from dpveil.ledger import forks
from dpveil.ledger.postgres_slots import Slots
from dpveil.ledger.postgres_statements import Statements, asked, parsed
from dpveil.ledger.postgres_tables import SCHEMA, TABLES, check_tables
from dpveil.ledger.postgres_url import target_of
from dpveil.ledger.postgres_wire import Wire
from dpveil.ledger.store import Connection, Read, damaged

if TYPE_CHECKING:
    from collections.abc import Callable

SETTINGS: Final = {
    "search_path": f"{SCHEMA}, pg_temp",
    "lock_timeout": "30s",
    "statement_timeout": "60s",
    "idle_in_transaction_session_timeout": "60s",
    "client_encoding": "UTF8",
    "synchronous_commit": "on",
    "enable_seqscan": "off",
    "jit": "off",
}
"""What every connection is set to. Temporary tables are looked up last, so that none hides ours; rows are
looked up by indexes, which skip the reservations that were deleted and not yet swept away."""
PATIENT: Final = {"connect_timeout": "30", "keepalives_idle": "10", "tcp_user_timeout": "90000"}
"""How long a connection waits for a server that does not answer; a URL may say otherwise."""
SAFE: Final = ("current_setting('fsync')", "current_setting('full_page_writes')")
"""Settings without which a server may forget what it committed."""
BEGIN: Final = (
    ("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", ()),
    ("LOCK TABLE entries IN EXCLUSIVE MODE", ()),
)
FIRST: Final = (*SAFE, "set_config('synchronous_commit', 'off', true)")
"""What a transaction that writes asks first, with everything that it is going to read."""
COMMIT: Final = ("COMMIT", ())
FLUSH: Final = (
    *SAFE,
    "current_setting('synchronous_commit')",
    "(SELECT count(*) FROM entries WHERE number = $1 AND head = $2)",
    "pg_logical_emit_message(true, 'dpveil', '')::text",
)
"""A transaction that writes to the log, and to nothing else, and whose commit the server flushes."""
CREATION: Final = 7886470
"""The advisory lock under which tables are made: any fixed number."""


class PostgreSQL:
    """The ledger of a database at `url`, with a few connections: threads wait for the disk together.

    With `fill`, which writes the first rows, tables are made if there are none, and `created` tells. Raises
    `UsageError` for a URL with other parameters, or without psycopg, and `LedgerError` wherever the server
    cannot be reached, is not safe, or has no ledger.
    """

    files: tuple[Path, ...] = ()

    def __init__(self, url: str, fill: Callable[[Connection], None] | None = None) -> None:
        self._target, self.place = target_of(url)
        self._psycopg = _psycopg()
        self._turn, self._slots = threading.Lock(), Slots()
        self.created = False
        if fill is not None:
            with self._told():
                self._create(fill)
        forks.register(self)

    @contextmanager
    def write(self, *, durable: bool, reads: Sequence[Read] = ()) -> Iterator[Connection]:
        """Run one transaction alone, and commit it at the end; with `durable`, wait until it is flushed.

        Threads take turns until the commit is sent. `reads` are what it reads before it writes.
        """
        with _Turn(self._turn) as turn, self._used() as wire:
            statements = self._begun(wire, reads, durable)
            try:
                yield statements
            except BaseException:
                wire.undo()
                raise
            self._commit(wire, statements, turn, durable)

    def _begun(self, wire: Wire, reads: Sequence[Read], durable: bool) -> Statements:
        """Begin a transaction that writes, and read everything at once."""
        *_, answer = wire.ask(*BEGIN, asked(FIRST, reads))
        fsync, full_page_writes, _, *found = parsed(answer)
        if durable:
            self._check_settings(fsync=fsync, full_page_writes=full_page_writes)
        return Statements(wire, reads, found)

    def _commit(self, wire: Wire, statements: Statements, turn: _Turn, durable: bool) -> None:
        """Send what is to be written and the commit, let others begin, and wait for both, or for the disk."""
        number, head = statements.appended["number"], statements.appended["head"]
        flush, _ = asked(FLUSH, ())
        wire.send([*statements.waiting, COMMIT], *([[(flush, (number, head))]] if durable else []))
        turn.end()
        *_, answer = wire.receive()
        if durable:
            fsync, full_page_writes, synchronous, there, _ = parsed(answer)
            self._check_settings(
                fsync=fsync, full_page_writes=full_page_writes, synchronous_commit=synchronous
            )
            if there != (number > 0):
                raise damaged("the server forgot an entry that it committed")

    def together(self) -> AbstractContextManager[None]:
        """Do nothing: each durable transaction is flushed by itself."""
        return nullcontext()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Read in one consistent state."""
        with self._used() as wire:
            wire.connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                yield Statements(wire)
            finally:
                wire.undo()

    def examine(self, connection: Connection) -> None:
        """Do nothing: whether the database itself is intact is the server's task."""

    def close(self) -> None:
        """Close the connections; using the ledger again opens new ones."""
        self.before_fork()
        self.after_fork()

    @contextmanager
    def _used(self) -> Iterator[Wire]:
        """Hold a connection; it is closed unless it is left usable."""
        with self._told(), self._slots.one() as slot:
            try:
                if slot.wire is None or not slot.wire.usable:
                    slot.shut()
                    slot.wire = self._connected()
                yield slot.wire
            finally:
                if slot.wire is not None and not slot.wire.usable:
                    slot.shut()

    def _connected(self, *, new: bool = False) -> Wire:
        """Return a new connection; `new` if there may be no tables yet, which are not checked then."""
        opened = self._psycopg.connect(**PATIENT | self._target, autocommit=True, prepare_threshold=1)
        try:
            for name, value in SETTINGS.items():
                opened.execute("SELECT set_config(%s, %s, false)", (name, value))
            if not new:
                check_tables(opened, self.place)
        except BaseException:
            opened.close()
            raise
        return Wire(self._psycopg, opened)

    def _create(self, fill: Callable[[Connection], None]) -> None:
        wire = self._connected(new=True)
        with wire.connection:
            self.created = _create(wire, fill)
            check_tables(wire.connection, self.place)

    def _check_settings(self, **found: str) -> None:
        """Raise `LedgerError` for a server that may forget what it commits."""
        for name, value in found.items():
            if value != "on":
                problem = f"the server of {self.place} runs with {name} {value}, and may forget debits"
                raise LedgerError(problem, hint=f"set {name} = on in its configuration")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn errors of the server and of the driver into `LedgerError`."""
        try:
            yield
        except self._psycopg.errors.DivisionByZero as error:  # see `postgres_statements`
            raise damaged("a row that was written is not there") from error
        except (self._psycopg.Error, OSError, OverflowError, UnicodeError) as error:
            text = " ".join(str(error).split()) or type(error).__name__
            problem = f"the ledger at {self.place} cannot be used: {shown(text)}"
            raise LedgerError(
                problem, hint="nothing was drawn; see to the server, and run it again"
            ) from error

    def before_fork(self) -> None:
        """Close the connections and hold the locks: two processes must not share a connection."""
        self._turn.acquire()
        self._slots.hold()

    def after_fork(self) -> None:
        """Let go of the locks, in parent and child."""
        self._slots.free()
        self._turn.release()


class _Turn:
    """The right to write, which ends once."""

    def __init__(self, lock: threading.Lock) -> None:
        self._lock, self._mine = lock, False

    def __enter__(self) -> _Turn:
        self._mine = self._lock.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Let another thread write."""
        if self._mine:
            self._mine = False
            self._lock.release()


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise UsageError(
            "a ledger in PostgreSQL needs psycopg", hint="pip install 'dpveil[postgres]'"
        ) from error
    if not psycopg.Pipeline.is_supported():
        hint = "pip install 'dpveil[postgres]', which brings a newer one"
        raise UsageError("a ledger in PostgreSQL needs libpq 14 or newer", hint=hint)
    return psycopg


def _create(wire: Wire, fill: Callable[[Connection], None]) -> bool:
    """Make the tables, unless they are there; return whether they were made."""
    opened = wire.connection
    with opened.transaction():
        opened.execute("SELECT pg_advisory_xact_lock(%s)", (CREATION,))
        if opened.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.ledger",)).fetchone() != (None,):
            return False
        for command in (f"CREATE SCHEMA {SCHEMA}", *TABLES):
            opened.execute(command)
        statements = Statements(wire)
        fill(statements)
        statements.send()
    return True
