"""Runs that a ledger pays for: what another run released meanwhile, and what was paid and thrown away."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dpveil.batch import run as batch
from dpveil.batch.releasing import release_all
from dpveil.batch.report import Report
from dpveil.batch.task import Choices, Task
from dpveil.batch.tasks import plan_tasks
from dpveil.cli.run_report import print_report
from dpveil.errors import OutputError
from dpveil.io import writing
from dpveil.ledger import Ledger, Limit
from dpveil.mechanisms.pixel import DPPix
from dpveil.mechanisms.placement import Placement
from dpveil.regions import parse

NAMES = ["a.png", "b.png", "c.png"]


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    for number, name in enumerate(NAMES):
        Image.fromarray(np.full((8, 8 + number, 3), 100, np.uint8)).save(f"in/{name}")
    with Ledger("sqlite:///budget.db", create=True) as opened:
        opened.set_limit("album", Limit("pure", epsilon=99))
        yield opened


def released(ledger: Ledger | None, only: str = "") -> Report:
    tasks = [task for task in plan_tasks([Path("in")], Path("out")) if only in task.name]
    settings: dict[str, Any] = {
        "method": DPPix(epsilon=1, block=4, neighbourhood=4),
        "regions": [parse("whole")],
        "if_none": None,
        "seed": None,
        "max_pixels": 10_000,
        "force": False,
        "ledger": ledger,
        "subject": None if ledger is None else "album",
    }
    return release_all(tasks, Choices(**settings))


def names(report: Report, status: str) -> list[str]:
    return [entry.source.name for entry in report.of(status)]


def paid(ledger: Ledger) -> tuple[int, int]:
    found = ledger.check()
    return found.debits, found.unstored


def meanwhile(monkeypatch: pytest.MonkeyPatch, method: str, ledger: Ledger | None) -> None:
    """Let another run release b.png right before ours does `method` with it."""
    real, done = getattr(batch.Run, method), list[Task]()

    def late(run: batch.Run, task: Task, *arguments: Any) -> Any:
        if task.name == "b.png" and not done:
            done.append(task)
            assert names(released(ledger, "b.png"), "released") == ["b.png"]
        return real(run, task, *arguments)

    monkeypatch.setattr(batch.Run, method, late)


def test_a_photo_whose_draw_fails_is_told_as_paid(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    real, drawn = Placement.drawn, list[int]()

    def draw(*given: Any) -> Any:
        drawn.append(1)
        if len(drawn) == 2:
            raise MemoryError("no room to draw")
        return real(*given)

    monkeypatch.setattr(Placement, "drawn", draw)
    report = released(ledger)
    assert (names(report, "released"), names(report, "failed")) == (["a.png", "c.png"], ["b.png"])
    assert [entry.source.name for entry in report.discarded] == ["b.png"]
    assert paid(ledger) == (3, 1)


def test_what_another_run_released_since_it_was_planned_is_not_paid(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = batch.Run.draw

    def draw(run: batch.Run, task: Task, waiting: Any) -> Any:
        planned = waiting()  # so that b.png is planned before another run writes it
        assert isinstance(planned, batch._Ready) or task.name != "b.png" or Path("out/b.png").exists()
        if task.name == "b.png" and not Path("out/b.png").exists():
            monkeypatch.setattr(batch.Run, "draw", real)
            assert names(released(ledger, "b.png"), "released") == ["b.png"]
        return real(run, task, lambda: planned)

    monkeypatch.setattr(batch.Run, "draw", draw)
    report = released(ledger)
    assert (names(report, "released"), names(report, "skipped")) == (["a.png", "c.png"], ["b.png"])
    assert paid(ledger) == (3, 0)
    assert report.discarded == []


def test_a_second_run_over_the_folder_is_refused_before_it_pays(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, refused = batch.Run._write, list[OutputError]()

    def write(run: batch.Run, task: Task, *arguments: Any) -> Any:
        with pytest.raises(OutputError, match="another run is releasing to out: wait") as error:
            released(ledger)
        refused.append(error.value)
        return real(run, task, *arguments)

    monkeypatch.setattr(batch.Run, "_write", write)
    assert names(released(ledger), "released") == NAMES
    assert [error.exit_code for error in refused] == [4, 4, 4]
    assert paid(ledger) == (3, 0)
    monkeypatch.undo()
    monkeypatch.chdir(ledger.files[0].parent)
    assert names(released(ledger), "skipped") == NAMES


def test_a_draw_that_another_run_made_needless_is_said_to_be_paid(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    meanwhile(monkeypatch, "_write", ledger)
    report = released(ledger)
    assert (names(report, "released"), names(report, "skipped")) == (["a.png", "c.png"], ["b.png"])
    assert paid(ledger) == (4, 1)
    assert [entry.source.name for entry in report.discarded] == ["b.png"]
    told = report.to_json()
    assert [entry.get("paid_and_discarded") for entry in told["skipped"]] == [True]
    assert not any("paid_and_discarded" in entry for entry in told["released"])
    print_report(report, json=False)
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if "paid and discarded" in line] == [
        "warning: in/b.png: paid and discarded, as it could not be written or another run was faster; nothing"
        " is refunded"
    ]


def test_what_was_paid_and_could_not_be_written_is_said(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full at b.png. Whether c.png is paid for by then, and written, depends on threads."""
    real = writing._write_beside

    def full(target: Path, *arguments: Any) -> Path:
        if target.name == "b.png":
            raise OSError(errno.ENOSPC, "no space")
        return real(target, *arguments)

    monkeypatch.setattr(writing, "_write_beside", full)
    report = released(ledger)
    assert names(report, "failed") == ["b.png"]
    assert names(report, "released") + names(report, "untried") == ["a.png", "c.png"]
    debits, unstored = paid(ledger)
    assert len(report.discarded) == unstored == debits - len(report.released) == 1
    assert report.discarded[0].to_json()["paid_and_discarded"] is True
    assert "disk is full" in report.discarded[0].to_json()["error"]


