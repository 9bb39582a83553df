"""Processes and threads that race for the last unit, are killed, or fork: nothing unpaid, double or lost."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from budgets import cost, ended, forked, killed, race, spend

from dpveil.errors import BudgetExceeded, LedgerError, ReservationLost
from dpveil.ledger import Ledger, Limit, database

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def made(url: str, limit: Any = 3) -> Ledger:
    ledger = Ledger(url, create=True)
    ledger.set_limit("album", Limit("pure", epsilon=limit))
    return ledger


@pytest.mark.parametrize("processes", [2, 20])
def test_one_of_many_processes_gets_the_last_unit(url: str, processes: int) -> None:
    with made(url, "0.000005") as ledger:
        spend(ledger, "0.000004")
        race(url, processes, 3)
        found = ledger.check()
        assert (found.debits, ledger.show("album").spent.cost.epsilon) == (2, 5)


def test_processes_that_open_and_close_a_ledger_do_not_disturb_each_other(url: str) -> None:
    """The last connection that closes removes SQLite's log, while others may be opening it."""
    with made(url):
        pass

    def work(me: int) -> None:
        for number in range(20):
            with Ledger(url) as ledger:
                ledger.debit("album", cost("0.000001"), f"{me} {number}")

    ended([forked(partial(work, me)) for me in range(4)])
    with Ledger(url) as ledger:
        assert ledger.check().debits == 80


def test_a_killed_process_draws_nothing_unpaid_and_loses_one_debit_at_most(url: str, tmp_path: Path) -> None:
    killed(url, tmp_path / "drawn", 15, seed=7)


@pytest.mark.slow
def test_hundreds_of_kills(url: str, tmp_path: Path) -> None:
    killed(url, tmp_path / "drawn", 300, seed=11)


def test_a_fork_keeps_the_ledger_usable_in_both(url: str) -> None:
    with made(url, "0.00003") as ledger:
        spend(ledger, "0.000001")
        held = ledger.reserve("album", cost("0.000001"), "before")

        def work(me: int) -> None:
            for number in range(5):
                spend(ledger, "0.000001", key=f"{me} {number}")

        children = []
        for me in range(3):
            children.append(forked(partial(work, me)))
            spend(ledger, "0.000001")
        ended(children)
        held.commit()
        assert ledger.check().debits == 1 + 3 * 5 + 3 + 1
        for _ in range(10):
            spend(ledger, "0.000001")
        with pytest.raises(BudgetExceeded):
            spend(ledger, "0.000001")


def test_no_connection_is_open_during_a_fork(url: str, tmp_path: Path) -> None:
    """SQLite's locks belong to the process: with an open connection, a child would believe to hold them."""
    with made(url) as ledger:

        def look() -> None:
            assert ledger._database._connection is None
            opened = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]  # noqa: PTH208
            assert not any(str(tmp_path) in name for name in opened)

        ended([forked(look)])
        with pytest.raises(LedgerError), ledger._write():
            ended([forked(look)])
        assert ledger.check().debits == 0


def test_of_two_with_one_key_the_first_commits_nothing_after_the_second_reserved(url: str) -> None:
    with made(url) as one, Ledger(url) as other:
        first: Any = one.reserve("album", cost(2), "k")
        second: Any = other.reserve("album", cost(2), "k")
        with pytest.raises(ReservationLost):
            first.commit()
        second.commit()
        assert one.check().debits == 1


def interrupted(connection: Any) -> None:
    raise KeyboardInterrupt


def refused(connection: Any) -> None:
    raise BudgetExceeded(subject="album", asked="1", left="0", unit="epsilon")


WRONG: dict[str, tuple[Callable[[Any], object], type[BaseException]]] = {
    "a wrong statement": (lambda connection: connection.execute("SELECT nothing"), LedgerError),
    "an interrupt": (interrupted, KeyboardInterrupt),
    "a refusal": (refused, BudgetExceeded),
    "a lost connection": (lambda connection: connection.close(), LedgerError),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_transaction_that_fails_leaves_nothing_behind(url: str, wrong: str) -> None:
    work, error = WRONG[wrong]
    with made(url) as ledger:
        before = ledger.head()

        def fails() -> None:
            with ledger._write() as tables:
                tables.free("nothing")
                work(ledger._database._connection)

        with pytest.raises(error):
            fails()
        assert ledger.head() == before
        spend(ledger, 1)
        assert ledger.check().debits == 1


def test_tables_of_another_version_are_refused_and_older_ones_brought_up(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with made(url) as ledger:
        spend(ledger, 1)
    newer = (*database.MIGRATIONS, ("ALTER TABLE subjects ADD COLUMN more TEXT",))
    with monkeypatch.context() as patch:
        patch.setattr(database, "MIGRATIONS", newer)
        ended([forked(lambda: Ledger(url).close()) for _ in range(4)])
        with Ledger(url) as ledger:
            assert ledger.check().debits == 1
            with ledger._database.read() as connection:
                assert connection.execute("SELECT number FROM version").fetchall() == [(2,)]
                assert connection.execute("SELECT more FROM subjects").fetchall() == [(None,)]
    for create in (True, False):
        with pytest.raises(LedgerError, match="other tables than the ledger of this version of dpveil"):
            Ledger(url, create=create)
