"""Runs by several processes: the same report and files as by one, whatever dies; nothing is paid twice."""

from __future__ import annotations

import os
import signal
import threading
import time
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from workers_made import Deadly, Everything, Onlooker

import dpveil
from dpveil.batch import workers as batch_workers
from dpveil.batch.report import Report
from dpveil.batch.run import release_all
from dpveil.batch.tasks import RunSettings, plan_tasks
from dpveil.cli.run_report import exit_code
from dpveil.errors import (
    BudgetExceeded,
    DPVeilError,
    LedgerError,
    NoRegion,
    PhotoError,
    UsageError,
)
from dpveil.ledger import Ledger, Limit
from dpveil.mechanisms.pixel import DPPix
from dpveil.processes import Channel
from dpveil.regions import parse
from dpveil.release.keys import SigningKey

pytestmark = pytest.mark.usefixtures("photos")

COUNT = 7
TIMES = Path("times")


@pytest.fixture
def photos(elsewhere: Path) -> Path:
    """Seven photos, 8 to 14 pixels wide; the state of their folder is here as well."""
    Path("in").mkdir()
    for number in range(COUNT):
        Image.fromarray(np.full((8, 8 + number, 3), 100, np.uint8)).save(f"in/{number}.png")
    return elsewhere


def choices(**changes: Any) -> RunSettings:
    settings: dict[str, Any] = {
        "method": DPPix(epsilon=1, block=4, neighbourhood=4),
        "regions": [parse("whole")],
        "max_pixels": 10_000,
    }
    if changes.get("ledger") is not None:
        settings["subject"] = "album"
    return RunSettings(**settings | changes)


def released(given: RunSettings, out: str = "out", jobs: int = 2, **more: Any) -> Report:
    return release_all(plan_tasks([Path("in")], Path(out)), given, jobs=jobs, **more)


def names(report: Report, status: str) -> list[str]:
    return [entry.source.stem for entry in report.of(status)]


def paid(ledger: Ledger) -> tuple[int, int]:
    found = ledger.check()
    return found.debits, found.unstored


def files(out: str = "out") -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(Path(out).iterdir())}


def test_several_processes_make_the_files_and_the_report_of_one(photos: Path) -> None:
    """With a copy, an unreadable photo, one without a region, and an output that is in the way; a rerun skips
    what is there. Certificates are signed here, by a key that no worker has, and what is seen comes in order.
    """
    Path("in/3.png").write_bytes(b"no photo")
    Path("in/5.png").write_bytes(Path("in/4.png").read_bytes())
    key = SigningKey.generate()
    given = choices(regions=[Everything(TIMES, empty=9)], seed=5, sign=key)
    steps, told = [], {}
    for jobs in (1, 2):
        Path("out").mkdir()
        Path("out/6.png").write_bytes(b"in the way")
        seen: list[tuple[str, int]] = []
        watched = {"summarise": Onlooker(TIMES), "collect": seen.append, "step": lambda: steps.append(1)}
        report = released(given, "out", jobs, options={"force": "--force"}, **watched)
        assert [name for name, _ in seen] == ["0.png", "2.png", "4.png", "5.png"]
        assert (os.getpid() in {process for _, process in seen}) == (jobs == 1)
        assert dpveil.verify("out/0.png", trust=[key.public]).signer == key.public.fingerprint
        assert [entry.source.stem for entry in report.entries] == list("0123456")
        assert (names(report, "no_region"), names(report, "failed")) == (["1"], ["3", "6"])
        assert "--force" in report.entries[6].to_json()["hint"]
        told[jobs] = (report.to_json(), report.errors, files())
        assert len(steps) == jobs * COUNT
        Path("out").rename(f"out{jobs}")
    assert told[1] == told[2]
    assert told[1][1] == [NoRegion, PhotoError, DPVeilError]
    Path("out2").rename("out")
    again = released(given, jobs=1)
    assert (len(again.released), len(again.skipped)) == (0, COUNT - 3)
    assert files() == told[1][2]


def accounted(report: Report, ledger: Ledger, *deadly: str) -> list[str]:
    """Return the photos that were paid and lost, after checking that all others were released."""
    lost = [entry.source.stem for entry in report.discarded]
    failed = names(report, "failed")
    assert {*failed} == {*lost, *deadly}
    assert {*lost} <= {*deadly}
    assert [*names(report, "released"), *failed] == sorted(
        [*"0123456"], key=lambda name: (name in failed, name)
    )
    debits, unstored = paid(ledger)
    assert debits == len(report.released) + len(lost)
    assert unstored <= len(lost)  # of one that died before the last rename, the ledger knows the file
    hints = {entry.source.stem: entry.failure.hint for entry in report.failed if entry.failure}
    assert all(("costs again" in hints[name]) is (name in lost) for name in failed)
    return lost


