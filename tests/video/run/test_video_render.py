"""Rendering by a plan: paid once, drawn once, and gone on with after any end."""

import hashlib
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("av")

from clips_made import FRAMES, frames_of, make_clip, make_plan, track

from dpveil.errors import BudgetExceeded, ClipError, DPVeilError, InvalidParameter, OutputError
from dpveil.ledger import Ledger, Limit
from dpveil.mechanisms.pixel import DPPix, Fill
from dpveil.video import reading, render_job, writing
from dpveil.video.facts import Frame
from dpveil.video.plan import VideoPlan
from dpveil.video.render_job import STATE, folder_of, render
from dpveil.video.verification import verify_clip
from dpveil.video.writing import Writer

METHOD = DPPix(epsilon=3, block=8, neighbourhood=4)


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    return make_clip(tmp_path / "clip.mp4")


def two(clip: Path, **more: Any) -> VideoPlan:
    return make_plan(clip, METHOD, [track(1, 0), track(2, 24, moves=6)], **more)


def test_a_clip_is_replaced_within_its_regions_and_certified(clip: Path, tmp_path: Path) -> None:
    out = tmp_path / "private.mp4"
    told = []
    made = render(two(clip), clip, out, seed=1, progress=lambda *step: told.append(step))
    found = verify_clip(out)
    assert (found.status, str(made.certificate.composition)) == ("consistent", "6-DP, m-pixels (m = 4)")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "clip.mp4",
        "private.mp4",
        "private.mp4.certificate.json",
    ]
    before, after = frames_of(clip).astype(int), frames_of(out).astype(int)
    assert len(after) == FRAMES
    changed = np.abs(after - before).mean(axis=(0, 3))
    assert changed[8:24, :16].min() > 3 * changed[:4].max()
    assert told[0] == ("rendering", 0, FRAMES)
    assert told[-1] == ("rendering", FRAMES, FRAMES)


def test_visible_tracks_and_frames_outside_of_tracks_stay(clip: Path, tmp_path: Path) -> None:
    tracks = [track(1, 0, first=10, last=19), track(2, 24, visible=True)]
    render(make_plan(clip, Fill(), tracks), clip, tmp_path / "a.mp4")
    off = np.abs(frames_of(tmp_path / "a.mp4").astype(int) - frames_of(clip)).mean(axis=3)
    assert off[:, 8:24, 26:].mean() < 5
    assert off[10:20, 10:22, 2:14].mean(axis=(1, 2)).min() > 4 * off[:9, 10:22, 2:14].mean()


def test_sound_is_dropped_unless_it_is_to_be_kept(tmp_path: Path) -> None:
    import av

    clip = make_clip(tmp_path / "loud.mp4", sound=True)
    for keep in (False, True):
        out = tmp_path / f"{keep}.mp4"
        made = render(make_plan(clip, Fill(), [track(1, 0)], keep_audio=keep), clip, out)
        with av.open(str(out)) as found:
            assert len(found.streams.audio) == keep
        assert made.certificate.quote.audio == keep


def test_another_clip_and_a_plan_with_other_facts_are_refused(clip: Path, tmp_path: Path) -> None:
    from dataclasses import replace

    other = make_clip(tmp_path / "other.mp4", FRAMES - 1)
    with pytest.raises(ClipError, match="not the clip of this plan"):
        render(two(clip), other, tmp_path / "a.mp4")
    plan = two(clip)
    with pytest.raises(ClipError, match="does not tell the size"):
        render(replace(plan, facts=replace(plan.facts, start=5)), clip, tmp_path / "a.mp4")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clip.mp4", "other.mp4"]