@pytest.mark.parametrize("stopped", ["c.png", "b.png"])
def test_an_interrupt_while_a_rerun_plans_leaves_finished_photos_finished(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], stopped: str
) -> None:
    """Photos before the one at which it comes are known to be finished, and no other is paid."""
    before = NAMES.index(stopped)
    for name in NAMES[:before]:
        released(ledger, name)
    real = batch.Run.prepare

    def prepare(run: batch.Run, task: Task) -> Any:
        if task.name == stopped:
            raise KeyboardInterrupt
        return real(run, task)

    monkeypatch.setattr(batch.Run, "prepare", prepare)
    report = released(ledger)
    assert report.stopped == "the run was interrupted"
    assert (names(report, "skipped"), names(report, "untried")) == (NAMES[:before], NAMES[before:])
    assert paid(ledger) == (before, 0)
    print_report(report, json=False)
    told = capsys.readouterr().err
    assert f"skipped {before}, no region 0, not tried {3 - before}" in told
    assert "run the same command again, which skips what is finished" in told


def test_a_dry_run_tells_what_releases_would_cost_and_draws_none(ledger: Ledger) -> None:
    """One photo is released already and one cannot be read: neither has a price."""
    released(ledger, "b.png")
    Path("in/c.png").write_bytes(b"no photo")
    settings: dict[str, Any] = {"method": DPPix(epsilon=1, block=4, neighbourhood=4), "dry": True}
    given = Choices(regions=[parse("whole")], max_pixels=10_000, ledger=ledger, subject="album", **settings)
    report = release_all(plan_tasks([Path("in")], Path("out")), given)
    assert [entry.status for entry in report.entries] == ["priced", "skipped", "failed"]
    assert str(report.entries[0].promise and report.entries[0].promise.total).startswith("1-DP")
    assert [path.name for path in sorted(Path("out").iterdir())] == ["b.png", "b.png.certificate.json"]
    assert paid(ledger) == (1, 0)
