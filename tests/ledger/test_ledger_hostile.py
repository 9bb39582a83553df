"""Ledgers that were received, damaged, replaced, restored or filled up: one line, never a traceback."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from budgets import cost, made, spend, url_of

from dpveil.errors import InvalidParameter, LedgerError
from dpveil.ledger import Ledger, Limit, database
from dpveil.ledger.entries import Debit, LimitSet, StoredFile, make_entry, parse

FILE = "ab" * 32


@pytest.fixture(autouse=True)
def stranger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody here wrote to these ledgers before: else their kept heads would refuse them at once."""
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed ledger with a bit of everything."""
    with made(tmp_path / "budget.db") as ledger:
        spend(ledger, 1, "album/anna").stored(FILE)
        spend(ledger, "0.5")
        ledger.set_limit("album", Limit("approximate", epsilon=9, delta="1e-6"))
        ledger.reserve("album", cost("0.25"), "waiting")
    return tmp_path / "budget.db"


def use(path: Path) -> None:
    """Do everything with a ledger that may be damaged; raises `DPVeilError` if so."""
    with Ledger(url_of(path)) as ledger:
        try:
            for name in ledger.subjects():
                ledger.show(name).to_json()
            list(ledger.history())
            ledger.paid_for(FILE)
            spend(ledger, "0.000001", "album/anna").stored(FILE)
        finally:
            ledger.check()


def changed(path: Path, *commands: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("PRAGMA writable_schema = ON")
        for command in commands:
            raw.execute(command)


def refused(path: Path) -> str:
    with pytest.raises(LedgerError) as refusal:
        use(path)
    assert "\n" not in str(refusal.value)
    assert refusal.value.exit_code == 4
    return str(refusal.value)


def test_an_intact_one_is_used(path: Path) -> None:
    use(path)


@pytest.mark.parametrize("contents", [b"", b"SQLite format 3\0", b"x" * 5000, os.urandom(8192)])
def test_what_is_no_database_is_refused(tmp_path: Path, contents: bytes) -> None:
    (tmp_path / "a.db").write_bytes(contents)
    refused(tmp_path / "a.db")
    refused(tmp_path)


ODD = (
    "-9223372036854775808",
    "NULL",
    "''",
    "x'00ff'",
    "9223372036854775807",
    "-1",
    "1e308",
    "zeroblob(900000)",
    "char(10)",
    "cast(x'ff' AS TEXT)",
)
PLACES = {
    "ledger": ("name", "secret"),
    "entries": ("number", "head", "unit", "sha256", "text"),
    "subjects": ("subject", "cost", "relation", "limits"),
    "reservations": ("subject", "unit", "cost", "relation", "expires"),
}


def test_flipped_bytes_are_found_or_change_nothing(path: Path) -> None:
    """200 files, each with up to 3 bytes changed: an error in one line, or a ledger that says the same."""
    contents, chance = path.read_bytes(), random.Random(3)  # noqa: S311
    with Ledger(url_of(path)) as ledger:
        spent, head = ledger.show("album").spent, ledger.head()
    found = same = 0
    for _ in range(200):
        broken = bytearray(contents)
        for _ in range(chance.randint(1, 3)):
            broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
        path.write_bytes(broken)
        try:
            with Ledger(url_of(path)) as ledger:
                ledger.check(head)
                assert ledger.show("album").spent == spent
            same += 1
        except LedgerError as error:
            found += str(error).count("\n") == 0
    assert found > 20
    assert found + same == 200


def rows(path: Path) -> list[Any]:
    raw = sqlite3.connect(path)
    found = raw.execute("SELECT number, head, text FROM entries ORDER BY number").fetchall()
    raw.close()
    return [parse(*row) for row in found]


def rewritten(path: Path, change: Callable[[list[Any]], list[Any]]) -> None:
    """Change the events of a ledger and chain them anew, as somebody would who forges it with care."""
    raw, before = sqlite3.connect(path, isolation_level=None), "0" * 64
    events = change([(entry.event, entry.time) for entry in rows(path)])
    raw.execute("DELETE FROM entries")
    for number, (event, moment) in enumerate(events, 1):
        entry = make_entry(number, moment, event, before)
        before = entry.head
        unit, sha256 = getattr(event, "unit", None), getattr(event, "sha256", None)
        raw.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?)", (number, entry.head, unit, sha256, entry.text)
        )
    raw.close()


FORGERIES: dict[str, Callable[[list[Any]], list[Any]]] = {
    "a debit taken out": lambda events: [e for e in events if not isinstance(e[0], Debit)],
    "one debit twice": lambda events: [*events, *(e for e in events if isinstance(e[0], Debit))],
    "a limit taken out": lambda events: [e for e in events if not isinstance(e[0], LimitSet)],
    "a file before its debit": lambda events: sorted(events, key=lambda e: isinstance(e[0], Debit)),
    "a file of nobody": lambda events: [*events, (StoredFile("album", "12" * 32, 1, FILE), events[-1][1])],
    "no beginning": lambda events: events[1:],
    "two beginnings": lambda events: [events[0], *events],
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_chain_that_was_forged_with_care_does_not_hold(path: Path, forgery: str) -> None:
    rewritten(path, FORGERIES[forgery])
    with Ledger(url_of(path)) as ledger, pytest.raises(LedgerError):
        ledger.check()


def lowered(events: list[Any]) -> list[Any]:
    small = LimitSet("album", Limit("pure", epsilon="1.25"))
    return [(small if isinstance(event, LimitSet) else event, moment) for event, moment in events]


def test_a_debit_beyond_a_limit_of_its_time_is_named(path: Path) -> None:
    rewritten(path, lowered)
    with Ledger(url_of(path)) as ledger, pytest.raises(LedgerError, match="it was beyond a limit"):
        ledger.check()


def test_an_entry_that_was_changed_in_place_is_named(path: Path) -> None:
    changed(path, "UPDATE entries SET text = replace(text, '1000000 ', '1000001 ') WHERE number = 3")
    with Ledger(url_of(path)) as ledger, pytest.raises(LedgerError, match=r"^entry 3 .* its hash"):
        ledger.check()


@pytest.mark.parametrize(
    "command",
    [
        "UPDATE subjects SET cost = '0 0 0 0' WHERE subject = 'album'",
        "UPDATE subjects SET limits = '[]' WHERE subject = 'album'",
        "UPDATE subjects SET relation = 'm-pixels:16' WHERE subject = 'album'",
        "DELETE FROM subjects WHERE subject = 'album/anna'",
        "INSERT INTO subjects VALUES ('other', '0 0 0 0', '', '[]')",
        "UPDATE ledger SET secret = lower(hex(zeroblob(32)))",
        "UPDATE ledger SET name = '0123456789abcdef0123456789abcdef'",
        "INSERT INTO ledger SELECT * FROM ledger",
        "DELETE FROM entries WHERE number = (SELECT max(number) FROM entries)",
        "DELETE FROM entries WHERE number = 3",
        "INSERT INTO entries SELECT -5, head, unit, sha256, text FROM entries WHERE number = 3",
        "UPDATE entries SET unit = NULL WHERE number = 3",
        "UPDATE entries SET sha256 = NULL WHERE sha256 IS NOT NULL",
    ],
)
def test_tables_that_do_not_follow_from_the_entries_are_found(path: Path, command: str) -> None:
    changed(path, command)
    with pytest.raises(LedgerError), Ledger(url_of(path)) as ledger:
        ledger.check()


def test_a_restored_backup_is_found_by_a_head_that_was_kept(path: Path) -> None:
    shutil.copy(path, backup := path.with_suffix(".backup"))
    with Ledger(url_of(path)) as ledger:
        old = ledger.head()
        spend(ledger, "0.25")
        head = ledger.head()
        assert ledger.check(old).head == ledger.check(head).head == head
    shutil.copy(backup, path)
    with Ledger(url_of(path)) as ledger:
        ledger.check(old)
        with pytest.raises(LedgerError, match="an older copy"):
            ledger.check(head)
        spend(ledger, "0.125")
        with pytest.raises(LedgerError, match="is not the one whose hash was kept"):
            ledger.check(head)
        for wrong in ("0:" + "0" * 64, "x", "1:zz", 3):
            with pytest.raises(InvalidParameter):
                ledger.check(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("how", ["replaced", "removed"])
def test_a_file_that_is_replaced_under_us_pays_for_nothing(path: Path, how: str) -> None:
    shutil.copy(path, other := path.with_suffix(".other"))
    with Ledger(url_of(path)) as ledger:
        waiting = ledger.reserve("album", cost("0.25"), "k")
        if how == "replaced":
            other.replace(path)
        else:
            path.unlink()
        for call in (waiting.commit, lambda: ledger.reserve("album", cost("0.25"), "k2"), ledger.head):
            with pytest.raises(LedgerError, match="replaced or removed"):
                call()


def test_a_full_disk_pays_for_nothing_and_leaves_a_sound_ledger(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger(url_of(path)) as ledger:
        spend(ledger, "0.000001")
        paid: list[str] = []

        def fill() -> None:
            for number in range(1000):
                spend(ledger, "0.000001", f"album/{number}")
                paid.append(f"album/{number}")

        with monkeypatch.context() as patch:
            most = path.stat().st_size // 4096 + 8
            patch.setattr(database, "SETTINGS", (*database.SETTINGS, f"max_page_count = {most}"))
            ledger.close()
            with pytest.raises(LedgerError, match=r"full.*make room on the disk"):
                fill()
        ledger.close()
        assert ledger.check().debits == 3 + len(paid)
        assert {name for name in ledger.subjects() if "anna" not in name} == {"album", *paid}
        spend(ledger, "0.000001")


def test_a_busy_ledger_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "PATIENCE", 0.05)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with Ledger(url_of(path)) as ledger, pytest.raises(LedgerError, match="another process holds it"):
        spend(ledger, 1)
    holder.close()


@pytest.mark.parametrize("ends", [100, 10**8])
def test_many_reservations_are_refused_and_old_ones_not_added_up(path: Path, ends: int) -> None:
    """Those that end later than any that was made now were made before the clock was set back."""
    row = f"'album', 'u', '1 1 0 0', 'any-image', {int(time.time()) + ends}"
    changed(
        path,
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 10001)"
        f" INSERT INTO reservations SELECT 'r' || x, {row} FROM n",
    )
    with Ledger(url_of(path)) as ledger:
        if ends == 100:
            for call in (ledger.check, ledger.accounts, lambda: spend(ledger, "0.25")):
                with pytest.raises(LedgerError, match="more than 10,000 reservations"):
                    call()
        else:
            assert ledger.show("album").reserved.cost.epsilon == 250_000
            spend(ledger, "0.25")
            ledger.check()
