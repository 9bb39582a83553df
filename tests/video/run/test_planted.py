"""Hidden folders that came with an archive, disks that are full, and names that nothing can be written to."""

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("av")

import av
from clips_made import make_clip, make_plan, track

from dpveil.batch import Choices, Task
from dpveil.batch.state import State as Remembered
from dpveil.errors import ClipError, OutputError
from dpveil.mechanisms.pixel import Fill
from dpveil.release.plan import chosen
from dpveil.video import containers, obfuscating, rendering
from dpveil.video.joining import join
from dpveil.video.left import PLAN, left_plan
from dpveil.video.obfuscating import ClipRun
from dpveil.video.plan import VideoPlan
from dpveil.video.plan_file import parse_plan
from dpveil.video.reading import open_clip
from dpveil.video.rendering import render
from dpveil.video.source import Source
from dpveil.video.state import KEY, STATE, folder_of
from dpveil.video.verification import verify_clip
from dpveil.video.writing import Writer, told_of


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    return make_clip(tmp_path / "clip.mp4")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "private.mp4"


def run_of(regions: str = "0,8,16,16", **more: Any) -> ClipRun:
    method, finders = chosen(Fill(), regions, {})
    return ClipRun(choices=Choices(method=method, regions=finders), more=more)


def stop(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


def interrupted(name: str, work: Callable[[], Any]) -> None:
    """Do work that is interrupted where a rendering comes to its step `name`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rendering._Job, name, stop)
        with pytest.raises(KeyboardInterrupt):
            work()


def begun(clip: Path, out: Path, run: ClipRun | None = None) -> str:
    """Begin to release a clip, and return what was asked of the plan that is left."""
    interrupted("render", lambda: (run or run_of()).release(Task(clip, out, out.name)))
    return (run or run_of())._asked(obfuscating._hash(clip))


def test_a_plan_that_was_left_is_gone_on_with_and_that_is_told(
    clip: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(clip, out)
    monkeypatch.setattr(obfuscating, "analyze", lambda *_, **__: pytest.fail("again"))
    entry = run_of().release(Task(clip, out, out.name))
    assert any("went on with the rendering that was begun before" in str(note) for note in entry.warnings)
    assert verify_clip(out).status == "consistent"


def test_what_is_begun_now_is_not_said_to_be_gone_on_with(clip: Path, out: Path) -> None:
    entry = run_of().release(Task(clip, out, out.name))
    assert not any("went on with" in str(note) for note in entry.warnings)


def test_a_plan_that_this_user_did_not_keep_is_not_used(clip: Path, out: Path) -> None:
    """It has all that the command asks for, but a place that is smaller."""
    asked = begun(clip, out, run_of("whole"))
    kept = left_plan(out, asked)
    assert kept is not None
    small = make_plan(clip, Fill(), [track(1, 0)], request=("whole",))
    assert small.settings == parse_plan(kept).settings
    (folder_of(out) / PLAN).write_text(small.to_text())
    assert left_plan(out, asked) is None
    run_of("whole").release(Task(clip, out, out.name))
    (shown,) = verify_clip(out).certificate.quote.tracks  # type: ignore[union-attr]
    assert shown.kind == "whole"


@pytest.mark.parametrize("gone", ["name", "folder", "question", "file"])
def test_a_plan_is_known_by_its_place_and_its_question(
    clip: Path, out: Path, gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = begun(clip, out)
    assert left_plan(out, asked) is not None
    other = {"name": out.with_name("b.mp4"), "folder": out.parent / "in" / out.name}.get(gone, out)
    other.parent.mkdir(exist_ok=True)
    if other != out:
        folder_of(out).rename(folder_of(other))
    if gone == "file":
        monkeypatch.setenv("XDG_STATE_HOME", str(out.parent / "elsewhere"))
    assert left_plan(other, "b" * 64 if gone == "question" else asked) is None


@pytest.mark.parametrize("what", ["visible", "linked", "settings", "clip", "name"])
def test_a_plan_of_another_command_is_not_used_whoever_kept_it(
    clip: Path, out: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    boxes = ("0,8,16,16", "20,8,16,16")
    monkeypatch.setattr(obfuscating, "left_plan", lambda *_: plan.to_text())
    run = run_of()
    request = tuple(run.settings["request"])  # type: ignore[arg-type]
    tracks = [track(1, 0), track(2, 20)]
    if what == "visible":
        tracks[1] = track(2, 20, visible=True)
    if what == "linked":
        tracks = [track(1, 0, person=1), track(2, 20, person=1)]
    source = make_clip(out.parent / "other.mp4", 12) if what == "clip" else clip
    if what == "clip":
        tracks = [track(1, 0, last=11)]
    made = make_plan(source, Fill(), tracks, request=boxes if what == "settings" else request)
    plan = replace(made, clip=clip.name)
    task = Task(clip, out, out.name)
    if what == "name":
        task = Task(clip.rename(out.parent / "renamed.mp4"), out, out.name)
    sha256 = obfuscating._hash(task.source)
    assert run._plan(task, sha256, lambda *_: None) != plan
    good = make_plan(task.source, Fill(), [track(1, 0), track(2, 20)], request=request)
    monkeypatch.setattr(obfuscating, "left_plan", lambda *_: good.to_text())
    assert run._plan(task, sha256, lambda *_: None) == good


def test_tracks_that_a_run_asks_to_keep_or_to_link_may_be_in_a_plan(clip: Path, out: Path) -> None:
    run = run_of(keep=(3,), link=[(1, 2)])
    tracks = [track(1, 0, person=1), track(2, 8, person=1), track(3, 20, visible=True)]
    plan = make_plan(clip, Fill(), tracks, request=tuple(run.settings["request"]))  # type: ignore[arg-type]
    assert run._may_be(plan, Task(clip, out, out.name), plan.facts.sha256)
    assert not run_of(keep=(3,))._may_be(plan, Task(clip, out, out.name), plan.facts.sha256)


@pytest.mark.parametrize("how", ["fifo", "zero", "loop", "folder", "deep", "bytes"])
def test_what_is_no_plan_is_not_waited_for(clip: Path, out: Path, how: str) -> None:
    folder_of(out).mkdir(mode=0o700)
    path = folder_of(out) / PLAN
    make = {
        "fifo": lambda: os.mkfifo(path),
        "zero": lambda: path.symlink_to("/dev/zero"),
        "loop": lambda: path.symlink_to(path),
        "folder": path.mkdir,
        "deep": lambda: path.write_text("[" * 100_000),
        "bytes": lambda: path.write_bytes(b"\xff"),
    }
    make[how]()
    assert left_plan(out, "a" * 64) is None
    run_of().release(Task(clip, out, out.name))
    assert verify_clip(out).status == "consistent"
    assert not folder_of(out).exists()


@pytest.mark.parametrize("name", [STATE, KEY, "draws", "joined.mp4", "certificate.json"])
@pytest.mark.parametrize("how", ["fifo", "zero", "file"])
def test_links_and_pipes_in_a_state_are_not_read(clip: Path, out: Path, name: str, how: str) -> None:
    plan, there = make_plan(clip, Fill(), [track(1, 0)]), folder_of(out) / name
    last = {"joined.mp4": "name", "certificate.json": "name", "draws": "render"}.get(name, "begin")
    interrupted(last, lambda: render(plan, clip, out))
    moved = there.rename(out.with_name("moved"))
    os.mkfifo(there) if how == "fifo" else there.symlink_to("/dev/zero" if how == "zero" else moved)
    before = moved.read_bytes()
    if name == "certificate.json":  # made again
        render(plan, clip, out)
        assert verify_clip(out).status == "consistent"
        assert not out.is_symlink()
    else:
        with pytest.raises(OutputError, match="is damaged"):
            render(plan, clip, out)
        assert not os.path.lexists(out)
    assert moved.read_bytes() == before


@pytest.mark.parametrize("name", ["part-joined.mp4", "part-00000000.mp4", "part-draws", "00000000.mp4"])
def test_a_link_in_a_state_leads_nowhere(clip: Path, out: Path, name: str) -> None:
    precious = out.with_name("precious")
    precious.write_bytes(b"precious")
    plan = make_plan(clip, Fill(), [track(1, 0)])
    interrupted("begin", lambda: render(plan, clip, out))
    (folder_of(out) / name).symlink_to(precious)
    assert render(plan, clip, out).resumed
    assert precious.read_bytes() == b"precious"
    assert not out.is_symlink()
    assert verify_clip(out).status == "consistent"


@pytest.mark.parametrize(
    "name", ["part-joined.mp4", "part-00000000.mp4", "00000000.mp4", "draws", "part-draws"]
)
def test_a_folder_in_a_state_is_one_line(clip: Path, out: Path, name: str) -> None:
    plan = make_plan(clip, Fill(), [track(1, 0)])
    interrupted("begin", lambda: render(plan, clip, out))
    (folder_of(out) / name).mkdir()
    with pytest.raises(OutputError, match="it is a folder") as caught:
        render(plan, clip, out)
    assert "\n" not in str(caught.value)
    assert not out.exists()


@contextmanager
def room(size: int) -> Iterator[None]:
    """Let no file be longer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_takes_no_more_is_told_as_such(clip: Path, out: Path) -> None:
    """While segments are written, at whatever byte; the same call goes on with room."""
    plan = make_plan(clip, Fill(), [track(1, 0)])
    interrupted("join", lambda: render(plan, clip, out))
    kept = folder_of(out)
    segment = kept / "00000000.mp4"
    size = segment.stat().st_size
    assert size > 1500
    for at in (1, 40, size // 2, size - 700, size - 1):
        segment.unlink(missing_ok=True)
        with room(at), pytest.raises(OutputError, match="the file is too large for this disk"):
            rendering._Job.render(_job(plan, clip, out))
        assert not segment.exists()
    rendering._Job.render(_job(plan, clip, out))
    assert segment.exists()
    for at in (1, 40, size // 2, size - 700):
        with room(at), pytest.raises(OutputError, match="the file is too large for this disk"):
            rendering._Job.join(_job(plan, clip, out), None)
    made = render(plan, clip, out)
    assert made.resumed
    assert verify_clip(out).status == "consistent"


def _job(plan: VideoPlan, clip: Path, out: Path) -> Any:
    work = rendering.State(folder_of(out), "", resumed=True)
    return rendering._Job(plan, open_clip(clip), out, "mp4", work, None, lambda *_: None)


def test_a_writer_that_fails_leaves_no_error_behind(clip: Path, tmp_path: Path) -> None:
    """What is not written yet is written when the file is closed: nobody has to hear of it again."""
    with open_clip(clip) as opened:
        writer = Writer(tmp_path / "a.mp4", opened.facts)

    def fail() -> None:
        with writer:
            writer._file.write(b"more than a byte")
            raise ZeroDivisionError

    with room(1), pytest.raises(ZeroDivisionError):
        fail()
    assert writer._file.closed


def test_what_pyav_makes_of_a_full_disk_is_told_as_such(tmp_path: Path) -> None:
    """It tells of an error in writing by another one, when it closes the file after that."""

    def fail(first: Exception) -> None:
        with told_of(tmp_path / "a.mp4"):
            try:
                raise first
            except (OSError, KeyError):
                raise av.error.PyAVCallbackError(1, "in a callback")  # noqa: B904 - as PyAV does

    with pytest.raises(OutputError, match="the disk is full"):
        fail(OSError(28, "no space"))
    with pytest.raises(OutputError, match="it cannot be encoded"):
        fail(KeyError("other"))


def test_nothing_is_read_or_written_through_a_link(clip: Path, tmp_path: Path) -> None:
    plan, link = make_plan(clip, Fill(), [track(1, 0)]), tmp_path / "link"
    link.symlink_to(clip)
    with (
        pytest.raises(OutputError, match="is damaged"),
        rendering.State(tmp_path, "", resumed=True).opened("link"),
    ):
        pytest.fail("it was opened")
    with pytest.raises(OutputError, match="it exists already"):
        join([clip], link, plan.facts)


def test_a_file_that_is_no_clip_is_refused_before_it_is_hashed(
    clip: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Source, "sha256", lambda self: pytest.fail("hashed"))
    monkeypatch.setattr(containers, "MOST_BYTES", 100)
    with pytest.raises(ClipError, match="more than 100 bytes"):
        run_of().release(Task(clip, out, out.name))


@pytest.mark.parametrize(("name", "good"), [("rec 12:30.mp4", True), ("a\\b.mp4", False), ("a\n.mp4", False)])
def test_names_are_looked_at_first(clip: Path, out: Path, name: str, good: bool, monkeypatch: Any) -> None:
    source = clip.rename(clip.with_name(name))
    if good:
        run_of().release(Task(source, out, out.name))
        assert verify_clip(out).status == "consistent"
        return
    monkeypatch.setattr(Source, "sha256", lambda self: pytest.fail("hashed"))
    with pytest.raises(ClipError, match="cannot be written into a plan: rename it") as caught:
        run_of().release(Task(source, out, out.name))
    assert "\n" not in str(caught.value)


def test_plans_that_are_kept_are_remembered_elsewhere(clip: Path, out: Path) -> None:
    begun(clip, out)
    found = Remembered.read(out.parent)
    assert (len(found.begun), found.problem) == (1, "")
