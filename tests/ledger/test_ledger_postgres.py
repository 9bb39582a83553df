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
from budgets import cost, ended, forked, killed, race, spend

import dpveil
from dpveil.errors import (
    AlreadyPaid,
    BudgetExceeded,
    LedgerError,
    RegionsDiffer,
    ReservationLost,
    UsageError,
)
from dpveil.ledger import Ledger, Limit
from dpveil.ledger.postgres import target_of

psycopg: Any = pytest.importorskip("psycopg", reason="needs pip install 'dpveil[postgres]'")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it asks for a folder of the desktop when it is imported
    pgserver: Any = pytest.importorskip("pgserver", reason="needs pip install pgserver")
FILE = "0" * 63 + "1"


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    """A server of this worker's own; as root it runs as another user, who cannot enter pytest's folders."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with pgserver.get_server(Path(folder) / "data") as started:
            yield started


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
    with Ledger(url) as other:
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


class Wire:
    """A server on loopback that passes bytes on, and drops both sides once a COMMIT went through."""

    def __init__(self, path: str) -> None:
        self._path, self.armed, self.cut = path, False, False
        self._ends: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
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
                if not asks and self.cut:
                    break  # the server answered, so it has committed
                self.cut = self.cut or (asks and self.armed and b"COMMIT" in data)
                other.sendall(data)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        for each in (self._listener, *self._ends):
            each.close()


def test_a_connection_lost_between_the_commit_and_its_answer_draws_nothing(url: str) -> None:
    base, _, folder = url.partition("?host=")
    wire = Wire(f"{folder}/.s.PGSQL.5432")
    try:
        name = base.rpartition("/")[2]
        with Ledger(url, create=True) as direct:
            direct.set_limit("album", Limit("pure", epsilon=3))
            with Ledger(f"postgresql://postgres@127.0.0.1:{wire.port}/{name}?sslmode=disable") as ledger:
                held = ledger.reserve("album", cost(1), "k")
                wire.armed = True
                with pytest.raises(LedgerError, match="cannot be used"):
                    held.commit()
                wire.armed = wire.cut = False
                assert held.draw is None, "nothing may be drawn"
                assert direct.check().debits == 1, "it was committed, and is paid for nothing"
                again = ledger.reserve("album", cost(1), "k")
                again.commit()
                assert (again.draw, direct.check().debits) == (2, 2)
    finally:
        wire.close()


def test_what_was_committed_survives_a_crash_of_the_server(ledger: Ledger, url: str) -> None:
    """When a backend is killed, the server ends all others and recovers from its log."""
    for number in range(4):
        spend(ledger, "0.25", key=f"{number}")
    held = ledger.reserve("album", cost(1), "held")
    with suppress(psycopg.Error), psycopg.connect(url) as other:
        os.kill(other.info.backend_pid, signal.SIGKILL)
        other.execute("SELECT 1")
    with suppress(LedgerError):
        for _ in range(1000):
            ledger.head()
    for _ in range(600):
        with suppress(psycopg.Error), psycopg.connect(url):
            break
        time.sleep(0.05)
    found = ledger.check()
    assert (found.debits, ledger.show("album").spent.cost.epsilon) == (4, 10**6)
    with suppress(ReservationLost):  # nobody waited for it to reach the disk
        held.commit()
    assert ledger.check().debits == 4 + (held.draw is not None)


def test_a_server_that_may_forget_is_refused(ledger: Ledger, server: Any, url: str) -> None:
    server.psql("ALTER SYSTEM SET fsync = off; ")
    server.psql("SELECT pg_reload_conf()")
    try:
        with psycopg.connect(url, autocommit=True) as other:
            for _ in range(1000):
                if other.execute("SHOW fsync").fetchone() == ("off",):
                    break
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


def test_commits_are_waited_for_whatever_the_server_is_set_to(ledger: Ledger, server: Any) -> None:
    server.psql("ALTER SYSTEM SET synchronous_commit = off")
    try:
        server.psql("SELECT pg_reload_conf()")
        with psycopg.connect(server.get_uri(), autocommit=True) as other:
            for _ in range(1000):
                if other.execute("SHOW synchronous_commit").fetchone() == ("off",):
                    break
        for durable, wanted in ((True, "on"), (False, "off")):
            with ledger._database.write(durable=durable) as connection:
                found = connection.execute("SELECT current_setting('synchronous_commit')").fetchone()
            assert found == (wanted,)
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
            with pytest.raises(LedgerError, match="belongs to another user"):
                Ledger(url)
        finally:
            root.execute("DROP OWNED BY clerk CASCADE; DROP ROLE clerk")
