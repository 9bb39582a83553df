"""The newest head in the user's state folder: a ledger that is older, or was cut off, is refused."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest
from budgets import cost, url_of

from dpveil.errors import InvalidParameter, LedgerError
from dpveil.ledger import Ledger, Limit
from dpveil.ledger import ledger as state_of_heads
from dpveil.ledger.ledger import keep, read_head


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def copies(tmp_path: Path) -> tuple[Path, Path]:
    """A ledger with two debits, and a copy with one."""
    path, old = tmp_path / "budget.db", tmp_path / "old.db"
    for key in ("first", "second"):
        with Ledger(url_of(path), create=True) as ledger:
            ledger.set_limit("album", Limit("pure", epsilon=9))
            ledger.debit("album", cost(1), key)
        if key == "first":
            shutil.copy(path, old)
    return path, old


def test_an_older_copy_is_refused_until_a_check_accepts_it(copies: tuple[Path, Path]) -> None:
    path, old = map(url_of, copies)
    with pytest.raises(LedgerError, match="lacks entry 5"):
        Ledger(old)
    with Ledger(path) as newest:
        assert newest.check().kept
    with Ledger(old, restored=True) as accepted:
        assert accepted.check().entries == 3
    with Ledger(old) as accepted:
        accepted.debit("album", cost(1), "third")
    with pytest.raises(LedgerError, match="lacks entry 4"):  # it has another
        Ledger(path)


def test_a_debit_of_another_process_while_it_is_opened_is_no_older_copy(
    copies: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = url_of(copies[0])
    with Ledger(url) as other:

        def late(name: str) -> tuple[int, str] | None:
            other.debit("album", cost(1), "third")
            return read_head(name)

        monkeypatch.setattr(state_of_heads, "read_head", late)
        with Ledger(url) as ledger:
            assert ledger.head() == other.head()


def test_a_tail_that_was_cut_off_or_replaced_is_missed(copies: tuple[Path, Path]) -> None:
    for change in ("UPDATE entries SET head = substr(head, 2) || substr(head, 1, 1)", "DELETE FROM entries"):
        with sqlite3.connect(copies[0]) as raw:
            raw.execute(f"{change} WHERE number = 5")
        raw.close()
        with pytest.raises(LedgerError):
            Ledger(url_of(copies[0]))


def test_without_a_state_folder_it_works_and_keeps_nothing(
    copies: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    with Ledger(url_of(copies[1])) as ledger:
        ledger.debit("album", cost(1), "third")
        assert not ledger.check().kept


def test_a_head_only_moves_forward_and_one_that_was_lost_in_a_crash_is_none(state: Path) -> None:
    assert keep("a" * 32, 7, "b" * 64)
    assert keep("a" * 32, 6, "c" * 64)
    assert read_head("a" * 32) == (7, "b" * 64)
    (state / "dpveil" / f"{'a' * 32}.head").write_bytes(b"\0" * 90)
    assert read_head("a" * 32) is None


@pytest.mark.parametrize("subject", ["..", "a/../b", "a/."])
def test_subjects_lead_nowhere_else(copies: tuple[Path, Path], subject: str) -> None:
    with Ledger(url_of(copies[0])) as ledger, pytest.raises(InvalidParameter):
        ledger.set_limit(subject, Limit("pure", epsilon=1))
