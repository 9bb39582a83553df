"""A ledger on a real PostgreSQL server: races, kills of clients and of the server, and lost connections."""

from __future__ import annotations

import os
import signal
import socket
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from budgets import ANY, cost, ended, forked, killed, race, spend

import dpveil
from dpveil.errors import (
    AlreadyPaid,
    BudgetExceeded,
    LedgerError,
    RegionsDiffer,
    ReservationLost,
    UsageError,
)
from dpveil.ledger import Ledger, Limit, store
from dpveil.ledger.amounts import Cost, Total
from dpveil.ledger.entries import Stored
from dpveil.ledger.postgres import SETTINGS
from dpveil.ledger.postgres_slots import MOST
from dpveil.ledger.postgres_statements import parsed
from dpveil.ledger.postgres_url import target_of
from dpveil.ledger.postgres_wire import Wire
from dpveil.ledger.store import Balance

psycopg: Any = pytest.importorskip("psycopg", reason="needs pip install 'dpveil[postgres]'")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it asks for a folder of the desktop when it is imported
    pgserver: Any = pytest.importorskip("pgserver", reason="needs pip install pgserver")
FILE = "0" * 63 + "1"
SYNC = b"S\0\0\0\4"


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    """A server of this worker's own; as root it runs as another user, who cannot enter pytest's folders."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with pgserver.get_server(Path(folder) / "data") as started:
            started.psql(
                "ALTER SYSTEM SET wal_writer_delay = '10s'"
            )  # what nobody waits for is not flushed soon
            started.psql("SELECT pg_reload_conf()")
            yield started


def reloaded(server: Any, name: str, value: str) -> None:
    """Let the server read its settings again, and wait until it did."""
    server.psql("SELECT pg_reload_conf()")
    with psycopg.connect(server.get_uri(), autocommit=True) as other:
        for _ in range(1000):
            if other.execute(f"SHOW {name}").fetchone() == (value,):
                break


@pytest.fixture
def url(server: Any, request: pytest.FixtureRequest) -> str:
    """The URL of a new database."""
    name = f"d{abs(hash(request.node.name))}"
    server.psql(f"CREATE DATABASE {name}")
    return str(server.get_uri(database=name))


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    with Ledger(url, create=True) as opened:
        opened.set_limit("album", Limit("pure", epsilon=3))
        yield opened


def test_it_counts_as_a_file_does(ledger: Ledger, url: str) -> None:
    assert ledger.created
    with Ledger(url, create=True) as again:
        assert not again.created
    assert ledger.files == ()
    with ledger.reserve("album/anna", cost(1), "one") as paid:
        paid.commit()
        paid.stored(FILE)
    held = ledger.reserve("album/anna", cost("1.5"), "two")
    with Ledger(url) as other:
        told: Any = other.show("album").to_json()
        assert (told["spent"]["epsilon"], told["reserved"]["epsilon"]) == (1, 1.5)
        assert other.knows("album/anna", FILE)
        with pytest.raises(AlreadyPaid):
            other.reserve("album/anna", cost(1), "one")
        with pytest.raises(BudgetExceeded, match=r"album has epsilon 0.5 left"):
            other.reserve("album", cost(1), "three")
    held.cancel()
    assert [entry.kind for entry in ledger.history()] == ["open", "limit", "debit", "stored"]
    found = ledger.check(ledger.head())
    assert (found.debits, found.files, found.unstored) == (1, 1, 0)


def test_a_photo_is_paid_from_it(ledger: Ledger) -> None:
    plan = dpveil.plan(np.zeros((16, 16), np.uint8), "dp-pix", epsilon=2, block=8)
    plan.release(ledger=ledger, subject="album", key="photo-1")
    with pytest.raises(BudgetExceeded):
        plan.release(ledger=ledger, subject="album", key="photo-2")


def test_a_photo_has_the_same_regions_on_a_server_too(ledger: Ledger, url: str) -> None:
    left, right = (
        dpveil.plan(np.eye(16, dtype=np.uint8), "fill", regions=half) for half in ("0,0,8,16", "8,0,8,16")
    )
    left.release(ledger=ledger, subject="album")
    waiting = ledger.reserve("album", cost(1), "k", covered=left.covered)
    assert right.covered is not None
    with Ledger(url) as other:
        with pytest.raises(RegionsDiffer):
            other.check_regions(right.covered)
        with pytest.raises(RegionsDiffer):
            right.release(ledger=other, subject="album/anna")
        right.release(ledger=other, subject="album/anna", other_regions=True)
    with pytest.raises(RegionsDiffer):
        waiting.commit()
    found = ledger.check()
    assert (found.debits, found.other_regions) == (2, 1)


@pytest.mark.parametrize("processes", [2, 16])
def test_one_of_many_processes_gets_the_last_unit(url: str, processes: int) -> None:
    with Ledger(url, create=True) as ledger:
        ledger.set_limit("album", Limit("pure", epsilon="0.000005"))
        spend(ledger, "0.000004")
        race(url, processes, 3)
        assert (ledger.check().debits, ledger.show("album").spent.cost.epsilon) == (2, 5)


def test_a_killed_process_draws_nothing_unpaid_and_loses_one_debit_at_most(url: str, tmp_path: Path) -> None:
    killed(url, tmp_path / "drawn", 10, seed=5)


@pytest.mark.slow
def test_a_thousand_kills(url: str, tmp_path: Path) -> None:
    killed(url, tmp_path / "drawn", 500, seed=13)


def test_a_fork_keeps_the_ledger_usable_in_both(ledger: Ledger) -> None:
    spend(ledger, "0.5")
    child = forked(lambda: spend(ledger, "0.25", key="child"))
    spend(ledger, "0.25", key="parent")
    ended([child])
    assert (ledger.check().debits, ledger.show("album").spent.cost.epsilon) == (3, 10**6)


def test_a_connection_that_ends_is_one_error_and_the_next_call_connects_again(
    ledger: Ledger, url: str
) -> None:
    spend(ledger, 1)
    held = ledger.reserve("album", cost(1), "held")
    with psycopg.connect(url, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
    with pytest.raises(LedgerError, match=r"^the ledger at postgresql://\S+ cannot be used: "):
        held.commit()
    held.commit()
    assert ledger.check().debits == 2


class Proxy:
    """A server on loopback that passes bytes on; once armed, it drops both sides after a COMMIT.

    It holds back what the client sent after that. `then` is called first, if given.
    """

    def __init__(self, url: str) -> None:
        base, _, folder = url.partition("?host=")
        self._path, self.armed = f"{folder}/.s.PGSQL.5432", False
        self.then: Any = lambda: None
        self._ends: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"postgresql://postgres@127.0.0.1:{self._listener.getsockname()[1]}"
        self.url += f"/{base.rpartition('/')[2]}?sslmode=disable"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._path)
                self._ends += [client, server]
                for one, other, asks in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._pass, args=(one, other, asks), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket, asks: bool) -> None:
        with suppress(OSError):
            while data := one.recv(1 << 16):
                if self.armed and asks:  # up to the first Sync
                    data = data.partition(SYNC)[0] + SYNC
                if self.armed and not asks and b"COMMIT\0" in data:
                    self.then()
                    break
                other.sendall(data)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._listener, *self._ends):
            each.close()


CHECKPOINTER = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'"
"""A process that a server starts anew when it recovers."""


def checkpointer(url: str) -> Any:
    """Return its number; None while the server takes no connections, or has not started it yet."""
    with suppress(psycopg.Error), psycopg.connect(url) as other:
        return other.execute(CHECKPOINTER).fetchone()
    return None


def crashed(url: str) -> None:
    """Kill a backend, at which the server ends all others and recovers from its log; wait until it has."""
    before = checkpointer(url)
    assert before is not None
    with suppress(psycopg.Error), psycopg.connect(url) as other:
        os.kill(other.info.backend_pid, signal.SIGKILL)
        other.execute("SELECT pg_sleep(10)")
    for _ in range(2400):
        if checkpointer(url) not in (None, before):
            return
        time.sleep(0.05)
    pytest.fail("the server did not recover")


def transactions(url: str) -> int:
    """Return how many transactions are open in this database, besides the one that asks."""
    with psycopg.connect(url, autocommit=True) as other:
        found = other.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()"
        ).fetchone()
    return int(found[0])


def test_a_connection_lost_between_the_commit_and_its_answer_draws_nothing(url: str) -> None:
    with Proxy(url) as proxy, Ledger(url, create=True) as direct:
        direct.set_limit("album", Limit("pure", epsilon=3))
        with Ledger(proxy.url) as ledger:
            held = ledger.reserve("album", cost(1), "k")
            proxy.armed = True
            with pytest.raises(LedgerError, match="cannot be used"):
                held.commit()
            proxy.armed = False
            assert held.draw is None, "nothing may be drawn"
            assert direct.check().debits == 1, "it was committed, and is paid for nothing"
            again = ledger.reserve("album", cost(1), "k")
            again.commit()
            assert (again.draw, direct.check().debits) == (2, 2)


def test_a_server_that_crashes_between_the_commit_and_the_flush_draws_nothing(url: str, server: Any) -> None:
    """Nothing was flushed yet, so the server forgets the debit, and whoever waits for the flush is told."""
    with Proxy(url) as proxy, Ledger(url, create=True) as direct:
        direct.set_limit("album", Limit("pure", epsilon=3))
        direct.close()
        with Ledger(proxy.url) as ledger:
            spend(ledger, 1, key="before")
            held = ledger.reserve("album", cost(1), "k")
            proxy.armed, proxy.then = True, lambda: crashed(url)
            with pytest.raises(LedgerError, match="cannot be used"):
                held.commit()
            proxy.armed = False
            assert held.draw is None, "nothing may be drawn"
            kept = direct.check().debits
            assert kept in (1, 2), "unless the server happened to flush just then"
            spend(ledger, "0.5", key="after")
            assert direct.check().debits == kept + 1


def test_a_commit_that_undoes_is_no_commit(ledger: Ledger) -> None:
    """So ends a COMMIT after an error."""
    with ledger._database._slots.one() as slot:  # type: ignore[attr-defined]
        wire = slot.wire
        with pytest.raises(psycopg.OperationalError, match="did not commit"):
            wire.ask(("BEGIN", ()), ("ROLLBACK", ()))
        assert not wire.usable
    spend(ledger, 1)
    with ledger._database._slots.one() as slot:  # type: ignore[attr-defined]
        slot.wire._raw.enter_pipeline_mode()  # as after an interrupt at the last moment
        assert not slot.wire.usable


@pytest.mark.parametrize("reads", [(), (("last", {}),)])
def test_what_a_transaction_wrote_it_reads(ledger: Ledger, reads: Any) -> None:
    with ledger._database.write(durable=True, reads=reads) as connection:
        before = store.last(connection)
        made = store.append(connection, Stored("album", "0" * 64, 1, "0" * 64), before[2])
        assert store.last(connection) == (made.number, made.head, made.time) != before


def test_a_refusal_keeps_the_connection(ledger: Ledger) -> None:
    spend(ledger, 1)
    slots = ledger._database._slots._all  # type: ignore[attr-defined]
    before = slots[0].wire
    with pytest.raises(BudgetExceeded):
        spend(ledger, 3)
    assert slots[0].wire is before is not None
    assert before.usable
    spend(ledger, 1)
    assert [slot.wire for slot in slots[1:]] == [None] * (MOST - 1)


def test_a_reservation_that_expired_makes_room(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    late = ledger.reserve("album", cost(3), "one", seconds=60)
    with pytest.raises(BudgetExceeded):
        ledger.reserve("album", cost(1), "two")
    monkeypatch.setattr(time, "time", lambda: now + 62)
    ledger.debit("album", cost(3), "two")
    with pytest.raises(ReservationLost):
        late.commit()
    assert ledger.check().debits == 1


def test_a_flush_that_does_not_find_the_entry_is_refused(ledger: Ledger) -> None:
    with (
        pytest.raises(LedgerError, match="forgot an entry that it committed"),
        ledger._database.write(durable=True) as connection,
    ):
        connection.appended = {"number": 2, "head": "0" * 64}  # type: ignore[attr-defined]
    spend(ledger, 1)


def test_a_durable_commit_is_flushed_when_it_returns(
    ledger: Ledger, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The place of the record in `FLUSH` has to be flushed, which the server's writer does rarely here."""
    told: list[Any] = []

    def note(answer: bytes | None) -> list[Any]:
        told.append(parsed(answer))
        return list(told[-1])

    monkeypatch.setattr("dpveil.ledger.postgres.parsed", note)
    with psycopg.connect(url, autocommit=True) as other:
        for number in range(20):
            spend(ledger, "0.001", key=f"{number}")
            flushed = "SELECT pg_current_wal_flush_lsn() > %s::pg_lsn"
            assert other.execute(flushed, (told[-1][-1],)).fetchone() == (True,)


