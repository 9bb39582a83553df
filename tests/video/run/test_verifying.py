"""One function verifies photos and clips, another what files of many hold; the ledger knows who paid."""

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("av")

from clips_made import make_clip, make_plan, track

import dpveil
from dpveil.cli import run
from dpveil.errors import UnknownName
from dpveil.ledger import Ledger, Limit
from dpveil.ledger.limits import Paid
from dpveil.mechanisms.pixel import DPPix
from dpveil.video import render
from dpveil.video.verification import ClipVerification

METHOD = DPPix(epsilon=3, block=8, neighbourhood=4)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Return a clip of two draws, paid by the album."""
    clip, out = make_clip(tmp_path / "clip.mp4"), tmp_path / "private.mp4"
    plan = make_plan(clip, METHOD, [track(1, 0), track(2, 24, moves=6)])
    with Ledger("sqlite:///" + str(tmp_path / "budget.db"), create=True) as ledger:
        ledger.set_limit("album", Limit("pure", epsilon=9))
        render(plan, clip, out, ledger=ledger, subject="album")
    return out


def test_a_clip_is_verified_as_a_photo_is(out: Path) -> None:
    for name in (out, str(out) + ".certificate.json"):
        found = dpveil.verify(name)
        assert isinstance(found, ClipVerification)
        assert (found.status, found.publishable) == ("consistent", True)
    assert [str(each) for each in found.costs] == ["6-DP, m-pixels (m = 4)"]
    assert "strong" in dpveil.verify(out, at_least="strong").refused
    assert [each.status for each in dpveil.verify_each(out)] == ["consistent"]
    with pytest.raises(UnknownName):
        dpveil.verify(out, at_least="good")


def test_a_file_of_many_releases_is_verified_release_by_release(tmp_path: Path) -> None:
    for name in ("a.tar", "a.parquet", "a.pdf", "a.pdf.certificate.json"):
        found = dpveil.verify(tmp_path / name)
        assert (found.status, found.publishable) == ("unchecked", False)
        assert "dpveil.verify_each" in found.problems[0]
        assert [each.status for each in dpveil.verify_each(tmp_path / name)] == ["missing"]
        with pytest.raises(UnknownName):
            dpveil.verify(tmp_path / name, at_least="good")


def test_who_paid_for_a_clip_is_looked_up(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    call = ["ledger", "check", str(out), "--ledger", "sqlite:///" + str(tmp_path / "budget.db")]
    assert run(call) == 0
    assert f"{out}: paid by album\n" in capsys.readouterr().out
    paid = Ledger.paid_for

    def twice(one: Paid) -> Paid:
        return replace(one, cost=one.cost + one.cost)

    monkeypatch.setattr(Ledger, "paid_for", lambda self, sha256: [twice(one) for one in paid(self, sha256)])
    assert run(call) == 1
    assert "its certificate states another amount than was paid" in capsys.readouterr().out
    monkeypatch.undo()
    link = tmp_path / "link.mp4"
    link.symlink_to(out)
    assert run([*call[:2], str(link), *call[3:]]) == 1