def test_every_release_is_paid_before_it_is_drawn_and_what_is_lost_then_is_said(ledger: Ledger) -> None:
    """The worker dies right after a draw."""
    TIMES.write_bytes(b"x")
    given = choices(ledger=ledger, post_processing=[Deadly(TIMES, deadly=10)])
    lost = accounted(released(given), ledger, "2")
    assert "2" in lost
    assert names(released(given, jobs=1), "released") == lost
    assert paid(ledger)[0] == COUNT + len(lost)


def test_a_release_that_its_worker_was_naming_when_it_died_is_complete_and_paid_once(ledger: Ledger) -> None:
    """The worker dies between the names of the certificate and of the image."""
    TIMES.write_bytes(b"x")
    given = choices(ledger=ledger, post_processing=[Deadly(TIMES, deadly=10, naming=True)])
    report = released(given)
    lost = accounted(report, ledger)
    assert not TIMES.read_bytes()
    assert all(dpveil.verify(entry.output).publishable for entry in report.released)
    assert names(released(given, jobs=1), "released") == lost


def test_a_photo_that_kills_every_worker_fails_unpaid_and_ends_nothing(ledger: Ledger) -> None:
    TIMES.write_bytes(b"x" * 99)
    report = released(choices(ledger=ledger, regions=[Everything(TIMES, deadly=10)]))
    assert "2" not in accounted(report, ledger, "2")
    assert "out of memory" in report.failed[-1].failure.message
    assert (len(TIMES.read_bytes()), exit_code(report)) == (98, 1)


def test_what_was_written_before_its_worker_died_is_released(ledger: Ledger) -> None:
    """And is neither drawn again nor paid again."""
    TIMES.write_bytes(b"x")
    report = released(choices(ledger=ledger), summarise=Onlooker(TIMES, deadly=10))
    assert "2" not in accounted(report, ledger)
    assert "2" in names(report, "released")
    assert all(dpveil.verify(entry.output).publishable for entry in report.released)
    assert len(report.released) >= COUNT - 1


def test_a_budget_that_is_used_up_refuses_the_rest_one_by_one(ledger: Ledger) -> None:
    ledger.set_limit("album", Limit("pure", epsilon=4))
    report = released(choices(ledger=ledger))
    assert (len(report.released), report.errors) == (4, [BudgetExceeded] * 3)
    assert all("album has epsilon 0 left" in entry.failure.message for entry in report.failed)
    assert (paid(ledger), exit_code(report)) == ((4, 0), 3)


def test_a_ledger_that_fails_stops_the_run(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = Ledger.debit, []

    def debit(*given: Any, **more: Any) -> Any:
        calls.append(1)
        if len(calls) > 2:
            raise LedgerError("the ledger is gone", hint="look for it")
        return real(*given, **more)

    monkeypatch.setattr(Ledger, "debit", debit)
    report = released(choices(ledger=ledger))
    assert (len(report.released), report.stopped, exit_code(report)) == (2, "the ledger cannot be used", 4)
    assert len(report.failed) + len(report.untried) == COUNT - 2
    assert {entry.failure.message for entry in report.failed} == {"the ledger is gone"}
    assert report.untried
    assert paid(ledger) == (2, 0)


def test_an_interrupt_lets_what_workers_have_be_paid_drawn_and_written(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes while the third photo is paid for, and no other is given out from then on."""
    real, pays, alone = Ledger.debit, list[int](), threading.Lock()

    def debit(*given: Any, **more: Any) -> Any:
        with alone:
            pays.append(1)
            if len(pays) == 3:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.2)
        return real(*given, **more)

    monkeypatch.setattr(Ledger, "debit", debit)
    report = released(choices(ledger=ledger))
    assert (report.stopped, exit_code(report)) == ("the run was interrupted", 130)
    assert len(report.released) == len(pays) <= 4  # one that the other worker had
    assert len(report.untried) == COUNT - len(pays)
    assert paid(ledger) == (len(pays), 0)
    assert len([name for name in files() if name.endswith(".png")]) == len(pays)


def test_a_worker_whose_run_is_gone_ends() -> None:
    with pytest.raises(SystemExit):
        batch_workers._Remote(Channel(BytesIO(), BytesIO()), "ledger").debit("album")


def test_what_cannot_be_sent_is_refused_before_anything_is_drawn(photos: Path) -> None:
    class Local(Everything):
        pass

    with pytest.raises(UsageError, match="cannot be sent to other processes"):
        released(choices(regions=[Local(TIMES)]))
    assert not Path("out").exists()


def test_workers_that_cannot_start_stop_the_run(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_workers, "TARGET", "dpveil.nothing:serve")
    report = released(choices())
    assert (len(report.untried), report.stopped) == (COUNT, "its processes cannot start, or go on")
    assert exit_code(report) == 4
