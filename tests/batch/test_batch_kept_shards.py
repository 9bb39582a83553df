"""What a written shard holds: releases of the run, and of before only those that are proven and paid for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from shards_made import counts, held, picture, released, shard

from dpveil.batch import releasing, shards
from dpveil.batch.report import Report
from dpveil.batch.tasks import plan_tasks
from dpveil.errors import OutputError
from dpveil.ledger import Ledger, Limit

CERTIFICATE = ".certificate.json"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    monkeypatch.setattr(releasing, "is_priced", lambda *_: False)
    with Ledger("sqlite:///budget.db", create=True) as opened:
        opened.set_limit("album", Limit("pure", epsilon=99))
        yield opened


def photos(*levels: int) -> None:
    """Put photos 0.png, 1.png and so on into the shard in/a.tar."""
    shard("in/a.tar", [(f"{number}.png", picture(8 + number, level)) for number, level in enumerate(levels)])


def images(path: str = "out/a.tar") -> list[str]:
    return [name for name in held(path) if not name.endswith(CERTIFICATE)]


def waiting() -> list[Path]:
    return sorted(Path("out").rglob(".dpveil-shards/*/*.png"))


class Killed(BaseException):
    """The process has ended."""


def killed(monkeypatch: pytest.MonkeyPatch, **how: Any) -> None:
    """Run until its shards would be packed."""

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch, suppress(Killed):
        patch.setattr(shards.Shards, "pack", die)
        released(**how)


def left_out(report: Report, name: str) -> bool:
    return report.notes[-1].startswith(f"not in out/a.tar: {name}, which this run did not release")


def test_an_original_where_releases_wait_is_never_packed() -> None:
    photos(1, 2)
    place = plan_tasks([Path("in")], Path("out"))[0].output
    place.parent.mkdir(parents=True)
    place.write_bytes(picture(8, 1))
    Path(f"{place}{CERTIFICATE}").write_bytes(b"{}")
    report = released()
    assert (counts(report), images(), left_out(report, "0.png")) == ((1, 0, 1), ["1.png"], True)
    assert waiting() == [place]
    assert place.read_bytes() == picture(8, 1)


def test_what_was_not_paid_for_is_not_packed_beside_what_was(ledger: Ledger) -> None:
    photos(1)
    released()
    unpaid = held()["0.png"]
    photos(1, 2)
    report = released(ledger=ledger)
    assert (counts(report), images(), left_out(report, "0.png")) == ((1, 0, 1), ["1.png"], True)
    assert [path.read_bytes() for path in waiting()] == [unpaid]
    assert counts(released(ledger=ledger, force=True)) == (2, 0, 0)
    assert (images(), waiting()) == (["0.png", "1.png"], [])


def test_paid_releases_of_photos_that_fail_or_have_left_stay(ledger: Ledger) -> None:
    photos(1, 2)
    released(ledger=ledger)
    before = held()
    shard("in/a.tar", [("0.png", b"broken"), ("2.png", picture(9))])
    report = released(ledger=ledger)
    assert (counts(report), report.notes, waiting()) == ((1, 0, 1), [], [])
    assert before.items() <= held().items()
    assert sorted(images()) == ["0.png", "1.png", "2.png"]


def test_with_force_a_shard_holds_the_releases_of_the_run_alone() -> None:
    """One photo is damaged, and one has left; releases of both wait, and that of the former is taken up."""
    photos(1, 2, 3)
    released()
    before = held()
    shard("in/a.tar", [("0.png", b"broken"), ("1.png", picture(9, 2))])
    report = released(force=True)
    assert (counts(report), images(), left_out(report, "0.png, 2.png")) == ((1, 0, 1), ["1.png"], True)
    assert {path.read_bytes() for path in waiting()} == {before["0.png"], before["2.png"]}
    photos(1, 2)
    assert counts(released()) == (0, 2, 0)
    assert (images(), held()["0.png"]) == (["0.png", "1.png"], before["0.png"])


def test_a_shard_that_was_put_in_place_of_another_does_not_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dry run is killed, then one that has something new; both have unpacked the shard of before."""
    photos(1, 2)
    released()
    released(out="newer")
    newer = held("newer/a.tar")
    killed(monkeypatch, dry=True)
    assert len(waiting()) == 2
    Path("newer/a.tar").replace("out/a.tar")
    assert counts(released()) == (0, 2, 0)
    assert (held(), waiting()) == (newer, [])
    photos(1, 2, 3)
    killed(monkeypatch)
    assert len(waiting()) == 3
    photos(1, 2)
    released(out="newest")
    Path("newest/a.tar").replace("out/a.tar")
    newest = held()
    for force in (False, True):
        with pytest.raises(OutputError, match=r"holds another 0\.png than what waits for it"):
            released(force=force)
    assert (held(), len(waiting())) == (newest, 3)


def test_what_a_killed_run_drew_anew_is_newer_than_its_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    photos(1, 2)
    released()
    before = held()
    killed(monkeypatch, force=True)
    drawn = {path.read_bytes() for path in waiting()}
    killed(monkeypatch, dry=True)
    assert counts(released()) == (0, 2, 0)
    assert drawn == {held()[name] for name in images()}
    assert held() != before
