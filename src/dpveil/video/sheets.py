"""Sheets of a plan and of its release, read from the clips: for their owner's eyes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import UInt8

from dpveil.core.guarantee import counted
from dpveil.core.origin import WHOLE
from dpveil.video.doubts import followed
from dpveil.video.facts import Facts, Frame
from dpveil.video.plan import VideoPlan
from dpveil.video.reading import Clip, open_clip
from dpveil.video.segments import moments, picked
from dpveil.video.sheet import MOST_ROWS, Moment, Row, draw_moments, draw_tracks
from dpveil.video.times import clock
from dpveil.video.track import Key, Track

Levels = UInt8[np.ndarray, "h w 3"]

PICTURES: Final = 12
"""Moments on a sheet over time."""
AROUND: Final = 0.35
"""What a thumbnail shows around a box, in shares of its sides."""
ENDED: Final = {
    "left": "left the picture",
    "cut": "the shot ended",
    "end": "the clip ended",
    "merged": "another track goes on",
    "lost": "LOST: look there",
}
"""How tracks end, in words."""
BY_HAND: Final = "by hand"
"""How the finder of a track ends that a user added."""
GREY: Final = 128


def track_sheet(plan: VideoPlan, clip: Clip) -> Levels:
    """Return the tracks of a plan, numbered, each with its first, a middle and its last picture."""
    facts, shown = clip.facts, plan.tracks[:MOST_ROWS]
    wanted = {(track.number, frame) for track in shown for frame in _thirds(track)}
    pictures: dict[tuple[int, int], Levels] = {}
    for frame in picked(clip, (frame for _, frame in wanted)):
        for track in shown:
            if (track.number, frame.index) in wanted:
                pictures[track.number, frame.index] = _around(frame.image, at(track, frame.index), track.kind)
    seconds = times_of(facts)
    rows = [_row(track, seconds, pictures) for track in shown]
    rows += [Row(track.number, (), (), ()) for track in plan.tracks[MOST_ROWS:]]
    title = f"{plan.clip}: {counted(len(plan.tracks), 'track')}, {counted(len(plan.cuts), 'cut')}"
    return draw_tracks(title, float(facts.seconds), [seconds[cut] for cut in plan.cuts], rows)


def write_release_sheet(
    path: Path, plan: VideoPlan, clip: str | Path, release: str | Path, *, replace: bool
) -> None:
    """Write `release_sheet` of two files to `path`."""
    with open_clip(clip) as one, open_clip(release) as other:
        write_sheet(path, release_sheet(plan, one, other), replace=replace)


def release_sheet(plan: VideoPlan, clip: Clip, release: Clip) -> Levels:
    """Return moments of a clip, each above its release, while something is replaced."""
    facts, seconds = clip.facts, times_of(clip.facts)
    wanted = moments(facts, PICTURES, _spans(plan))
    pairs = zip(picked(clip, wanted), picked(release, wanted), strict=True)
    told = [Moment(seconds[one.index], (one.image, other.image)) for one, other in pairs]
    return draw_moments(f"{plan.clip} and its release", told)


def preview_sheet(plan: VideoPlan, clip: Clip) -> Levels:
    """Return moments of a clip with what will be replaced in grey. Nothing is drawn, and nothing paid."""
    facts, seconds = clip.facts, times_of(clip.facts)
    told = [
        Moment(seconds[frame.index], (_covered(plan, frame),))
        for frame in picked(clip, moments(facts, PICTURES, _spans(plan)))
    ]
    return draw_moments(f"{plan.clip}: what will be replaced", told)


def at(track: Track, frame: int) -> Key:
    """Return where a track is in a frame: on the straight line between its keys."""
    frames = [key.frame for key in track.keys]
    x, y, w, h = (
        round(float(np.interp(frame, frames, [getattr(key, name) for key in track.keys]))) for name in "xywh"
    )
    return Key(frame, x, y, max(1, w), max(1, h))


def times_of(facts: Facts) -> list[float]:
    """Return the time of each frame in seconds after the first."""
    return [float((time - facts.start) * facts.time_base) for time in facts.times]


def ended(track: Track) -> str:
    """Return how a track ends, in words; of one that a user added, that it is so."""
    added = track.finder.endswith(BY_HAND) or (track.finder == track.kind != WHOLE)
    return "added by hand" if added else ENDED[track.end]


def _spans(plan: VideoPlan) -> list[tuple[int, int]]:
    return [(track.first, track.last) for track in plan.tracks if not track.visible]


def _thirds(track: Track) -> Iterator[int]:
    """Yield the first frame in which a track is followed, a middle one, and the last, each once."""
    first, last = followed(track)
    yield from dict.fromkeys((first, (first + last) // 2, last))


def _row(track: Track, seconds: list[float], pictures: dict[tuple[int, int], Levels]) -> Row:
    first, last = seconds[track.first], seconds[track.last]
    score = "" if track.score is None else f"score {track.score:.2f}, "
    person = "" if track.person is None else f", person {track.person}"
    state = "stays visible, as you chose" if track.visible else "will be replaced"
    words = (
        f"{track.kind}, {clock(first)} to {clock(last)}",
        f"{counted(track.last - track.first + 1, 'frame')}{person}",
        f"{score}{ended(track)}",
        state,
    )
    shown = tuple((seconds[frame], pictures[track.number, frame]) for frame in _thirds(track))
    return Row(track.number, words, shown, ((first, last),), track.visible)


def _around(image: Levels, key: Key, kind: str) -> Levels:
    """Return the part of a picture around a key; all of it if nothing of the box is in the picture."""
    height, width = image.shape[:2]
    aside, above = round(AROUND * key.w), round(AROUND * key.h)
    x, y = max(0, key.x - aside), max(0, key.y - above)
    part = image[y : max(0, key.y + key.h + above), x : max(0, key.x + key.w + aside)]
    return image if kind == WHOLE or not part.size or x >= width or y >= height else part.copy()


def _covered(plan: VideoPlan, frame: Frame) -> Levels:
    """Return a frame in which what will be replaced is grey."""
    covered = frame.image.copy()
    covered[plan.scene.hidden(plan.scene.spots(frame.index))] = GREY
    return covered


def write_sheet(path: Path, levels: Levels, *, replace: bool) -> None:
    """Write a sheet as PNG, readable by its owner alone. Raises `OutputError`."""
    from dpveil.io import encode, write_together

    write_together([(path, encode(levels, "png"))], replace=replace, private=True)
