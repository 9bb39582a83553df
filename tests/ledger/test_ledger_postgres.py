"""A ledger on a real PostgreSQL server: races, kills of clients and of the server, and lost connections."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from budgets import cost, spend

import dpveil
from dpveil.errors import AlreadyPaid, BudgetExceeded, LedgerError, RegionsDiffer
from dpveil.ledger import Ledger, Limit

psycopg: Any = pytest.importorskip("psycopg", reason="needs pip install 'dpveil[postgres]'")
FILE = "0" * 63 + "1"


@pytest.fixture
def url(server_url: str) -> str:
    return server_url


def reloaded(server: Any, name: str, value: str) -> None:
    """Let the server read its settings again, and wait until it did."""
    server.psql("SELECT pg_reload_conf()")
    with psycopg.connect(server.get_uri(), autocommit=True) as other:
        for _ in range(1000):
            if other.execute(f"SHOW {name}").fetchone() == (value,):
                break


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


def test_a_photo_has_the_same_regions_on_a_server_too(ledger: Ledger, url: str) -> None:
    left, right = (
        dpveil.plan(np.eye(16, dtype=np.uint8), "fill", regions=half) for half in ("0,0,8,16", "8,0,8,16")
    )
    left.release(ledger=ledger, subject="album")
    waiting = ledger.reserve("album", cost(1), "k", covered=left.coverage)
    assert right.coverage is not None
    with Ledger(url) as other:
        with pytest.raises(RegionsDiffer):
            other.check_regions(right.coverage)
        with pytest.raises(RegionsDiffer):
            right.release(ledger=other, subject="album/anna")
        right.release(ledger=other, subject="album/anna", other_regions=True)
    with pytest.raises(RegionsDiffer):
        waiting.commit()
    found = ledger.check()
    assert (found.debits, found.other_regions) == (2, 1)


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
    """A server on loopback that passes bytes on; once armed, it drops both sides after a COMMIT."""

    def __init__(self, url: str) -> None:
        base, _, folder = url.partition("?host=")
        self._path, self.armed = f"{folder}/.s.PGSQL.5432", False
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
                for one, other in ((client, server), (server, client)):
                    threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(1 << 16):
                if self.armed and b"C\0\0\0\x0bCOMMIT\0" in data:  # the answer, and not the question
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


def test_what_was_committed_survives_a_crash_of_the_server_and_the_rest_is_undone(
    ledger: Ledger, url: str
) -> None:
    for number in range(4):
        spend(ledger, "0.25", key=f"{number}")
    with pytest.raises(LedgerError), ledger._database.write() as connection:  # noqa: PT012
        connection.execute("DELETE FROM entries")
        crashed(url)
    with suppress(LedgerError):
        for _ in range(1000):
            ledger.head()
    spend(ledger, "0.25", key="after")
    assert (ledger.check().debits, ledger.show("album").spent.cost.epsilon) == (5, 1_250_000)


def test_commits_are_waited_for_whatever_the_server_is_set_to(ledger: Ledger, server: Any, url: str) -> None:
    """What is flushed is asked right after, while the server's own writer waits for 10 s."""
    server.psql("ALTER SYSTEM SET synchronous_commit = off")
    try:
        reloaded(server, "synchronous_commit", "off")
        ledger.close()
        with psycopg.connect(url, autocommit=True) as other:
            for number in range(20):
                before = other.execute("SELECT pg_current_wal_insert_lsn()").fetchone()
                spend(ledger, "0.001", key=f"{number}")
                flushed = "SELECT pg_current_wal_flush_lsn() > %s::pg_lsn"
                assert other.execute(flushed, before).fetchone() == (True,)
    finally:
        server.psql("ALTER SYSTEM RESET synchronous_commit")
        server.psql("SELECT pg_reload_conf()")


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


def test_a_server_that_may_forget_is_refused(ledger: Ledger, server: Any, url: str) -> None:
    server.psql("ALTER SYSTEM SET fsync = off; ")
    try:
        reloaded(server, "fsync", "off")
        ledger.close()
        with pytest.raises(LedgerError, match="may forget debits: fsync is off: set fsync = on"):
            spend(ledger, 1)
    finally:
        server.psql("ALTER SYSTEM RESET fsync")
        server.psql("SELECT pg_reload_conf()")


def test_no_message_has_the_password(ledger: Ledger) -> None:
    with pytest.raises(LedgerError) as refusal:
        Ledger("postgresql://clerk:hidden@127.0.0.1:1/budgets")
    assert "hidden" not in str(refusal.value)
    assert str(refusal.value).startswith("the ledger at postgresql://127.0.0.1/budgets cannot be used: ")
    assert "hidden" not in repr(ledger)


def test_a_database_without_a_ledger_is_not_one(url: str) -> None:
    with pytest.raises(LedgerError, match=r"there is no ledger at .*dpveil ledger limit makes one"):
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
            root.execute("CREATE ROLE other LOGIN; GRANT ALL ON SCHEMA dpveil_ledger TO other")
            root.execute("GRANT ALL ON ALL TABLES IN SCHEMA dpveil_ledger TO other")
            with pytest.raises(LedgerError, match="belongs to another user"):
                Ledger(own.replace("clerk", "other"))
        finally:
            root.execute("DROP OWNED BY clerk, other CASCADE; DROP ROLE clerk; DROP ROLE IF EXISTS other")