def test_who_waits_for_the_disk_holds_up_nobody(ledger: Ledger, server: Any, url: str) -> None:
    """Here a flush waits for a standby that does not exist."""
    held = ledger.reserve("album", cost(1), "one")
    spend(ledger, "0.5")
    server.psql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    try:
        reloaded(server, "synchronous_standby_names", "nobody")
        thread = threading.Thread(target=held.commit)
        thread.start()
        while ledger.show("album").spent.cost.epsilon < 1_500_000:
            assert thread.is_alive()
        with Ledger(url) as other:
            for each in (ledger, other):
                reserving = threading.Thread(target=each.reserve, args=("album", cost("0.25"), "more"))
                reserving.start()
                reserving.join(60)  # for ever, if it was held up
                assert not reserving.is_alive()
        assert thread.is_alive()
        assert held.draw is None
    finally:
        server.psql("ALTER SYSTEM RESET synchronous_standby_names")
        server.psql("SELECT pg_reload_conf()")
    thread.join()
    assert held.draw == 1


def test_threads_share_a_ledger_and_none_gets_too_much(ledger: Ledger, url: str) -> None:
    ledger.set_limit("album", Limit("pure", epsilon="0.00005"))
    won: list[int] = []

    def work(me: int) -> None:
        for number in range(6):
            with suppress(BudgetExceeded):
                spend(ledger, "0.000001", key=f"{me} {number % 2}")
                won.append(me)

    threads = [threading.Thread(target=work, args=(me,)) for me in range(12)]
    for thread in threads:
        thread.start()
    ended([forked(lambda: ledger.show("album")) for _ in range(2)])
    for thread in threads:
        thread.join()
    assert (len(won), ledger.check().debits) == (50, 50)
    with psycopg.connect(url, autocommit=True) as other:
        count = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        assert other.execute(count).fetchone()[0] <= 1 + MOST