def test_no_release_has_its_name_while_the_key_of_its_draws_exists(
    clip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever finds it beside the release subtracts all noise."""
    out, plan = tmp_path / "a.mp4", two(clip)
    keys = []

    def placed(*given: Any, **more: Any) -> None:
        keys.append("key" in json.loads((folder_of(out) / STATE).read_text()))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(render_job, "place_together", placed)
        with pytest.raises(KeyboardInterrupt):
            render(plan, clip, out)
    assert keys == [False]
    assert render(plan, clip, out).resumed
    assert verify_clip(out).status == "consistent"


def test_what_exists_stays_unless_it_is_to_be_replaced(clip: Path, tmp_path: Path) -> None:
    out = tmp_path / "private.mp4"
    out.write_bytes(b"mine")
    with pytest.raises(OutputError, match="it exists already"):
        render(two(clip), clip, out)
    assert out.read_bytes() == b"mine"
    assert not folder_of(out).exists()
    render(two(clip), clip, out, replace=True)
    first = out.read_bytes()
    render(two(clip), clip, out, replace=True)
    assert out.read_bytes() != first
    assert verify_clip(out).status == "consistent"
    assert len(list(tmp_path.iterdir())) == 3


def test_outputs_that_cannot_be_are_refused_first(clip: Path, tmp_path: Path) -> None:
    plan = two(clip)
    refused = {"clip.mp4": "the clip itself", "no/a.mp4": "no such folder", "a.png": "format"}
    for out, words in refused.items():
        with pytest.raises(DPVeilError, match=words):
            render(plan, clip, tmp_path / out)
    (tmp_path / "link.mp4").symlink_to(clip)
    with pytest.raises(OutputError, match="the clip itself"):
        render(plan, tmp_path / "link.mp4", clip, replace=True)
    with pytest.raises(InvalidParameter, match="without a ledger"):
        render(plan, clip, tmp_path / "a.mp4", subject="x")


def ledger_of(folder: Path, epsilon: int = 100) -> str:
    url = f"sqlite:///{folder / 'budget.db'}"
    with Ledger(url, create=True) as ledger:
        ledger.set_limit("album", Limit("pure", epsilon=epsilon))
    return url


def debits(url: str) -> list[Any]:
    with Ledger(url) as ledger:
        return [entry.event for entry in ledger.history("album") if type(entry.event).__name__ == "Debit"]


def test_a_clip_is_paid_once_and_the_file_is_known(clip: Path, tmp_path: Path) -> None:
    url, out = ledger_of(tmp_path), tmp_path / "private.mp4"
    with Ledger(url) as ledger:
        made = render(two(clip), clip, out, ledger=ledger, subject="album")
        assert ledger.knows("album", made.certificate.output.sha256)
        assert ledger.show("album").spent.cost.epsilon == 6 * 10**6
    assert [event.draw for event in debits(url)] == [1]


def test_a_clip_that_is_too_dear_is_not_paid_in_part(clip: Path, tmp_path: Path) -> None:
    url, out = ledger_of(tmp_path, 5), tmp_path / "private.mp4"
    with Ledger(url) as ledger, pytest.raises(BudgetExceeded):
        render(two(clip), clip, out, ledger=ledger, subject="album")
    assert debits(url) == []
    assert not folder_of(out).exists()
    assert not out.exists()


def test_another_rendering_is_another_draw_and_is_paid(clip: Path, tmp_path: Path) -> None:
    url, out = ledger_of(tmp_path), tmp_path / "private.mp4"
    with Ledger(url) as ledger:
        render(two(clip), clip, out, ledger=ledger, subject="album")
        render(two(clip), clip, tmp_path / "other.mp4", ledger=ledger, subject="album")
        render(two(clip), clip, out, ledger=ledger, subject="album", replace=True)
    assert len(debits(url)) == 3


def test_nothing_is_drawn_before_it_is_paid(
    clip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, paid = ledger_of(tmp_path), []

    def draw(*given: Any) -> Any:
        paid.append(len(debits(url)))
        return drawn(*given)

    drawn = render_job.draw_all
    monkeypatch.setattr(render_job, "draw_all", draw)
    with Ledger(url) as ledger:
        render(two(clip), clip, tmp_path / "private.mp4", ledger=ledger, subject="album")
    assert paid == [1]


def killed(work: Callable[[], Any], folder: Path, at: int | str) -> bool:
    """Run in a child process that is killed right before its operation number `at` on files in `folder`, or
    the first one that has this text.

    Returns whether it was killed: without such an operation, it is done.
    """
    child = os.fork()
    if child:
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    count = 0

    def hook(event: str, given: tuple[Any, ...]) -> None:
        nonlocal count
        if event.split(".")[0] in ("open", "os", "sqlite3", "shutil") and str(folder) in str(given):
            count += 1
            if count == at or (isinstance(at, str) and at in f"{event} {given}"):
                os.kill(os.getpid(), signal.SIGKILL)

    try:
        sys.addaudithook(hook)
        work()
        os._exit(0)
    finally:
        os._exit(1)


class Told(Writer):
    """A writer that tells what each frame was before the codec."""

    log: Path

    def write(self, frame: Frame) -> None:
        with self.log.open("a") as file:
            file.write(f"{frame.index} {hashlib.sha256(frame.image.tobytes()).hexdigest()}\n")
        super().write(frame)


def told(log: Path) -> dict[int, set[str]]:
    """Return what was written for each frame, by all processes."""
    found: dict[int, set[str]] = {}
    for line in log.read_text().splitlines() if log.exists() else ():
        index, digest = line.split()
        found.setdefault(int(index), set()).add(digest)
    return found


class InProcess:
    """Answers about clips, as a child does."""

    def ask(self, asked: list[Any], *, most: int) -> tuple[Any, list[np.ndarray]]:
        told, *found = writing._answer(asked)
        return told, found


def fixed(key: int, log: Path) -> None:
    """Make this process draw the same bytes as keys of its draws each time, and tell of its frames."""
    random = os.urandom
    reading.POOL = InProcess()  # type: ignore[assignment]  it reads the clip itself, in no other process
    os.urandom = lambda size: bytes([key]) * 32 if size == 32 else random(size)  # type: ignore[assignment]
    Told.log = log
    render_job.Writer = Told  # type: ignore[misc]


def try_kill(clip: Path, folder: Path, references: dict[int, Any], at: int | str) -> bool:
    """Kill a paid rendering, let another process go on, and check what is there; return whether it was."""
    out, url, log = folder / "private.mp4", ledger_of(folder), clip.parent / f"{folder.name}.log"
    plan = two(clip)

    def work(key: int) -> Callable[[], Any]:
        def go() -> None:
            fixed(key, log)
            with Ledger(url) as ledger:
                render(plan, clip, out, ledger=ledger, subject="album")

        return go

    was = killed(work(1), folder, at)
    paid, there = len(debits(url)), out.exists()
    if there:
        assert verify_clip(out).status == "consistent"
    else:
        assert not killed(work(2), folder, 0)
    assert verify_clip(out).status == "consistent"
    assert [event.draw for event in debits(url)] == [1]
    assert told(log) in ([references[1]] if paid else [references[1], references[2]])
    assert len(frames_of(out)) == FRAMES
    if not there:
        assert not [path for path in folder.iterdir() if path.name.startswith(".")]
    return was


@pytest.fixture
def references(clip: Path, tmp_path: Path) -> dict[int, dict[int, set[str]]]:
    """What renderings that nobody kills write, by the key of their draws."""
    found: dict[int, dict[int, set[str]]] = {}
    for key in (1, 2):
        out, log = tmp_path / f"{key}.mp4", tmp_path / f"{key}.log"

        def work(key: int = key, out: Path = out, log: Path = log) -> None:
            fixed(key, log)
            render(two(clip), clip, out)

        assert not killed(work, out, 0)
        found[key] = told(log)
    one, other = found.values()
    assert not any(one[index] & other[index] for index in range(FRAMES))
    return found


def test_after_a_kill_another_process_goes_on(clip: Path, tmp_path: Path, references: dict[int, Any]) -> None:
    between = {
        "clip": "dpveil-video/clip.mp4",
        "certificate": "dpveil-video/certificate.json",
        "names": "/clip.mp4', '/",
    }
    for name, at in between.items():
        folder = tmp_path / name
        folder.mkdir()
        assert try_kill(clip, folder, references, at)


@pytest.mark.slow
def test_it_may_be_killed_before_any_operation(
    clip: Path, tmp_path: Path, references: dict[int, Any]
) -> None:
    at, was = 1, True
    while was:
        folder = tmp_path / f"at{at}"
        folder.mkdir()
        was = try_kill(clip, folder, references, at)
        at += 1
    assert at > 40
