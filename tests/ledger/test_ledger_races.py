"""Processes and threads that race for the last unit, are killed, or fork: nothing unpaid, double or lost."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from budgets import cost, ended, forked, killed, made, race, spend, url_of

from dpveil.errors import BudgetExceeded, LedgerError, ReservationLost
from dpveil.ledger import Ledger, Limit

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.mark.parametrize("processes", [2, 16])
def test_one_of_many_processes_gets_the_last_unit(tmp_path: Path, processes: int) -> None:
    with made(tmp_path / "budget.db", "0.000005") as ledger:
        spend(ledger, "0.000004")
        race(url_of(tmp_path / "budget.db"), processes, 3)
        found = ledger.check()
        assert (found.debits, ledger.show("album").spent.cost.epsilon) == (2, 5)


def test_threads_share_a_ledger_and_none_gets_too_much(tmp_path: Path) -> None:
    with made(tmp_path / "budget.db", "0.00005") as ledger:
        won: list[int] = []

        def work(me: int) -> None:
            for number in range(10):
                try:
                    spend(ledger, "0.000001", key=f"{me} {number % 2}")
                    won.append(me)
                except BudgetExceeded:
                    pass

        threads = [threading.Thread(target=work, args=(me,)) for me in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 50
        assert ledger.check().debits == 50


def test_of_many_that_make_a_ledger_all_get_the_same(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"

    def work(me: int) -> None:
        with Ledger(url_of(path), create=True) as ledger:
            ledger.set_limit(f"a{me}", Limit("pure", epsilon=1))

    ended([forked(partial(work, me)) for me in range(8)])
    with Ledger(url_of(path)) as ledger:
        assert ledger.subjects() == [f"a{me}" for me in range(8)]
        ledger.check()
    assert [place.name for place in tmp_path.iterdir()] == ["budget.db"]


def test_a_killed_process_draws_nothing_unpaid_and_loses_one_debit_at_most(tmp_path: Path) -> None:
    killed(url_of(tmp_path / "budget.db"), tmp_path / "drawn", 25, seed=7)


@pytest.mark.slow
def test_a_thousand_kills(tmp_path: Path) -> None:
    killed(url_of(tmp_path / "budget.db"), tmp_path / "drawn", 500, seed=11)


def test_a_fork_keeps_the_ledger_usable_in_both(tmp_path: Path) -> None:
    with made(tmp_path / "budget.db", "0.00003") as ledger:
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


def test_no_descriptor_of_the_ledger_is_open_during_a_fork(tmp_path: Path) -> None:
    """SQLite's locks belong to the process: with an open connection, a child would believe to hold them."""
    with made(tmp_path / "budget.db") as ledger:
        spend(ledger, 1)

        def look() -> None:
            opened = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]  # noqa: PTH208
            assert not any(str(tmp_path) in name for name in opened)

        ended([forked(look)])
        spend(ledger, 1)


def test_of_two_with_one_key_the_first_commits_nothing_after_the_second_reserved(tmp_path: Path) -> None:
    with made(tmp_path / "budget.db") as one, Ledger(url_of(tmp_path / "budget.db")) as other:
        first: Any = one.reserve("album", cost(2), "k")
        second: Any = other.reserve("album", cost(2), "k")
        with pytest.raises(ReservationLost):
            first.commit()
        second.commit()
        assert one.check().debits == 1


def copying(path: Path, name: str, times: int, out: int) -> None:
    """Pay while a thread copies the folder of the ledger, which drops SQLite's locks of this process."""
    ended = threading.Event()

    def copy() -> None:
        while not ended.is_set():
            for end in ("", "-wal", "-shm"):
                with suppress(OSError):
                    Path(f"{path}{end}").read_bytes()

    with Ledger(url_of(path)) as ledger:
        ledger.head()
        thread = threading.Thread(target=copy)
        thread.start()
        try:
            for number in range(times):
                with suppress(LedgerError):
                    spend(ledger, "0.000001", key=f"{name} {number}")
                    os.write(out, b"w")
        finally:
            ended.set()
            thread.join()


def test_a_thread_that_copies_the_ledger_loses_no_debit(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    read, write = os.pipe()
    with made(path, 1):
        pass
    children = [forked(partial(copying, path, f"{me}", 80, write)) for me in range(3)]
    ended(children)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        paid = len(pipe.read())
    with Ledger(url_of(path)) as ledger:
        assert ledger.check().debits >= paid > 0
