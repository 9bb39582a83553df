"""Renderings that fail: for reasons that are known before paying, by files that change, and half removed."""

import json
import os
import shutil
from collections.abc import Iterator
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

pytest.importorskip("av")

from clips_made import FRAMES, HEIGHT, WIDTH, make_clip, make_plan, picture, track

from dpveil.batch.report import Report
from dpveil.batch.tasks import RunSettings, Task
from dpveil.cli.run_report import print_report
from dpveil.core.region import Box
from dpveil.errors import BudgetRefused, ClipError, DPVeilError, OutputError, RegionError
from dpveil.faces.attributes_method import Attributes
from dpveil.faces.geometry.align import Frame
from dpveil.faces.geometry.landmarks import Landmarks, Predictor
from dpveil.ledger import Ledger, Limit
from dpveil.mechanisms.pixel import DPPix, Fill
from dpveil.release.plan import choose_method
from dpveil.video import render_job
from dpveil.video.clip_in_batch import ClipRun, earlier_entry
from dpveil.video.facts import Key, Track
from dpveil.video.plan import VideoPlan
from dpveil.video.reading import open_clip
from dpveil.video.render_job import STATE, check_possible, folder_of, hold_rendering, render
from dpveil.video.verification import verify_clip

METHOD = DPPix(epsilon=3, block=8, neighbourhood=4)


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    return make_clip(tmp_path / "clip.mp4")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(f"sqlite:///{tmp_path / 'budget.db'}", create=True) as made:
        made.set_limit("album", Limit("pure", epsilon=100))
        yield made


def plan_of(clip: Path, **more: Any) -> VideoPlan:
    return make_plan(clip, METHOD, [track(1, 0)], **more)


def debits(ledger: Ledger) -> int:
    return sum(type(entry.event).__name__ == "Debit" for entry in ledger.history("album"))


def near(path: Path) -> Path:
    """Write a clip of which two frames are a third of a millisecond apart."""
    unit = Fraction(1, 90_000)
    with av.open(str(path), "w") as made:
        stream: Any = made.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.codec_context.max_b_frames = 0
        stream.codec_context.time_base = stream.time_base = unit
        for index, time in enumerate([0, 3600, 3630, *range(7200, 7200 + 3600 * (FRAMES - 3), 3600)]):
            frame = av.VideoFrame.from_ndarray(picture(index), format="rgb24")
            frame.pts, frame.time_base = time, unit
            made.mux(stream.encode(frame))
        made.mux(stream.encode(None))
    return path


