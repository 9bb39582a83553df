"""A run over many photos: what one failure does to the others, and what becomes of every input."""

from __future__ import annotations

import errno
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import dpveil
from dpveil.batch import photo_release as batch
from dpveil.batch import tasks as sources
from dpveil.batch.report import Report
from dpveil.batch.run import release_all
from dpveil.batch.tasks import RunSettings, Task, plan_tasks
from dpveil.cli.run_report import cost, exit_code
from dpveil.errors import NoRegion, OutputError
from dpveil.io import writing
from dpveil.ledger import Ledger, Limit
from dpveil.mechanisms.pixel import DPPix
from dpveil.mechanisms.pixel.base import Pixels
from dpveil.regions import Finder, parse
from dpveil.release.plan import Plan


class NobodyIn(Finder):
    """Finds no one in photos of one width, and everything in others."""

    description = "someone"

    def __init__(self, width):
        self.width = width

    def __call__(self, photo):
        if photo.width == self.width:
            raise NoRegion("there is nobody in this photo", hint="choose another")
        return parse("whole")(photo)


def choices(**changes):
    settings = {
        "method": DPPix(epsilon=1, block=4, neighbourhood=4),
        "regions": [parse("whole")],
        "if_none": None,
        "seed": None,
        "max_pixels": 10_000,
        "force": False,
    }
    return RunSettings(**settings | changes)


