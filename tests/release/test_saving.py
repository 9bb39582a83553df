"""Saved releases: both files or neither, and what a failed or killed save leaves in the ledger."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpveil
from dpveil.errors import (
    AlreadyPaid,
    DPVeilError,
    InvalidParameter,
    LedgerError,
    OutputError,
)
from dpveil.io import writing
from dpveil.ledger import Ledger, Limit
from dpveil.noise.bits import BitSource
from dpveil.release.plan import Plan
from dpveil.release.saving import certificate_path

SMALL = np.arange(64, dtype=np.uint8).reshape(8, 8)


class Mine(BitSource):
    """Somebody's own bits, which are always the same."""

    __slots__ = ()

    def _first_key(self) -> bytes:
        return bytes(32)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(f"sqlite:///{tmp_path / 'budget.db'}", create=True) as opened:
        opened.set_limit("album", Limit("pure", epsilon=9))
        yield opened


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "one.png"


@pytest.fixture(scope="module")
def plan() -> Plan:
    return dpveil.plan(SMALL, "dp-pix", epsilon=1, block=8)


def paid(ledger: Ledger) -> tuple[int, int, int]:
    found = ledger.check()
    return found.debits, found.files, found.unstored


@pytest.mark.parametrize("way", ["picture", "certificate", "folder", "missing folder", "full disk"])
def test_a_save_that_fails_does_not_use_up_its_key(
    ledger: Ledger, plan: Plan, out: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = {"picture": out, "certificate": certificate_path(out), "folder": out}.get(way)
    if way == "folder":
        out.mkdir()
    elif inside is not None:
        inside.write_bytes(b"x")
    elif way == "missing folder":
        out.parent.rmdir()
    release = plan.release(ledger=ledger, subject="album", key="photo-1")
    with monkeypatch.context() as broken:
        if way == "full disk":
            broken.setattr(writing, "_write_beside", full)
        with pytest.raises(OutputError):
            release.save(out)
    assert paid(ledger) == (1, 0, 1)
    if inside is not None:
        (inside.rmdir if way == "folder" else inside.unlink)()
    out.parent.mkdir(exist_ok=True)
    assert list(out.parent.iterdir()) == []
    plan.release(ledger=ledger, subject="album", key="photo-1").save(out)
    assert paid(ledger) == (2, 1, 1)
    with pytest.raises(AlreadyPaid):
        plan.release(ledger=ledger, subject="album", key="photo-1")


def full(target: Path, *_: Any) -> Path:
    if target.name == "one.png":  # the second of the two
        raise OSError(errno.ENOSPC, "no space")
    return target


class WatchingPage:
    """A payment that looks at the folder when it is told of a file."""

    def __init__(self, folder: Path, error: Exception | None = None) -> None:
        self.folder, self.error, self.seen = folder, error, [("", [0])]
        self.seen.clear()

    def stored(self, sha256: str) -> None:
        found = {path.name: path.read_bytes() for path in self.folder.iterdir()}
        assert all(name.endswith(".tmp") for name in found)
        self.seen.append((sha256, sorted(len(data) for data in found.values())))
        if self.error is not None:
            raise self.error


def test_a_file_is_noted_once_both_are_on_the_disk_and_neither_has_its_name(plan: Plan, out: Path) -> None:
    page = WatchingPage(out.parent)
    image, beside = replace(plan.release(), paid=page).save(out)
    certificate = dpveil.verify(image).certificate
    assert certificate is not None
    assert certificate.output is not None
    sizes = sorted(path.stat().st_size for path in (image, beside))
    assert page.seen == [(certificate.output.sha256, sizes)]


@pytest.mark.parametrize(
    "error", [LedgerError("the ledger cannot be used"), InvalidParameter("sha256", None, "is no SHA-256")]
)
def test_what_the_ledger_cannot_note_gets_no_name(plan: Plan, out: Path, error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        replace(plan.release(), paid=WatchingPage(out.parent, error)).save(out)
    assert caught.value is error
    assert list(out.parent.iterdir()) == []


def test_what_the_ledger_cannot_note_replaces_nothing(
    ledger: Ledger, plan: Plan, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image, beside = plan.release().save(out)
    before = image.read_bytes(), beside.read_bytes()
    release = plan.release(ledger=ledger, subject="album")

    def unwritable(self: Ledger) -> None:
        raise LedgerError("the ledger cannot be used")

    monkeypatch.setattr(Ledger, "_write", unwritable)
    with pytest.raises(LedgerError):
        release.save(out, replace=True)
    assert (image.read_bytes(), beside.read_bytes()) == before
    assert sorted(out.parent.iterdir()) == [image, beside]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_file_that_was_lost_after_it_was_noted_is_drawn_again_if_asked(
    ledger: Ledger, plan: Plan, out: Path
) -> None:
    """Killed between the ledger's note and the first name, the release is gone and the key is used up."""
    child = os.fork()
    if child == 0:
        try:
            writing._place = lambda *_: os._exit(9)
            plan.release(ledger=ledger, subject="album", key="photo-1").save(out)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert not out.exists()
    assert paid(ledger) == (1, 1, 0)
    with pytest.raises(AlreadyPaid):
        plan.release(ledger=ledger, subject="album", key="photo-1")
    assert paid(ledger) == (1, 1, 0)
    plan.release(ledger=ledger, subject="album", key="photo-1", again=True).save(out)
    assert paid(ledger) == (2, 2, 0)
    once_more = {"ledger": ledger, "subject": "album", "key": "photo-1", "again": True}
    release = dpveil.obfuscate(SMALL, "dp-pix", epsilon=1, block=8, **once_more)  # type: ignore[arg-type]
    assert release.paid is not None
    assert paid(ledger) == (3, 2, 1)


@pytest.mark.parametrize("name", ["again", "other_regions", "subject", "key"])
def test_what_a_ledger_decides_is_refused_without_one(plan: Plan, name: str) -> None:
    with pytest.raises(InvalidParameter, match=f"{name} is given without a ledger"):
        plan.release(**{name: "album" if name in ("subject", "key") else True})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("bits", "words"), [(Mine(), "not known to be secure"), (dpveil.SeededBits(1), "reproducible")]
)
def test_only_secure_bits_are_paid(ledger: Ledger, plan: Plan, bits: BitSource, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        plan.release(bits=bits, ledger=ledger, subject="album")
    assert paid(ledger) == (0, 0, 0)
    plan.release(bits=dpveil.SecureBits(), ledger=ledger, subject="album")
    assert paid(ledger) == (1, 0, 1)


def private(seed=1):
    levels = (np.arange(20 * 24 * 3) % 199).astype(np.uint8).reshape(20, 24, 3)
    return dpveil.obfuscate(
        levels, "dp-pix", epsilon=1, block=4, neighbourhood=16, bits=dpveil.SeededBits(seed)
    )


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp", "tif", "bmp"])
def test_save_writes_image_and_certificate_that_belong_together(tmp_path, suffix):
    image, beside = private().save(tmp_path / f"a.{suffix}")
    assert (image.name, beside.name) == (f"a.{suffix}", f"a.{suffix}.certificate.json")
    output = json.loads(beside.read_text(encoding="utf-8"))["output"]
    assert output["sha256"] == hashlib.sha256(image.read_bytes()).hexdigest()
    assert (output["width"], output["height"], output["channels"]) == (24, 20, 3)
    assert dpveil.verify(image).status == "consistent"


def test_save_replaces_nothing_unless_told(tmp_path):
    first, second = private(), private(2)
    image, beside = first.save(tmp_path / "a.png")
    kept = image.read_bytes(), beside.read_bytes()
    with pytest.raises(OutputError, match="it exists already"):
        second.save(image)
    assert (image.read_bytes(), beside.read_bytes()) == kept
    second.save(image, replace=True)
    assert image.read_bytes() != kept[0]
    assert dpveil.verify(image).status == "consistent"


def test_save_leaves_nothing_behind_where_it_fails(tmp_path):
    for target in (tmp_path / "missing" / "a.png", tmp_path / "a.gif"):
        with pytest.raises(DPVeilError):
            private().save(target)
    assert list(tmp_path.iterdir()) == []
