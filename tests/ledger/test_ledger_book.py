"""Reservations and debits: what is counted, for whom, and what a retry finds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from budgets import ANY, cost, made, spend, url_of

import dpveil
from dpveil.core.guarantee import Relation
from dpveil.errors import (
    AlreadyPaid,
    BudgetExceeded,
    BudgetRefused,
    DPVeilError,
    InvalidParameter,
    LedgerError,
    ReservationLost,
    UsageError,
)
from dpveil.ledger import Ledger, Limit

FILE = "0" * 63 + "1"
PHOTO = np.arange(64, dtype=np.uint8).reshape(8, 8)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with made(tmp_path / "budget.db") as opened:
        yield opened


def left(ledger: Ledger, subject: str = "album") -> float:
    return float(ledger.show(subject).to_json()["limit"]["left"])  # type: ignore[index, call-overload, arg-type]


def test_reserved_and_spent_are_apart_and_both_count(ledger: Ledger) -> None:
    first = ledger.reserve("album", cost(2), "one")
    told: Any = ledger.show("album").to_json()
    assert (told["spent"]["epsilon"], told["reserved"]["epsilon"], told["limit"]["left"]) == (0, 2, 1)
    with pytest.raises(BudgetExceeded) as refusal:
        ledger.reserve("album", cost("1.000001"), "two")
    assert str(refusal.value).startswith("album has epsilon 1 left and this release costs 1.0000")
    first.commit()
    told = ledger.show("album").to_json()
    assert (told["spent"]["epsilon"], told["reserved"]["epsilon"]) == (2, 0)
    spend(ledger, 1)
    assert left(ledger) == 0


def test_what_is_cancelled_is_free_again_and_what_is_committed_never(ledger: Ledger) -> None:
    with ledger.reserve("album", cost(3), "one") as first:
        pass
    with pytest.raises(ReservationLost):
        first.commit()
    with ledger.reserve("album", cost(3), "two") as second:
        second.commit()
        second.commit()
    second.cancel()
    second.stored(FILE)
    assert left(ledger) == 0
    assert ledger.check().debits == 1


def test_a_debit_in_one_step_is_held_to_what_both_steps_are(ledger: Ledger) -> None:
    waiting = ledger.reserve("album", cost(1), "waiting")
    with pytest.raises(BudgetExceeded, match="album has epsilon 2 left"):
        ledger.debit("album", cost("2.5"), "one")
    ledger.reserve("album", cost(1), "one")
    with ledger.debit("album", cost(2), "one") as paid:  # that of the same unit gives way
        paid.commit()
        paid.stored(FILE)
    assert (paid.draw, left(ledger)) == (1, 0)
    with pytest.raises(AlreadyPaid):
        ledger.debit("album", cost(0), "one")
    assert ledger.debit("album", cost(0), "one", again=True).draw == 2
    with pytest.raises(BudgetRefused, match="has no limit"):
        ledger.debit("other", cost(0), "one")
    waiting.commit()
    found = ledger.check()
    assert (found.debits, found.files, ledger.show("album").spent.cost.epsilon) == (3, 1, 3 * 10**6)


def test_a_debit_counts_for_every_ancestor(ledger: Ledger) -> None:
    ledger.set_limit("album/anna", Limit("pure", epsilon=5))
    spend(ledger, 2, "album/anna")
    with pytest.raises(BudgetExceeded, match="album has epsilon 1 left"):
        spend(ledger, 2, "album/anna")
    spend(ledger, 1, "album/bob/holiday")
    held = {name: ledger.show(name).to_json()["spent"]["epsilon"] for name in ledger.subjects()}  # type: ignore[index, call-overload]
    assert held == {"album": 3, "album/anna": 2, "album/bob": 1, "album/bob/holiday": 1}
    with pytest.raises(BudgetExceeded):
        ledger.reserve("album", cost("0.000001"), "k", again=True)
    ledger.check()


def test_a_key_tells_what_its_stored_release_was_paid(ledger: Ledger) -> None:
    """And not what was paid for a draw that was lost, or by another subject."""
    ledger.set_limit("other", Limit("pure", epsilon=9))
    assert ledger.paid("album", "k") is None
    ledger.debit("album", cost(1), "k")
    assert ledger.paid("album", "k") is None, "nothing of it was stored"
    ledger.debit("album", cost("1.5"), "k").stored(FILE)
    ledger.debit("album", cost("0.25"), "k", again=True)
    found = ledger.paid("album", "k")
    assert found is not None
    assert (found.subject, found.draw, found.cost.cost.epsilon) == ("album", 2, 1_500_000)
    assert found == ledger.paid_for(FILE)[0]
    assert ledger.paid("other", "k") is None


def test_an_account_is_known_by_a_limit_or_a_debit_and_limited_by_its_path(ledger: Ledger) -> None:
    spend(ledger, 1, "album/anna")
    ledger.set_limit("studio/shop", Limit("pure", epsilon=1))
    ledger.set_limit("gone", Limit("pure", epsilon=1))
    ledger.remove_limit("gone", Limit("pure", epsilon=1))
    told = {
        "album": (True, True),
        "album/anna": (True, True),
        "album/bob": (False, True),
        "studio": (False, False),
        "studio/shop": (True, True),
        "gone": (True, False),
        "albums": (False, False),
    }
    found = {name: (ledger.show(name).known, ledger.show(name).limited) for name in told}
    assert found == told


def test_several_limits_all_hold_and_one_replaces_its_like(ledger: Ledger) -> None:
    ledger.set_limit("album", Limit("zcdp", rho="0.5"))
    spend(ledger, 1)
    with pytest.raises(BudgetExceeded, match=r"album has rho 0 left and this release costs 0\.125"):
        spend(ledger, "0.5")
    ledger.set_limit("album", Limit("zcdp", rho=1))
    spend(ledger, "0.5")
    ledger.remove_limit("album", Limit("zcdp", rho=9))
    ledger.set_limit("album", Limit("pure", epsilon=1))
    assert left(ledger) == 0
    with pytest.raises(UsageError, match="no such limit"):
        ledger.remove_limit("album", Limit("zcdp", rho=9))
    ledger.check()


def test_a_limit_that_is_set_later_counts_what_was_spent_before(ledger: Ledger) -> None:
    spend(ledger, 2, "album/anna")
    ledger.set_limit("album/anna", Limit("pure", epsilon=2))
    with pytest.raises(BudgetExceeded, match="album/anna has epsilon 0 left"):
        spend(ledger, "0.5", "album/anna")


def test_entries_are_in_order_of_time_though_the_clock_is_set_back(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = int(time.time())
    monkeypatch.setattr(time, "time", lambda: now + 5000)
    spend(ledger, 1)
    monkeypatch.setattr(time, "time", lambda: now + 10)
    spend(ledger, 1)
    moments = [entry.time for entry in ledger.history()]
    assert moments == sorted(moments)
    ledger.check()


def test_a_reservation_that_expired_is_not_committed_nor_shown(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    late = ledger.reserve("album", cost(2), "one", seconds=60)
    assert ledger.show("album").reserved.cost.epsilon == 2_000_000
    for jump in (62, -(10**6)):
        monkeypatch.setattr(time, "time", lambda jump=jump: now + jump)
        assert ledger.show("album").reserved.cost.epsilon == 0
        with pytest.raises(ReservationLost):
            late.commit()
    assert ledger.check().debits == 0


def test_a_commit_that_is_refused_leaves_no_reservation(ledger: Ledger) -> None:
    """A limit is lowered between the reservation and its commit."""
    with ledger.reserve("album", cost(1), "one") as held:
        ledger.set_limit("album", Limit("pure", epsilon="0.5"))
        with pytest.raises(BudgetExceeded):
            held.commit()
    assert ledger.show("album").reserved.cost.epsilon == 0
    assert ledger.check().debits == 0


def test_a_release_is_paid_in_one_step_and_by_nothing_that_only_reserves(ledger: Ledger) -> None:
    class Reserving:
        reserve = ledger.reserve

    plan = dpveil.plan(PHOTO, "dp-pix", epsilon=1, block=8)
    with pytest.raises(InvalidParameter, match="Reserving' is not a ledger"):
        plan.release(ledger=Reserving(), subject="album")  # type: ignore[arg-type]
    release = plan.release(ledger=ledger, subject="album")
    assert release.paid is not None
    assert [entry.kind for entry in ledger.history()] == ["open", "limit", "debit"]


@pytest.mark.parametrize("jump", [-(10**8), 10**8])
def test_clock_jumps_neither_free_a_debit_nor_block_for_ever(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, jump: int
) -> None:
    now = time.time()
    spend(ledger, 2)
    monkeypatch.setattr(time, "time", lambda: now + jump)
    held = ledger.reserve("album", cost(1), "one")
    with pytest.raises(BudgetExceeded):
        ledger.reserve("album", cost(1), "two")
    monkeypatch.setattr(time, "time", lambda: now)
    ledger.reserve("album", cost(1), "two").commit()
    with pytest.raises(ReservationLost):
        held.commit()
    assert left(ledger) == 0
    ledger.check()


def test_a_retry_finds_the_stored_release_and_pays_nothing(ledger: Ledger) -> None:
    first = ledger.reserve("album", cost(1), "photo-1")
    first.commit()
    first.stored(FILE)
    with pytest.raises(AlreadyPaid) as found:
        ledger.reserve("album", cost(1), "photo-1")
    assert (found.value.sha256s, found.value.draw, found.value.subject) == ((FILE,), 1, "album")
    assert ledger.find("album", "photo-1") == (FILE,)
    assert ledger.find("album", b"photo-1") == ()
    assert ledger.find("album/anna", "photo-1") == ()
    ledger.reserve("album/anna", cost(1), "photo-1").commit()
    again = ledger.reserve("album", cost(1), "photo-1", again=True)
    again.commit()
    assert (again.draw, left(ledger)) == (2, 0)


def test_files_are_known_to_who_paid(ledger: Ledger) -> None:
    paid = spend(ledger, 1, "album/anna")
    paid.stored(FILE)
    paid.stored(FILE)
    assert ledger.knows("album/anna", FILE)
    assert not ledger.knows("album", FILE)
    [found] = ledger.paid_for(FILE)
    assert (found.subject, found.draw, found.cost.cost.epsilon, found.cost.relation) == (
        "album/anna",
        1,
        10**6,
        ANY,
    )
    assert ledger.check().files == 1
    waiting = ledger.reserve("album", cost(1), "x")
    with pytest.raises(UsageError, match="not committed"):
        waiting.stored(FILE)
    for wrong in ("", FILE.upper().replace("0", "F"), FILE[1:], None, 3):
        with pytest.raises(InvalidParameter):
            paid.stored(wrong)


def test_no_key_and_no_hash_of_one_is_in_the_file(ledger: Ledger, tmp_path: Path) -> None:
    import hashlib

    key = b"the original photo"
    spend(ledger, 1, key=key)
    ledger.close()
    kept = (tmp_path / "budget.db").read_bytes()
    assert b"original" not in kept
    for name in ("sha256", "sha1", "md5", "blake2b"):
        digest = hashlib.new(name, key)
        assert digest.hexdigest().encode() not in kept
        assert digest.digest() not in kept
    assert (tmp_path / "budget.db").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"subject": "a\nb"}, InvalidParameter),
        ({"guarantee": 3}, InvalidParameter),
        ({"key": ""}, InvalidParameter),
        ({"key": None}, InvalidParameter),
        ({"seconds": 0}, InvalidParameter),
        ({"seconds": True}, InvalidParameter),
        ({"guarantee": cost(1, relation=Relation("any-database"))}, BudgetRefused),
    ],
)
def test_wrong_calls_are_refused_and_change_nothing(
    ledger: Ledger, change: Any, error: type[Exception]
) -> None:
    spend(ledger, 1)
    before = ledger.head()
    with pytest.raises(error):
        ledger.reserve(
            **{"subject": "album", "guarantee": cost(1), "key": "k", "again": True, **change}
        ).commit()
    assert ledger.head() == before


def test_a_copy_is_never_paid(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = ((), {"faces": dpveil.errors.NoRegion("none")})
    monkeypatch.setattr("dpveil.release.plan.search", lambda *_: missing)
    with pytest.raises(BudgetRefused, match="unprotected copy"):
        dpveil.obfuscate(PHOTO, "fill", if_none="copy", ledger=ledger, subject="album")


def test_a_ledger_is_only_made_when_asked_and_never_over_another(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="there is no ledger"):
        Ledger(url_of(tmp_path / "budgte.db"))
    assert list(tmp_path.iterdir()) == []
    with made(tmp_path / "budget.db") as first, Ledger(url_of(tmp_path / "budget.db"), create=True) as second:
        assert first.created
        assert not second.created
        assert first.name == second.name
    assert [path.name for path in tmp_path.iterdir()] == ["budget.db"]
    with pytest.raises(LedgerError, match="make the folder first"):
        Ledger(url_of(tmp_path / "no" / "budget.db"), create=True)


@pytest.mark.parametrize(
    "url",
    [
        "budget.db",
        "sqlite://",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite+pysqlite:///a.db",
        "sqlite:///a.db?mode=memory",
        "sqlite:///a.db?vfs=unix-none",
        "sqlite:///%2e/a.db",
        "sqlite:///a.db#x",
        "sqlite:///a\0.db",
        "mysql://localhost/x",
        "file:a.db",
        "",
    ],
)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(UsageError, match="no URL of a ledger"):
        Ledger(url, create=True)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://clerk:s3cret@127.0.0.1/db",
        "PostgreSQL://clerk:s3cret@127.0.0.1:1/db",
        "Postgres://clerk:s3cret@127.0.0.1:1/db",
        "postgres//clerk:s3cret@127.0.0.1/db",
        "postgresql://clerk:1/s3cret@127.0.0.1/db",
        "sqlite://clerk:s3cret@127.0.0.1/db",
        "sqlite:clerk?s3cret@db",
        "mysql://clerk:s3cret@127.0.0.1/db",
    ],
)
def test_no_message_about_a_url_has_its_password(url: str) -> None:
    with pytest.raises(DPVeilError) as refusal:
        Ledger(url)
    assert "s3cret" not in str(refusal.value)


def test_reservations_below_count_for_ancestors_too(ledger: Ledger) -> None:
    ledger.reserve("album/anna", cost(2), "k")
    with pytest.raises(BudgetExceeded):
        ledger.reserve("album/bob", cost(2), "k")
    assert ledger.show("albums").reserved.cost.epsilon == 0
