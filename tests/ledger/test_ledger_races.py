"""Processes and threads that race for the last unit, are killed, or fork: nothing unpaid, double or lost."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from budgets import cost, ended, forked, made, spend, url_of

from dpveil.errors import BudgetExceeded, ReservationLost
from dpveil.ledger import Ledger

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def race(path: Path, processes: int, tries: int) -> None:
    """Let processes, each with a ledger of its own, begin together; half of them share one key."""
    ready, go = os.pipe(), os.pipe()

    def work(me: int) -> None:
        with Ledger(url_of(path)) as ledger:
            os.write(ready[1], b"x")
            os.close(go[1])
            os.read(go[0], 1)
            for number in range(tries):
                with suppress(BudgetExceeded):
                    spend(ledger, "0.000001", key="same" if me % 2 else f"{me} {number}")
                    os.write(ready[1], b"w")

    children = [forked(partial(work, me)) for me in range(processes)]
    for _ in children:
        os.read(ready[0], 1)
    for end in (go[1], go[0], ready[1]):
        os.close(end)
    ended(children)
    won = os.read(ready[0], 1000).count(b"w")
    os.close(ready[0])
    assert won == 1


@pytest.mark.parametrize("processes", [2, 16])
def test_one_of_many_processes_gets_the_last_unit(tmp_path: Path, processes: int) -> None:
    with made(tmp_path / "budget.db", "0.000005") as ledger:
        spend(ledger, "0.000004")
        race(tmp_path / "budget.db", processes, 3)
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


def draw(path: Path, drawn: Path, me: int) -> None:
    """Pay, note every draw as soon as it was paid for, and note its file, until killed."""
    ledger, out = Ledger(url_of(path)), os.open(drawn, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for number in range(10**6):
        paid: Any = ledger.reserve(f"album/{me % 3}", cost("0.000001"), f"{me} {number}")
        paid.commit()
        os.write(out, f"{paid.draw} {paid._unit}\n".encode())
        paid.stored(paid._unit)


def killed(tmp_path: Path, times: int, seed: int) -> None:
    """Kill two processes that draw, `times` times at random moments, and compare draws with the ledger."""
    path, drawn, chance = tmp_path / "budget.db", tmp_path / "drawn", random.Random(seed)  # noqa: S311
    made(path, 1000).close()
    for number in range(times):
        children = [forked(partial(draw, path, drawn, 2 * number + other)) for other in range(2)]
        time.sleep(chance.uniform(0.005, 0.05))
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    with Ledger(url_of(path)) as ledger:
        found = ledger.check()
        draws = [tuple(line.split()) for line in drawn.read_text().splitlines()]
        debited = [(str(e.event.draw), e.event.unit) for e in ledger.history() if e.kind == "debit"]
        spent = ledger.show("album").spent.cost.epsilon
    assert len(draws) > times
    assert len(set(draws)) == len(draws)
    assert len(set(debited)) == len(debited) == spent, "a debit was lost or counted twice"
    assert set(draws) <= set(debited), "something was drawn and not paid for"
    assert len(debited) - len(draws) <= 2 * times, "a crash cost more than one debit"
    assert found.unstored <= 2 * times


def test_a_killed_process_draws_nothing_unpaid_and_loses_one_debit_at_most(tmp_path: Path) -> None:
    killed(tmp_path, 25, seed=7)


@pytest.mark.slow
def test_a_thousand_kills(tmp_path: Path) -> None:
    killed(tmp_path, 500, seed=11)


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
