"""Calls in order and in groups: a group of the results, and one of the ledger, is one transaction."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.errors import LedgerError
from dpveil.ledger import Ledger, Limit
from dpveil.service.batching import MOST, Batches, Call, one_by_one
from dpveil.service.budget import Budget
from dpveil.service.keys import LOCAL
from dpveil.service.problems import KeyReused
from dpveil.service.settings import Limits
from dpveil.service.store import DONE, KEPT, Store

RELEASE = {"certificate": "{}", "notes": "[]", "format": "png", "sha256": "0"}
COST = Guarantee(kind="pure", epsilon="1", relation=Relation("any-image"), scope=Scope("a photo"))


def test_calls_that_wait_are_one_group_in_their_order() -> None:
    groups: list[int] = []

    def together(calls: Sequence[Call]) -> None:
        groups.append(len(calls))
        one_by_one(calls)

    async def runs() -> None:
        line, order = Batches("test", together), []
        free = threading.Event()
        line.submit(free.wait)
        while not groups:
            await asyncio.sleep(0.01)
        asked = [asyncio.ensure_future(line.run(order.append, number)) for number in range(MOST + 1)]
        fails = asyncio.ensure_future(line.run(int, "no number"))
        await asyncio.sleep(0)
        assert not line.idle
        asked[3].cancel()
        free.set()
        with pytest.raises(ValueError, match="no number"):
            await fails
        await asyncio.gather(*asked, return_exceptions=True)
        assert line.idle
        line.submit(order.append, "last")
        line.end(lambda: order.append("end"))
        assert order == [*range(MOST + 1), "last", "end"]
        with pytest.raises(ZeroDivisionError):
            Batches("unused").end(lambda: 1 // 0)

    asyncio.run(runs())
    assert groups == [1, MOST, 2, 1]


@pytest.fixture(params=[True, False])
def store(request: Any, tmp_path: Path) -> Iterator[Store]:
    made = Store(":memory:" if request.param else tmp_path / "results", Limits())
    yield made
    made.close()


def test_a_group_fails_for_those_alone_that_fail(store: Store) -> None:
    first, _ = store.begin("a", "key", b"one")
    calls = [
        Call(store.begin, ("a", None, b"")),
        Call(store.begin, ("a", "key", b"another")),
        Call(store.keep, (first.id, RELEASE, b"image")),
        Call(store.show, (first.id,)),
    ]
    store.together(calls)
    assert [type(call.error) for call in calls] == [type(None), KeyReused, type(None), type(None)]
    assert calls[3].made.state == DONE
    assert store.unfinished() == [calls[0].made[0].id]
    assert store.used == len("{}[]image")


FULL = (
    "CREATE TEMP TRIGGER full BEFORE UPDATE OF sha256 ON results WHEN new.id = '{}'"
    " BEGIN SELECT RAISE(ROLLBACK, 'full'); END"
)
"""One result cannot be kept, which ends a transaction, as a full disk may."""


@pytest.mark.parametrize("full", [True, False])
def test_a_group_whose_transaction_fails_is_run_one_by_one(store: Store, full: bool) -> None:
    """As on a disk that becomes full: what fits is kept, the rest is told, and bytes are counted once."""
    ids = [store.begin("a", None, b"")[0].id for _ in range(3)]
    if full:
        store._base.execute(FULL.format(ids[1]))
    calls = [Call(store.keep, (id_, RELEASE, b"image")) for id_ in ids]
    store.together([*calls, Call(store.begin, ("a", None, b""))])
    failed = [isinstance(call.error, sqlite3.Error) for call in calls]
    assert failed == [False, full, False]
    states = [row[0] for row in store._base.execute("SELECT state FROM results ORDER BY number")]
    assert states == [KEPT, "working" if full else KEPT, KEPT, "working"]
    assert store.used == sum(not each for each in failed) * len("{}[]image")
    assert not store._base.in_transaction


def test_a_group_that_cannot_be_committed_is_run_one_by_one(store: Store) -> None:
    ids = [store.begin("a", None, b"")[0].id for _ in range(2)]
    denied: list[str] = []

    def allow(action: int, name: str | None, *_: object) -> int:
        if (action, name) != (sqlite3.SQLITE_TRANSACTION, "COMMIT") or denied:
            return sqlite3.SQLITE_OK
        denied.append("COMMIT")
        return sqlite3.SQLITE_DENY

    store._base.set_authorizer(allow)
    calls = [Call(store.keep, (id_, RELEASE, b"image")) for id_ in ids]
    store.together(calls)
    store._base.set_authorizer(None)
    assert [call.error for call in calls] == [None, None]
    assert denied
    assert not store._base.in_transaction
    assert store.used == 2 * len("{}[]image")


def test_what_is_kept_is_durable_in_a_group_too(store: Store) -> None:
    """SQLite is told so before the transaction begins, and no longer after it; in memory nothing is."""
    told: list[str] = []
    store._base.set_trace_callback(told.append)
    id_ = store.begin("a", None, b"")[0].id
    other = Call(store.begin, ("a", None, b""))
    store.together([other, Call(store.keep, (id_, RELEASE, b"i")), Call(store.show, (id_,))])
    store.together([other, Call(store.find, ("a", id_))])
    store.keep(store.begin("a", None, b"")[0].id, RELEASE, b"i")
    words = [line.split()[-1] if line.startswith("PRAGMA") else line.split()[0] for line in told]
    kept = [word for word in words if word in ("FULL", "NORMAL", "BEGIN", "COMMIT", "UPDATE")]
    full, quick, alone = (
        ["FULL", "BEGIN", "UPDATE", "UPDATE", "COMMIT", "NORMAL"],
        ["BEGIN", "COMMIT"],
        ["FULL", "BEGIN", "UPDATE", "COMMIT", "NORMAL"],
    )
    due = full + quick + alone
    assert kept == [word for word in due if not store.in_memory or word not in ("FULL", "NORMAL")]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(f"sqlite:///{tmp_path}/budget.db", create=True) as made:
        made.set_limit("album", Limit("pure", epsilon="3"))
        yield made


def pays(budget: Budget, count: int) -> list[Call]:
    plans = [
        {"total": COST.to_json(), "covered": {"photo": f"{n:064x}", "pixels": 64 * "0"}} for n in range(count)
    ]
    return [Call(budget.pay, (LOCAL, "album", planned, str(n))) for n, planned in enumerate(plans)]


def test_a_group_of_payments_is_one_transaction(ledger: Ledger) -> None:
    """Which is on the disk before anybody is told; those that are refused change nothing."""
    budget, told = Budget(ledger), []
    ledger._database._connection.set_trace_callback(told.append)  # type: ignore[union-attr]
    calls = pays(budget, 5)
    budget.together(calls)
    assert [call.error is None for call in calls] == [True] * 3 + [False] * 2
    assert told.count("COMMIT") == 1
    for number, call in enumerate(calls[:3]):
        call.made.stored(f"{number:064x}")
    assert told.count("COMMIT") == 4
    assert ledger.check().debits == 3


def test_where_the_commit_fails_nobody_has_paid(ledger: Ledger) -> None:
    def allow(action: int, name: str | None, *_: object) -> int:
        commits = (action, name) == (sqlite3.SQLITE_TRANSACTION, "COMMIT")
        return sqlite3.SQLITE_DENY if commits else sqlite3.SQLITE_OK

    budget, calls = Budget(ledger), pays(Budget(ledger), 2)
    ledger._database._connection.set_authorizer(allow)  # type: ignore[union-attr]
    budget.together(calls)
    assert [type(call.error) for call in calls] == [LedgerError, LedgerError]
    assert ledger.check().debits == 0


def test_without_a_ledger_calls_are_just_run() -> None:
    budget = Budget(None)
    calls = pays(budget, 2)
    budget.together(calls)
    assert [(call.made, call.error) for call in calls] == [(None, None)] * 2
