"""A photo is released with the same regions, whoever pays: its sum holds for what all releases cover."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from budgets import cost, ended, forked, made, url_of

import dpveil
from dpveil.core.region import CoverageDigests
from dpveil.errors import BudgetRefused, InvalidParameter, LedgerError, RegionsDiffer
from dpveil.ledger import Ledger, Limit
from dpveil.ledger.entries import Debit, Part, make_entry, parse, part_of, unit_of

PHOTO = np.arange(16 * 16, dtype=np.uint8).reshape(16, 16)
LEFT, RIGHT = "0,0,8,16", "8,0,8,16"
A, B = CoverageDigests(b"a" * 32, b"1" * 32), CoverageDigests(b"a" * 32, b"2" * 32)
OTHER = CoverageDigests(b"b" * 32, b"2" * 32)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with made(tmp_path / "budget.db", 99) as opened:
        opened.set_limit("studio", Limit("pure", epsilon=99))
        yield opened


def pay(ledger: Ledger, covered: CoverageDigests | None, subject: str = "album", **more: Any) -> None:
    ledger.reserve(subject, cost(1), "k", again=True, covered=covered, **more).commit()


def parts(ledger: Ledger) -> list[Part | None]:
    return [entry.event.part for entry in ledger.history() if entry.kind == "debit"]


@pytest.mark.parametrize(("method", "numbers"), [("dp-pix", {"epsilon": 1, "block": 8}), ("fill", {})])
def test_two_releases_that_show_the_photo_together_are_refused(
    ledger: Ledger, method: str, numbers: dict[str, Any]
) -> None:
    """Also if each costs nothing: the left half of one and the right half of the other are the original."""
    first, second = (dpveil.plan(PHOTO, method, regions=half, **numbers) for half in (LEFT, RIGHT))
    assert first.coverage is not None
    assert second.coverage is not None
    ledger.check_regions(second.coverage)
    first.release(ledger=ledger, subject="album")
    ledger.check_regions(first.coverage)
    with pytest.raises(RegionsDiffer):
        ledger.check_regions(second.coverage)
    before = ledger.show("album").spent
    for _ in range(2):
        with pytest.raises(RegionsDiffer) as refusal:
            second.release(ledger=ledger, subject="album")
        assert refusal.value.exit_code == 3
        assert "add other_regions=True" in refusal.value.hint
    assert ledger.show("album").spent == before
    first.release(ledger=ledger, subject="album")
    second.release(ledger=ledger, subject="album", other_regions=True)
    assert [part is not None and part.other_regions for part in parts(ledger)] == [False, False, True]
    assert ledger.check().other_regions == 1


def test_other_methods_of_the_same_pixels_are_taken(ledger: Ledger) -> None:
    for method, numbers in (("dp-pix", {"epsilon": 1, "block": 8}), ("fill", {}), ("snow", {"delta": 0.5})):
        with suppress(BudgetRefused):  # the limit has no δ
            dpveil.obfuscate(PHOTO, method, regions=[LEFT, RIGHT], ledger=ledger, subject="album", **numbers)
    dpveil.obfuscate(PHOTO, "fill", regions="whole", ledger=ledger, subject="album", other_regions=True)
    assert len({part.covered for part in parts(ledger) if part is not None}) == 1
    assert ledger.check().other_regions == 0


def test_singular_values_of_the_same_pixels_are_another_part(ledger: Ledger) -> None:
    ledger.set_limit("album", Limit("pure", epsilon=10**6))
    ask = partial(dpveil.obfuscate, PHOTO, "dp-svd", epsilon=1, rank=2, ledger=ledger, subject="album")
    ask(regions=[LEFT, RIGHT])
    ask(regions=[RIGHT, LEFT])
    with pytest.raises(RegionsDiffer):
        ask()


def test_what_is_of_no_photo_is_not_compared(ledger: Ledger) -> None:
    for covered in (None, A, None, OTHER):
        pay(ledger, covered)
    assert [part is None for part in parts(ledger)] == [True, False, True, False]
    ledger.check()


def test_once_regions_differed_every_further_release_says_so(ledger: Ledger) -> None:
    """Also one of the part that was first: the sum holds for less than it covers."""
    pay(ledger, A)
    pay(ledger, B, other_regions=True)
    for covered in (B, A, A):
        with pytest.raises(RegionsDiffer):
            pay(ledger, covered)
        pay(ledger, covered, other_regions=True)
    pay(ledger, OTHER, other_regions=True)
    found = [part.other_regions for part in parts(ledger) if part is not None]
    assert found == [False, True, True, True, True, False], "the last one is of a photo without another part"
    assert ledger.check().other_regions == 4


def test_of_two_that_are_reserved_at_once_the_second_commits_nothing(ledger: Ledger) -> None:
    first = ledger.reserve("album", cost(1), "one", covered=A)
    second = ledger.reserve("studio", cost(1), "two", covered=B)
    third = ledger.reserve("album", cost(1), "three", covered=B, other_regions=True)
    first.commit()
    with pytest.raises(RegionsDiffer):
        second.commit()
    third.commit()
    assert ledger.check().other_regions == 1
    assert [ledger.show(name).spent.cost.epsilon for name in ("album", "studio")] == [2 * 10**6, 0]


def test_a_commit_that_is_refused_for_its_regions_leaves_no_reservation(ledger: Ledger) -> None:
    """Another release of the photo is paid between the reservation and its commit."""
    left, right = (dpveil.plan(PHOTO, "fill", regions=half) for half in (LEFT, RIGHT))
    with ledger.reserve("album", cost(1), "one", covered=left.coverage) as held:
        right.release(ledger=ledger, subject="studio")
        with pytest.raises(RegionsDiffer):
            held.commit()
    assert ledger.check().debits == 1
    with closing(sqlite3.connect(ledger.files[0])) as raw:
        assert raw.execute("SELECT count(*) FROM reservations").fetchone() == (0,)


def test_processes_that_race_release_one_part_of_a_photo(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    with made(path, 99):
        pass

    def work(me: int) -> None:
        with Ledger(url_of(path)) as ledger:
            for number in range(20):
                with suppress(RegionsDiffer):
                    pay(ledger, CoverageDigests(bytes([number]) * 32, bytes([me]) * 32), f"album/{me}")

    ended([forked(partial(work, me)) for me in range(4)])
    with Ledger(url_of(path)) as ledger:
        found = ledger.check()
        assert (found.debits, found.other_regions) == (20, 0)


def test_photos_and_pixels_are_kept_under_the_ledgers_secret(tmp_path: Path) -> None:
    covered = dpveil.plan(PHOTO, "fill", regions="whole").coverage
    assert covered is not None
    seen, path = set(), tmp_path / "one.db"
    for name in ("one.db", "two.db"):
        with made(tmp_path / name) as ledger:
            pay(ledger, covered)
            pay(ledger, CoverageDigests(b"b" * 32, covered.pixels))
            seen |= {value for part in parts(ledger) if part for value in (part.photo, part.covered)}
    assert len(seen) == 8, "not even the same pixels of two photos are seen to be the same"
    kept = path.read_bytes()
    for digest in (covered.photo, covered.pixels):
        assert digest not in kept
        assert digest.hex().encode() not in kept


def rewritten(path: Path, change: Callable[[Debit, int], Debit]) -> None:
    """Change the debits of a ledger and chain all entries anew, as somebody would who forges it with care."""
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        rows = raw.execute("SELECT number, head, text FROM entries ORDER BY number").fetchall()
        before, debits = "0" * 64, 0
        for entry in [parse(*row) for row in rows]:
            event = entry.event
            if isinstance(event, Debit):
                event, debits = change(event, debits), debits + 1
            made = make_entry(entry.number, entry.time, event, before)
            before = made.head
            row = (made.head, *made.index_keys, made.text, made.number)
            raw.execute("UPDATE entries SET head = ?, unit = ?, sha256 = ?, text = ? WHERE number = ?", row)


FORGERIES: dict[str, Callable[[Debit, int], Debit]] = {
    "says nothing": lambda debit, _: replace(debit, part=replace(debit.part, other_regions=False)),  # type: ignore[type-var]
    "says it of the first": lambda debit, _: replace(debit, part=replace(debit.part, other_regions=True)),  # type: ignore[type-var]
    "another part": lambda debit, n: (
        debit if n else replace(debit, part=replace(debit.part, covered="0" * 64))  # type: ignore[type-var]
    ),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_the_log_proves_that_regions_were_the_same_or_were_said_to_differ(
    tmp_path: Path, forgery: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")  # a kept head would refuse it at once
    path = tmp_path / "budget.db"
    with made(path, 9) as ledger:
        pay(ledger, A)
        pay(ledger, A)
        pay(ledger, B, other_regions=True)
        ledger.check()
    rewritten(path, lambda debit, _: debit)
    with Ledger(url_of(path)) as ledger:
        ledger.check()
    rewritten(path, FORGERIES[forgery])
    with Ledger(url_of(path)) as ledger, pytest.raises(LedgerError, match="earlier releases of its photo"):
        ledger.check()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entries SET sha256 = NULL WHERE number = 3",
        "UPDATE entries SET sha256 = hex(zeroblob(32)) WHERE number = 3",
        "UPDATE entries SET sha256 = (SELECT sha256 FROM entries WHERE number = 3) WHERE number = 5",
        "UPDATE entries SET sha256 = (SELECT sha256 FROM entries WHERE number = 3) WHERE number = 4",
        "UPDATE entries SET text = replace(text, 'other_regions\":false', 'other_regions\":true')",
        "UPDATE entries SET text = replace(text, ',\"other_regions\":false', '')",
        "UPDATE entries SET text = replace(text, 'false', '0')",
    ],
)
def test_a_photos_entries_that_were_changed_are_found(tmp_path: Path, change: str) -> None:
    with made(tmp_path / "budget.db", 9) as ledger:
        pay(ledger, A)
        paid = ledger.reserve("album", cost(1), "k", covered=OTHER)
        paid.commit()
        paid.stored("12" * 32)
    with closing(sqlite3.connect(tmp_path / "budget.db", isolation_level=None)) as raw:
        raw.execute(change)
    with Ledger(url_of(tmp_path / "budget.db")) as ledger:
        with pytest.raises(LedgerError):
            ledger.check()
        if "sha256 = (" in change:
            with pytest.raises(LedgerError, match="under another photo"):
                pay(ledger, A)


@pytest.mark.parametrize("wrong", ["photo", b"a" * 32, {"photo": "00"}, 1])
def test_what_is_no_part_of_a_photo_is_refused(ledger: Ledger, wrong: Any) -> None:
    with pytest.raises(InvalidParameter, match="is no part of a photo"):
        ledger.reserve("album", cost(1), "k", covered=wrong)


def test_the_key_of_a_unit_is_never_that_of_a_photo() -> None:
    """Two HMACs under one secret: no message of one is a message of the other."""
    secret, key = "ab" * 32, b"key"
    part = part_of(secret, CoverageDigests(hashlib.sha256(key).digest(), bytes(32)), False)
    units = {unit_of(secret, subject, key) for subject in ("a", "photo", "covered")}
    assert not units & {part.photo, part.covered}


def test_a_photo_is_the_same_whoever_pays(ledger: Ledger) -> None:
    pay(ledger, A, "album/anna")
    for subject in ("album", "album/anna", "album/bob", "studio"):
        with pytest.raises(RegionsDiffer):
            ledger.reserve(subject, cost(1), "k", covered=B)
        pay(ledger, A, subject)
        pay(ledger, OTHER, subject)
    assert ledger.check().debits == 9