@pytest.mark.parametrize("why", ["sound", "times", "encoder"])
def test_what_must_fail_is_refused_before_it_is_paid(
    tmp_path: Path, ledger: Ledger, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clip, out, more, words = tmp_path / "clip.mp4", tmp_path / "private.mkv", {}, "a millisecond apart"
    if why == "sound":
        make_clip(clip, sound=True)
        out, more, words = tmp_path / "private.webm", {"keep_audio": True}, "webm files do not take"
    elif why == "times":
        near(clip)
    else:
        make_clip(clip)
        monkeypatch.setattr("dpveil.video.writing.is_installed", lambda name: False)
        words = "no libx264"
    plan = plan_of(clip, **more)
    with pytest.raises(DPVeilError, match=words):
        render(plan, clip, out, ledger=ledger, subject="album")
    assert debits(ledger) == 0
    assert not folder_of(out).exists()


PLACE = import_module("dpveil.faces.geometry.place")  # there is a function of that name, too


class Looked(Predictor):
    """Finds landmarks in every box, as sure as it is told."""

    def __init__(self, spread: float) -> None:
        self.spread = spread

    def near(self, image: Any, box: Box, angle: float = 0.0) -> Landmarks:
        ends = np.array([(box.x, box.y), (box.x + box.w, box.y + box.h)])
        points = ends[0] + (Frame().points() / Frame().size) * (ends[1] - ends[0])
        return Landmarks(points, self.spread, 1.0)


def heads(placing: str) -> Attributes:
    """Return a method that reads the tone of a face, which costs."""
    return Attributes(placing=placing, attributes="tone=3", model="none", protect="head")


def test_a_clip_that_is_replaced_while_it_is_read_is_refused(tmp_path: Path) -> None:
    """Its regions would be replaced in frames of the other clip."""
    path = make_clip(tmp_path / "a.mp4")
    frames = open_clip(path).frames()
    next(frames)
    os.utime(path, ns=(1, 1))
    with pytest.raises(ClipError):
        list(frames)


@pytest.mark.parametrize("sure", [True, False])
def test_a_face_without_sure_landmarks_is_refused_before_it_is_paid(
    clip: Path, tmp_path: Path, ledger: Ledger, sure: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PLACE, "locator", lambda: Looked(0.0 if sure else 1.0))
    face = Track(number=7, kind="face", finder="faces", keys=(Key(5, 8, 8, 16, 16),), end="left")
    plan, out = make_plan(clip, heads("landmarks"), [face]), tmp_path / "private.mp4"
    if sure:
        assert render(plan, clip, out, ledger=ledger, subject="album").path == out
        assert debits(ledger) == 1
        return
    for _ in range(2):
        with pytest.raises(RegionError, match="track 7, frame 5: no sure landmarks"):
            render(plan, clip, out, ledger=ledger, subject="album")
        assert debits(ledger) == 0
        assert not folder_of(out).exists()
    opened = open_clip(clip)
    with pytest.raises(RegionError, match="track 7, frame 5: no sure landmarks"):
        check_possible(plan, opened, None)
    check_possible(make_plan(clip, heads("auto"), [face]), opened, None)


def stopped(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


def interrupted(place: Any, name: str, *given: Any, by: Any = stopped, **more: Any) -> None:
    """Render with `by` in the place of a function that interrupts it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(place, name, by)
        with pytest.raises(KeyboardInterrupt):
            render(*given, **more)


@pytest.mark.parametrize("when", ["rendering", "naming"])
@pytest.mark.parametrize("room", [True, False])
def test_what_goes_on_is_paid_again_if_the_ledger_lacks_its_debit(
    clip: Path, tmp_path: Path, when: str, room: bool
) -> None:
    out, base, backup = tmp_path / "private.mp4", tmp_path / "budget.db", tmp_path / "backup.db"
    url = f"sqlite:///{base}"
    with Ledger(url, create=True) as ledger:
        ledger.set_limit("album", Limit("pure", epsilon=100 if room else 4))
        if not room:
            ledger.debit("album", plan_of(clip).total, "another")
    shutil.copy2(base, backup)
    with Ledger(url) as ledger:
        ledger.set_limit("album", Limit("pure", epsilon=100))
        place, name = (render_job._Job, "write") if when == "rendering" else (render_job, "place_together")
        interrupted(place, name, plan_of(clip), clip, out, ledger=ledger, subject="album")
    for path in tmp_path.glob("budget.db-*"):
        path.unlink()
    shutil.copy2(backup, base)
    with Ledger(url, restored=True) as ledger:
        before = debits(ledger)
        if room:
            made = render(plan_of(clip), clip, out, ledger=ledger, subject="album")
            assert (made.resumed, debits(ledger)) == (True, before + 1)
            assert ledger.knows("album", made.certificate.output.sha256)
        else:
            with pytest.raises(BudgetRefused):
                render(plan_of(clip), clip, out, ledger=ledger, subject="album")
            assert not out.exists()


def test_a_paid_rendering_is_kept_beside_the_release_that_it_was_to_replace(
    clip: Path, tmp_path: Path, ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "private.mp4"
    paying: Any = {"ledger": ledger, "subject": "album"}
    render(plan_of(clip), clip, out, **paying)
    interrupted(render_job._Job, "write", plan_of(clip), clip, out, replace=True, **paying)
    entry = earlier_entry(Task(clip, out, out.name), plan_of(clip), paying)
    assert entry is not None
    assert entry.status == "skipped"
    assert any("was begun and not finished, and is kept in " in str(note) for note in entry.warnings)
    assert (folder_of(out) / STATE).is_file()
    print_report(Report(entries=[entry]), json=False)
    assert "was begun and not finished, and is kept in " in capsys.readouterr().err
    assert render(plan_of(clip), clip, out, replace=True, **paying).resumed
    assert debits(ledger) == 2


def test_one_that_is_killed_while_it_removes_its_state_is_finished(
    clip: Path, tmp_path: Path, ledger: Ledger
) -> None:
    out, unlink = tmp_path / "private.mp4", Path.unlink
    paying: Any = {"ledger": ledger, "subject": "album", "replace": True}

    def killed(self: Path, missing_ok: bool = False) -> None:
        if self.name == STATE and self.exists():
            raise KeyboardInterrupt
        unlink(self, missing_ok=missing_ok)

    def once() -> None:
        interrupted(Path, "unlink", plan_of(clip), clip, out, by=killed, **paying)

    once()
    before = out.read_bytes()
    render(plan_of(clip), clip, out, **paying)
    assert (out.read_bytes(), debits(ledger)) == (before, 1)
    assert not folder_of(out).exists()
    once()
    entry = earlier_entry(Task(clip, out, out.name), plan_of(clip), {"ledger": ledger, "subject": "album"})
    assert entry is not None
    assert not any("not finished" in str(note) for note in entry.warnings)
    assert not folder_of(out).exists()


@pytest.mark.parametrize(("name", "data"), [("clip.mp4", b"?"), (STATE, b""), (STATE, b"[]"), (STATE, b"{}")])
def test_a_damaged_state_is_one_line(clip: Path, tmp_path: Path, name: str, data: bytes) -> None:
    out = tmp_path / "private.mp4"
    interrupted(render_job, "place_together", plan_of(clip), clip, out)
    (folder_of(out) / name).write_bytes(data)
    with pytest.raises(OutputError, match="is damaged: remove it"):
        render(plan_of(clip), clip, out)
    assert not out.exists()


def test_only_its_owner_can_read_the_state_and_other_settings_are_refused(clip: Path, tmp_path: Path) -> None:
    out = tmp_path / "private.mp4"
    interrupted(render_job._Job, "write", plan_of(clip), clip, out)
    folder = folder_of(out)
    nonce = json.loads((folder / STATE).read_text())["nonce"]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    other = make_plan(clip, METHOD, [track(1, 3)])
    with pytest.raises(OutputError, match="with another plan: give the same"):
        render(other, clip, out)
    with pytest.raises(OutputError, match="with another seed"):
        render(plan_of(clip), clip, out, seed=3)
    interrupted(render_job._Job, "write", plan_of(clip), clip, out)
    assert json.loads((folder / STATE).read_text())["nonce"] == nonce
    assert not render(other, clip, out, replace=True).resumed
    assert not folder.exists()


SETTINGS = {"clip": "00"}


def test_the_lock_of_another_process_stays(tmp_path: Path) -> None:
    """One ends; another begins between the removal of its folder and that of its lock; a third comes."""
    out = tmp_path / "private.mp4"
    one = hold_rendering(out, SETTINGS)
    one.__enter__().remove()
    with hold_rendering(out, SETTINGS):
        one.__exit__(None, None, None)
        with pytest.raises(OutputError, match="another process"), hold_rendering(out, SETTINGS):
            pytest.fail("both have it")


def test_a_clip_without_a_certificate_is_not_replaced(clip: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.mp4"
    out.write_bytes(b"another original")
    method, regions = choose_method(Fill(), "0,8,16,16", {})
    clips = ClipRun(choices=RunSettings(method=method, regions=regions, force=True))
    with pytest.raises(OutputError, match="may be an original"):
        clips.release(Task(clip, out, out.name))
    assert out.read_bytes() == b"another original"
    out.unlink()
    for _ in range(2):
        clips.release(Task(clip, out, out.name))
    assert json.loads((tmp_path / "a.mp4.certificate.json").read_text())["output"]


def test_a_file_that_would_not_be_verified_gets_no_name(
    clip: Path, tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was paid is kept: the next process renders the same frames again, and pays nothing."""
    out = tmp_path / "private.mp4"
    with monkeypatch.context() as patch:
        patch.setattr(render_job, "content_problems", lambda *given, **more: iter(["it is too long"]))
        with pytest.raises(OutputError, match="it is too long"):
            render(plan_of(clip), clip, out, ledger=ledger, subject="album")
    assert not out.exists()
    assert not Path(f"{out}.certificate.json").exists()
    assert render(plan_of(clip), clip, out, ledger=ledger, subject="album").resumed
    assert verify_clip(out).status == "consistent"
    assert debits(ledger) == 1