@pytest.fixture
def photos(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    for number, name in enumerate("abc"):
        Image.fromarray(np.full((8, 8 + number, 3), 100, np.uint8)).save(f"in/{name}.png")
    return lambda: plan_tasks([Path("in")], Path("out"))


def names(entries):
    return [entry.source.name for entry in entries]


def all_of(report):
    return sorted(Path(entry["input"]).name for entries in report.to_json().values() for entry in entries)


def files():
    found = Path("out").rglob("*") if Path("out").exists() else []
    return sorted(str(path.relative_to("out")) for path in found if not path.name.startswith("."))


def test_all_done(photos):
    report = release_all(photos(), choices())
    assert (names(report.released), exit_code(report)) == (["a.png", "b.png", "c.png"], 0)
    for entry in report.to_json()["released"]:
        assert dpveil.verify(entry["output"]).publishable
        assert Path(entry["certificate"]).is_file()


def test_a_rerun_skips_before_reading_and_draws_nothing(photos, monkeypatch):
    release_all(photos(), choices())
    before = {name: Path("out", name).read_bytes() for name in files()}
    monkeypatch.setattr(sources, "read", pytest.fail)
    monkeypatch.setattr(Plan, "release", pytest.fail)
    report = release_all(photos(), choices())
    assert (names(report.skipped), exit_code(report)) == (["a.png", "b.png", "c.png"], 0)
    assert {name: Path("out", name).read_bytes() for name in files()} == before


@pytest.mark.parametrize(
    "change",
    [
        {"method": DPPix(epsilon=2, block=4, neighbourhood=4)},
        {"method": DPPix(epsilon=1, block=8, neighbourhood=4)},
        {"regions": [parse("0,0,4,4")]},
        {"seed": 1},
    ],
)
def test_outputs_with_other_settings_are_failures_and_stay(photos, change):
    release_all(photos(), choices())
    before = {name: Path("out", name).read_bytes() for name in files()}
    report = release_all(photos(), choices(**change))
    assert (names(report.failed), exit_code(report)) == (["a.png", "b.png", "c.png"], 1)
    assert "force=True" in report.failed[0].failure.hint
    told = release_all(photos(), choices(**change), options={"force": "--force"}).failed[0]
    assert "release this one file with --force" in told.failure.hint
    assert {name: Path("out", name).read_bytes() for name in files()} == before
    assert len(release_all(photos(), choices(**change, force=True)).released) == 3


@pytest.mark.parametrize("damage", ["edit", "no certificate", "no image", "foreign"])
def test_an_output_that_does_not_verify_is_never_skipped(photos, damage, monkeypatch):
    release_all(photos(), choices())
    image, beside = Path("out/b.png"), Path("out/b.png.certificate.json")
    if damage == "edit":
        image.write_bytes(image.read_bytes() + b"!")
    if damage in ("no certificate", "foreign"):
        beside.unlink()
    if damage == "foreign":
        image.write_bytes(b"my only copy")
    if damage == "no image":
        image.unlink()
    with monkeypatch.context() as patch:
        drawn = []
        patch.setattr(Plan, "release", lambda *args, **more: drawn.append(args))
        report = release_all(photos(), choices())
    assert (names(report.skipped), names(report.failed), drawn) == (["a.png", "c.png"], ["b.png"], [])
    assert len(release_all(photos(), choices(force=True)).released) == 3
    assert dpveil.verify(image).publishable


def test_an_output_that_appears_meanwhile_is_not_replaced(photos, monkeypatch):
    real = batch.PhotoReleaser._write

    def write(run, task, *drawn):
        if task.name == "b.png":
            Path("out/b.png").write_bytes(b"somebody else's")
        real(run, task, *drawn)

    monkeypatch.setattr(batch.PhotoReleaser, "_write", write)
    report = release_all(photos(), choices())
    assert (names(report.released), names(report.failed), exit_code(report)) == (
        ["a.png", "c.png"],
        ["b.png"],
        1,
    )
    assert Path("out/b.png").read_bytes() == b"somebody else's"
    assert "b.png.certificate.json" not in files()


def test_a_new_sibling_causes_no_second_release_and_no_overwriting(photos):
    Path("in/a.png").rename("in/a.tiff")
    Image.open("in/a.tiff").save("in/a.tiff")
    release_all(photos(), choices())
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save("in/a.webp", lossless=True)
    before = Path("out/a.png").read_bytes()
    report = release_all(photos(), choices())
    assert names(report.failed) == ["a.tiff", "a.webp"]
    assert all("not released again" in entry.failure.message for entry in report.failed)
    assert Path("out/a.png").read_bytes() == before
    for name in ("a.png", "a.png.certificate.json"):
        Path("out", name).rename(Path("out", "a.tiff.png" + name.removeprefix("a.png")))
    report = release_all(photos(), choices())
    assert (names(report.released), names(report.failed)) == (["a.webp"], [])


def test_one_unreadable_photo_is_reported_and_the_rest_released(photos):
    Path("in/b.png").write_bytes(b"")
    report = release_all(photos(), choices())
    assert (names(report.released), names(report.failed), exit_code(report)) == (
        ["a.png", "c.png"],
        ["b.png"],
        1,
    )
    assert files() == ["a.png", "a.png.certificate.json", "c.png", "c.png.certificate.json"]


def test_photos_without_a_region_are_listed_and_not_copied(photos):
    report = release_all(photos(), choices(regions=[NobodyIn(9)]))
    assert (names(report.no_region), names(report.failed), exit_code(report)) == (["b.png"], [], 1)
    assert not Path("out/b.png").exists()
    assert report.no_region[0].failure.hint == "choose another"


@pytest.mark.parametrize(("if_none", "status"), [("whole", "consistent"), ("copy", "unprotected")])
def test_what_to_do_without_a_region_can_be_chosen(photos, if_none, status):
    report = release_all(photos(), choices(regions=[NobodyIn(9)], if_none=if_none))
    assert (len(report.released), exit_code(report)) == (3, 0)
    assert dpveil.verify("out/b.png").status == status
    assert (cost(report.released[1].promise) == "UNPROTECTED COPY") == (if_none == "copy")


@pytest.mark.parametrize(
    ("first", "again"),
    [("others", "others+whole"), ("others+copy", "others"), ("others", None), ("others", "copy")],
)
def test_a_part_that_was_passed_over_is_kept_by_runs_that_pass_it_over(photos, first, again):
    regions = [NobodyIn(9), parse("0,0,4,4")]
    assert len(release_all(photos(), choices(regions=regions, if_none=first)).released) == 3
    stated = dpveil.verify("out/b.png")
    assert (stated.publishable, stated.certificate.passed_over) == (True, ("someone",))
    report = release_all(photos(), choices(regions=regions, if_none=again, at_least="weak"))
    kept = again is not None and again.startswith("others")
    assert names(report.skipped) == (["a.png", "b.png", "c.png"] if kept else ["a.png", "c.png"])
    assert names(report.failed) == ([] if kept else ["b.png"])


@pytest.mark.parametrize("last", ["whole", "copy"])
def test_what_was_made_where_nothing_was_found_is_kept_by_runs_that_make_it(photos, last):
    def run(if_none):
        return release_all(photos(), choices(regions=[NobodyIn(9)], if_none=if_none))

    assert len(run(f"others+{last}").released) == 3
    assert len(run(last).skipped) == len(run(f"others+{last}").skipped) == 3
    for other in (None, "others", "copy" if last == "whole" else "whole"):
        assert names(run(other).failed) == ["b.png"]


def test_a_seed_gives_every_photo_its_own_noise_and_the_same_again(photos, monkeypatch):
    flat = np.full((8, 8, 3), 100, np.uint8)
    for name in "abc":
        Image.fromarray(flat).save(f"in/{name}.png")
    release_all(photos(), choices(seed=3))
    first = {name: np.asarray(Image.open(f"out/{name}.png")) for name in "abc"}
    assert (first["a"] != first["b"]).any()
    release_all(plan_tasks([Path("in")], Path("again")), choices(seed=3))
    for name in "abc":
        assert (np.asarray(Image.open(f"again/{name}.png")) == first[name]).all()
    assert not dpveil.verify("out/a.png").publishable


def test_what_nobody_foresaw_fails_closed_and_alone(photos, monkeypatch):
    real = Plan.release

    def sometimes(plan, **more):
        if plan.photo.width == 9:
            raise ZeroDivisionError("oops")
        return real(plan, **more)

    monkeypatch.setattr(Plan, "release", sometimes)
    report = release_all(photos(), choices())
    assert (names(report.failed), exit_code(report)) == (["b.png"], 1)
    assert report.failed[0].failure.message == "unexpected ZeroDivisionError: oops"
    assert "b.png" not in files()


def test_an_interrupt_while_saving_waits_until_the_pair_is_whole(photos, monkeypatch):
    real = batch.PhotoReleaser._save

    def save(*args):
        signal.raise_signal(signal.SIGINT)
        real(*args)

    monkeypatch.setattr(batch.PhotoReleaser, "_save", save)
    report = release_all(photos(), choices())
    assert names(report.released) in (["a.png"], ["a.png", "b.png"])  # b.png may be drawn by then
    assert exit_code(report) == 130
    assert dpveil.verify("out/a.png").publishable
    assert all_of(report) == ["a.png", "b.png", "c.png"]


# Runs that a ledger pays for: what another run released meanwhile, and what was paid and thrown away.


NAMES = ["a.png", "b.png", "c.png"]


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    for number, name in enumerate(NAMES):
        Image.fromarray(np.full((8, 8 + number, 3), 100, np.uint8)).save(f"in/{name}")
    with Ledger("sqlite:///budget.db", create=True) as opened:
        opened.set_limit("album", Limit("pure", epsilon=99))
        yield opened


def paid_run(book: Ledger | None, only: str = "") -> Report:
    tasks = [task for task in plan_tasks([Path("in")], Path("out")) if only in task.name]
    settings: dict[str, Any] = {
        "method": DPPix(epsilon=1, block=4, neighbourhood=4),
        "regions": [parse("whole")],
        "if_none": None,
        "seed": None,
        "max_pixels": 10_000,
        "force": False,
        "ledger": book,
        "subject": None if book is None else "album",
    }
    return release_all(tasks, RunSettings(**settings))


def names_in(report: Report, status: str) -> list[str]:
    return [entry.source.name for entry in report.of(status)]


def paid(book: Ledger) -> tuple[int, int]:
    found = book.check()
    return found.debits, found.unstored


def test_a_photo_whose_draw_fails_is_told_as_paid(book: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    real, drawn = Pixels.draw, list[int]()

    def draw(*given: Any) -> Any:
        drawn.append(1)
        if len(drawn) == 2:
            raise MemoryError("no room to draw")
        return real(*given)

    monkeypatch.setattr(Pixels, "draw", draw)
    report = paid_run(book)
    assert (names_in(report, "released"), names_in(report, "failed")) == (["a.png", "c.png"], ["b.png"])
    assert [entry.source.name for entry in report.discarded] == ["b.png"]
    assert paid(book) == (3, 1)


def test_what_another_run_released_since_it_was_planned_is_not_paid(
    book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = batch.PhotoReleaser.finish

    def turn(run: batch.PhotoReleaser, task: Task, waiting: Any) -> Any:
        planned = waiting()  # so that b.png is planned before another run writes it
        assert isinstance(planned, batch.PlannedPhoto) or task.name != "b.png" or Path("out/b.png").exists()
        if task.name == "b.png" and not Path("out/b.png").exists():
            monkeypatch.setattr(batch.PhotoReleaser, "finish", real)
            assert names_in(paid_run(book, "b.png"), "released") == ["b.png"]
        return real(run, task, lambda: planned)

    monkeypatch.setattr(batch.PhotoReleaser, "finish", turn)
    report = paid_run(book)
    assert (names_in(report, "released"), names_in(report, "skipped")) == (["a.png", "c.png"], ["b.png"])
    assert paid(book) == (3, 0)
    assert report.discarded == []


def test_a_second_run_over_the_folder_is_refused_before_it_pays(
    book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, refused = batch.PhotoReleaser._write, list[OutputError]()

    def write(run: batch.PhotoReleaser, task: Task, *arguments: Any) -> Any:
        with pytest.raises(OutputError, match="another run is releasing to out: wait") as error:
            paid_run(book)
        refused.append(error.value)
        return real(run, task, *arguments)

    monkeypatch.setattr(batch.PhotoReleaser, "_write", write)
    assert names_in(paid_run(book), "released") == NAMES
    assert [error.exit_code for error in refused] == [4, 4, 4]
    assert paid(book) == (3, 0)
    monkeypatch.undo()
    monkeypatch.chdir(book.files[0].parent)
    assert names_in(paid_run(book), "skipped") == NAMES


def test_a_dry_run_tells_what_releases_would_cost_and_draws_none(book: Ledger) -> None:
    """One photo is released already and one cannot be read: neither has a price."""
    paid_run(book, "b.png")
    Path("in/c.png").write_bytes(b"no photo")
    settings: dict[str, Any] = {"method": DPPix(epsilon=1, block=4, neighbourhood=4), "dry": True}
    given = RunSettings(regions=[parse("whole")], max_pixels=10_000, ledger=book, subject="album", **settings)
    report = release_all(plan_tasks([Path("in")], Path("out")), given)
    assert [entry.status for entry in report.entries] == ["priced", "skipped", "failed"]
    assert str(report.entries[0].promise and report.entries[0].promise.total).startswith("1-DP")
    assert [path.name for path in sorted(Path("out").iterdir())] == ["b.png", "b.png.certificate.json"]
    assert paid(book) == (1, 0)


def test_what_was_paid_and_could_not_be_written_is_said(
    book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full at b.png. Whether c.png is paid for by then, and written, depends on threads."""
    real = writing._write_beside

    def full(target: Path, *arguments: Any) -> Path:
        if target.name == "b.png":
            raise OSError(errno.ENOSPC, "no space")
        return real(target, *arguments)

    monkeypatch.setattr(writing, "_write_beside", full)
    report = paid_run(book)
    assert names_in(report, "failed") == ["b.png"]
    assert names_in(report, "released") + names_in(report, "untried") == ["a.png", "c.png"]
    debits, unstored = paid(book)
    assert len(report.discarded) == unstored == debits - len(report.released) == 1
    assert report.discarded[0].to_json()["paid_and_discarded"] is True
    assert "disk is full" in report.discarded[0].to_json()["error"]
