"""A folder and a state of its own for runs over many photos, and a ledger that pays for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dpveil.batch import run
from dpveil.ledger import Ledger, Limit


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


@pytest.fixture
def ledger(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """A ledger, for runs that are not priced beforehand, so that what dies does so when it is released."""
    monkeypatch.setattr(run, "is_priced", lambda *_: False)
    with Ledger("sqlite:///budget.db", create=True) as opened:
        opened.set_limit("album", Limit("pure", epsilon=99))
        yield opened
