"""Hidden folders that came with an archive, disks that are full, and names that nothing can be written to."""

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("av")

import av
from clips_made import make_clip, make_plan, track

from dpveil.batch.tasks import RunSettings, Task
from dpveil.errors import ClipError, OutputError
from dpveil.mechanisms.pixel import Fill
from dpveil.release.plan import choose_method
from dpveil.video import clip_in_batch, render_job
from dpveil.video.clip_in_batch import ClipRun
from dpveil.video.containers import Source
from dpveil.video.render_job import render
from dpveil.video.verification import verify_clip
from dpveil.video.writing import as_writing_error


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    return make_clip(tmp_path / "clip.mp4")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "private.mp4"


def run_of(regions: str = "0,8,16,16", **more: Any) -> ClipRun:
    method, finders = choose_method(Fill(), regions, {})
    return ClipRun(choices=RunSettings(method=method, regions=finders), more=more)


def stop(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


def interrupted(name: str, work: Callable[[], Any]) -> None:
    """Do work that is interrupted where a rendering comes to its step `name`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(render_job._Job, name, stop)
        with pytest.raises(KeyboardInterrupt):
            work()


def test_a_plan_that_was_left_is_gone_on_with_and_that_is_told(
    clip: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted("write", lambda: run_of().release(Task(clip, out, out.name)))
    monkeypatch.setattr(clip_in_batch, "analyze", lambda *_, **__: pytest.fail("again"))
    entry = run_of().release(Task(clip, out, out.name))
    assert any("went on with the rendering that was begun before" in str(note) for note in entry.warnings)
    assert verify_clip(out).status == "consistent"


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
    """While the clip is written, at whatever byte; the same call succeeds with room."""
    plan = make_plan(clip, Fill(), [track(1, 0)])
    render(plan, clip, out.with_name("whole.mp4"))
    size = out.with_name("whole.mp4").stat().st_size
    assert size > 1500
    for at in (800, size // 2, size - 700, size - 1):
        with room(at), pytest.raises(OutputError, match="the file is too large for this disk"):
            render(plan, clip, out)
        assert not out.exists()
    render(plan, clip, out)
    assert verify_clip(out).status == "consistent"


def test_what_pyav_makes_of_a_full_disk_is_told_as_such(tmp_path: Path) -> None:
    """It tells of an error in writing by another one, when it closes the file after that."""

    def fail(first: Exception) -> None:
        with as_writing_error(tmp_path / "a.mp4"):
            try:
                raise first
            except (OSError, KeyError):
                raise av.error.PyAVCallbackError(1, "in a callback")  # noqa: B904 - as PyAV does

    with pytest.raises(OutputError, match="the disk is full"):
        fail(OSError(28, "no space"))
    with pytest.raises(OutputError, match="it cannot be encoded"):
        fail(KeyError("other"))


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