def twice(connection: Any) -> None:
    for _ in range(2):
        store.reserve(connection, store.Reserved("same", "album", "u", Total(Cost(1, 1), ANY), 10))


def interrupted(connection: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize(
    ("work", "problem"),
    [
        (lambda ours: store.keep(ours, Balance("gone", Total(), [])), "a row that was written is not there"),
        (twice, "duplicate key value"),
        (lambda ours: ours.execute("SELECT 1 / 0"), "is not there"),
        (lambda ours: store.run(ours, "free", id="a\0b"), "no text may contain a zero"),
        (interrupted, None),
    ],
)
def test_a_transaction_that_fails_leaves_nothing_behind(
    ledger: Ledger, url: str, work: Any, problem: str | None, durable: bool
) -> None:
    before = ledger.head()

    def write() -> None:
        with ledger._database.write(durable=durable) as connection:
            store.append(connection, Stored("album", "0" * 64, 1, "0" * 64), 0)
            work(connection)

    with pytest.raises(LedgerError if problem else KeyboardInterrupt, match=problem):
        write()
    assert ledger.head() == before
    assert transactions(url) == 0
    spend(ledger, 1)


@pytest.mark.parametrize("call", [1, 2])
def test_an_interrupt_while_the_server_is_waited_for_leaves_nothing_behind(
    ledger: Ledger, url: str, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    calls: list[Any] = []
    wait = Wire._wait

    def stopped(self: Wire, events: int) -> None:
        calls.append(events)
        if len(calls) == call:
            raise KeyboardInterrupt
        wait(self, events)

    def pay() -> None:
        for number in range(100):
            ledger.debit("album", cost("0.001"), f"{number}")

    with monkeypatch.context() as patch:
        patch.setattr(Wire, "_wait", stopped)
        with pytest.raises(KeyboardInterrupt):
            pay()
    for _ in range(600):
        if not transactions(url):
            break
        time.sleep(0.05)
    paid = ledger.check().debits
    spend(ledger, 1)
    assert ledger.check().debits == paid + 1


def test_reservations_are_found_by_an_index(ledger: Ledger) -> None:
    """Else every debit reads all those that were deleted since the server swept them away, once a minute."""
    with ledger._database.read() as connection:
        plan = connection.execute("EXPLAIN " + store.SQL["reserved"]).fetchall()
    assert "Index Scan" in str(plan)


def test_what_was_committed_survives_a_crash_of_the_server(ledger: Ledger, url: str) -> None:
    for number in range(4):
        spend(ledger, "0.25", key=f"{number}")
    held = ledger.reserve("album", cost(1), "held")
    crashed(url)
    with suppress(LedgerError):
        for _ in range(1000):
            ledger.head()
    found = ledger.check()
    assert (found.debits, ledger.show("album").spent.cost.epsilon) == (4, 10**6)
    with suppress(ReservationLost):  # nobody waited for it to reach the disk
        held.commit()
    assert ledger.check().debits == 4 + (held.draw is not None)


def test_a_server_that_may_forget_is_refused(ledger: Ledger, server: Any, url: str) -> None:
    server.psql("ALTER SYSTEM SET fsync = off; ")
    try:
        reloaded(server, "fsync", "off")
        forgets = "runs with fsync off, and may forget debits: set fsync = on"
        with Ledger(url) as later:
            for opened in (later, ledger):  # also one that was connected before
                before = opened.head()
                with pytest.raises(LedgerError, match=forgets):
                    spend(opened, 1)
                assert opened.head() == before
    finally:
        server.psql("ALTER SYSTEM RESET fsync")
        server.psql("SELECT pg_reload_conf()")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("UPDATE subjects SET cost = '0 0 0 0' WHERE subject = 'album'", "what 'album' spent"),
        ("DELETE FROM entries WHERE number = 3", "it is missing"),
        (
            "UPDATE entries SET text = replace(text, '1000000 ', '0 ') WHERE number = 3",
            "is not as written|does not hold",
        ),
        ("UPDATE ledger SET secret = repeat('0', 64)", "another name or secret"),
        ("UPDATE reservations SET cost = 'many'", "a reservation is not as written"),
    ],
)
def test_what_is_tampered_with_is_found(ledger: Ledger, url: str, change: str, problem: str) -> None:
    spend(ledger, 1, key="one")
    spend(ledger, 1, key="two")
    ledger.reserve("album", cost(1), "three")
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("SET search_path = dpveil_ledger")
        other.execute(change)
    with pytest.raises(LedgerError, match=problem):
        ledger.check()


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ("postgresql://h/d?passfile=/etc/passwd", "has the parameter passfile"),
        ("postgresql://h/d?service=x", "has the parameter service"),
        ("postgresql://h/d?options=-c%20x", "has the parameter options"),
        ("postgresql+psycopg://h/d", "is no postgresql"),
        ("postgresql://h:port/d", "cannot be read"),
        ("postgresql://[h/d", "cannot be read"),
        ("postgresql://h/", "names no database"),
        ("postgresql://h/a%0Ab", "names no database"),
        ("postgresql://h/d#f", "is no postgresql"),
        ("postgresql://clerk:1/2@h/d", "has to be written %2F"),
    ],
)
def test_other_urls_are_refused(wrong: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        target_of(wrong)


def test_no_message_has_the_password(ledger: Ledger) -> None:
    with pytest.raises(LedgerError) as refusal:
        Ledger("postgresql://clerk:hidden@127.0.0.1:1/budgets")
    assert "hidden" not in str(refusal.value)
    assert str(refusal.value).startswith("the ledger at postgresql://127.0.0.1/budgets cannot be used: ")
    assert "hidden" not in repr(ledger)


def test_a_database_without_a_ledger_is_not_one(url: str) -> None:
    with pytest.raises(LedgerError, match=r"there is no ledger at .*dpveil ledger limit makes one"):
        Ledger(url)


@pytest.mark.parametrize("value", ["off", "local"])
def test_commits_are_waited_for_whatever_the_server_is_set_to(
    ledger: Ledger, server: Any, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.psql(f"ALTER SYSTEM SET synchronous_commit = {value}")
    try:
        reloaded(server, "synchronous_commit", value)
        spend(ledger, 1)
        ledger.close()
        monkeypatch.delitem(SETTINGS, "synchronous_commit")
        with pytest.raises(LedgerError, match=f"synchronous_commit {value}, and may forget"):
            spend(ledger, 1)
    finally:
        server.psql("ALTER SYSTEM RESET synchronous_commit")
        server.psql("SELECT pg_reload_conf()")


@pytest.mark.parametrize(
    "change",
    [
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
        " CREATE TRIGGER t BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION f()",
        "CREATE RULE r AS ON UPDATE TO subjects DO INSTEAD NOTHING",
        "ALTER TABLE subjects ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE ledger RENAME TO kept; CREATE VIEW ledger AS SELECT * FROM kept",
        "ALTER TABLE entries SET UNLOGGED",
        "CREATE TABLE more () INHERITS (entries)",
        "CREATE TABLE more (x text)",
        "ALTER TABLE entries DROP CONSTRAINT entries_pkey",
        "ALTER TABLE subjects ADD COLUMN more text",
        "ALTER TABLE subjects ALTER COLUMN cost TYPE varchar(300)",
        "ALTER TABLE subjects ALTER COLUMN cost DROP NOT NULL",
        "DROP TABLE reservations",
        "CREATE ROLE mallory; ALTER TABLE entries OWNER TO mallory",
        "CREATE ROLE mallory; ALTER SCHEMA dpveil_ledger OWNER TO mallory",
    ],
)
def test_another_schema_or_owner_is_refused(ledger: Ledger, url: str, change: str) -> None:
    ledger.close()
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("SET search_path = dpveil_ledger")
        other.execute(change)
    try:
        for more in ({}, {"create": True}):
            with pytest.raises(LedgerError, match=r"^the schema dpveil_ledger at .*do not use it"):
                Ledger(url, **more)
    finally:
        if "mallory" in change:
            with psycopg.connect(url, autocommit=True) as other:
                other.execute("DROP OWNED BY mallory CASCADE; DROP ROLE mallory")


@pytest.mark.parametrize(
    ("grant", "who", "what"),
    [
        ("UPDATE ON subjects TO mallory", "mallory", "UPDATE"),
        ("INSERT (text) ON entries TO mallory", "mallory", "INSERT"),
        ("DELETE ON reservations TO PUBLIC", "everybody", "DELETE"),
        ("TRUNCATE ON ledger TO mallory", "mallory", "TRUNCATE"),
        ("TRIGGER ON entries TO mallory", "mallory", "TRIGGER"),
        ("CREATE ON SCHEMA dpveil_ledger TO mallory", "mallory", "CREATE"),
        ("SELECT ON entries TO mallory; GRANT USAGE ON SCHEMA dpveil_ledger TO PUBLIC", "", ""),
        ("UPDATE ON entries TO pg_monitor, current_user; REVOKE UPDATE ON entries FROM pg_monitor", "", ""),
    ],
)
def test_others_may_read_a_ledger_and_not_change_it(
    ledger: Ledger, url: str, grant: str, who: str, what: str
) -> None:
    ledger.close()
    with psycopg.connect(url, autocommit=True) as root:
        root.execute(f"SET search_path = dpveil_ledger; CREATE ROLE mallory; GRANT {grant}")
        try:
            if not who:
                with Ledger(url) as again:
                    assert again.check().entries == 2
                return
            for more in ({}, {"create": True}):
                with pytest.raises(LedgerError, match=f"can be changed by {who}, who may {what}: revoke it"):
                    Ledger(url, **more)
        finally:
            root.execute("DROP OWNED BY mallory; DROP ROLE mallory")


def test_tables_that_others_may_change_from_their_beginning_are_no_ledger(url: str) -> None:
    """Whoever may alter default privileges can grant what does not exist yet."""
    with psycopg.connect(url, autocommit=True) as root:
        root.execute("CREATE ROLE mallory; ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO mallory")
        try:
            with pytest.raises(LedgerError, match="can be changed by mallory, who may DELETE"):
                Ledger(url, create=True)
        finally:
            root.execute("DROP OWNED BY mallory; DROP ROLE mallory")


def test_a_schema_that_somebody_made_beforehand_is_no_place_for_a_ledger(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("CREATE SCHEMA dpveil_ledger")
    with pytest.raises(LedgerError, match=r"schema .*dpveil_ledger.* already exists"):
        Ledger(url, create=True)
    with pytest.raises(LedgerError, match="has other tables than a ledger"):
        Ledger(url)


def test_a_user_without_rights_of_a_superuser_has_a_ledger_of_their_own(url: str) -> None:
    base, _, query = url.partition("?")
    with psycopg.connect(url, autocommit=True) as root:
        root.execute("CREATE ROLE clerk LOGIN")
        root.execute(f"GRANT CREATE ON DATABASE {base.rpartition('/')[2]} TO clerk")
        own = f"postgresql://clerk@/{base.rpartition('/')[2]}?{query}"
        try:
            with Ledger(own, create=True) as ledger:
                ledger.set_limit("album", Limit("pure", epsilon=3))
                spend(ledger, 1)
            root.execute(
                "GRANT SELECT ON ALL TABLES IN SCHEMA dpveil_ledger TO PUBLIC"
            )  # lists the owner, too
            with Ledger(own) as ledger:
                spend(ledger, 1, key="two")
            with pytest.raises(LedgerError, match="belongs to another user"):
                Ledger(url)
        finally:
            root.execute("DROP OWNED BY clerk CASCADE; DROP ROLE clerk")
