"""The tracks of a clip, in one pass over its frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from types import MappingProxyType
from typing import Final

import numpy as np
from jaxtyping import UInt8

from dpveil.core.origin import WHOLE
from dpveil.errors import NoRegion, RegionError
from dpveil.regions.finder import Finder
from dpveil.video.facts import LOST, MERGED, Facts, Frame, Key, Track
from dpveil.video.reading import ahead, room_for
from dpveil.video.tracks.following import overlap
from dpveil.video.tracks.looking import Looker, TrackSettings
from dpveil.video.tracks.trace import Closed
from dpveil.video.tracks.tracker import Tracker

FOUND_AGAIN: Final = 0.3
"""Intersection over union of where a track ended and where another one of its kind was found after that."""
REFUSED: Final = "let {on_lost} be hold or whole, or cut the clip"
Shots = Sequence[tuple[int, int]]
"""First and last frame of every shot."""


def shots_of(cuts: Sequence[int], first: int, last: int) -> Shots:
    """Return the first and last frame of every shot.

    >>> shots_of([4, 9], 0, 12)
    [(0, 3), (4, 8), (9, 12)]
    """
    return [(start, stop - 1) for start, stop in pairwise([first, *cuts, last + 1])]


def hold(closed: Sequence[Closed], shots: Shots, facts: Facts) -> list[Closed]:
    """Return the tracks, of which lost ones stay to the end of their shot, or until found again."""
    return [
        one if until is None else replace(one, keys=(*one.keys, replace(one.keys[-1], frame=until)))
        for one, until in _until(closed, shots)
    ]


def whole(closed: Sequence[Closed], shots: Shots, facts: Facts) -> list[Closed]:
    """Return the tracks, and one of the whole frame for all frames in which something is lost."""
    answered = _until(closed, shots)
    spans = sorted((one.sure + 1, until) for one, until in answered if until is not None)
    joined: list[list[int]] = []
    for start, stop in spans:
        if joined and start <= joined[-1][1] + 1:
            joined[-1][1] = max(joined[-1][1], stop)
        else:
            joined.append([start, stop])
    tracks = [one for one, _ in answered]
    return [*tracks, *(_whole(start, stop, shots, facts) for start, stop in joined)]


def refuse(closed: Sequence[Closed], shots: Shots, facts: Facts) -> list[Closed]:
    """Return the tracks if none is lost; else raise `RegionError`, which names the first one."""
    answered = _until(closed, shots)
    for number, (one, until) in enumerate(answered, start=1):
        if until is not None:
            seconds = _seconds(one.sure, facts)
            raise RegionError(
                f"{one.kind} track {number} is lost after frame {one.sure} ({float(seconds):.2f} s)",
                hint=REFUSED,
                arguments={"on_lost": "on_lost"},
            )
    return [one for one, _ in answered]


ANSWERS: Final[Mapping[str, Callable[[Sequence[Closed], Shots, Facts], list[Closed]]]] = MappingProxyType(
    {"hold": hold, "whole": whole, "refuse": refuse}
)
"""What is done for each of `settings.ON_LOST`."""


def _until(closed: Sequence[Closed], shots: Shots) -> list[tuple[Closed, int | None]]:
    """Return every track, and the last frame in which it has to be protected if it is lost; None for others.

    That is the end of its shot, or the frame in which another track is first found where it ended. One that
    is protected until then anyway is not lost: it merges with that track, or ends with the shot.
    """
    begun = np.array([one.begun for one in closed])
    kinds = np.array([one.kind for one in closed])
    starts = np.array([_place(one, one.begun) for one in closed]).reshape(-1, 4)
    answered: list[tuple[Closed, int | None]] = []
    for one in closed:
        if one.end != LOST:
            answered.append((one, None))
            continue
        last = next(stop for start, stop in shots if start <= one.sure <= stop)
        later = np.flatnonzero((kinds == one.kind) & (begun > one.sure) & (begun < last))
        there = overlap(_place(one, one.keys[-1].frame)[None], starts[later])[0]
        until = min([last, *begun[later[there >= FOUND_AGAIN]].tolist()])
        if until > one.keys[-1].frame:
            answered.append((one, until))
        else:
            end = MERGED if until < last else "end" if last == shots[-1][1] else "cut"
            answered.append((replace(one, end=end), None))
    return answered


def _place(one: Closed, frame: int) -> np.ndarray:
    """Return the edges of a track in a frame: those of the key there, or the last one before it."""
    key = next(key for key in reversed(one.keys) if key.frame <= frame)
    return np.array([key.x, key.y, key.x + key.w, key.y + key.h], np.float64)


def _whole(start: int, stop: int, shots: Shots, facts: Facts) -> Closed:
    """Return a track of the whole frame."""
    keys = [Key(frame, 0, 0, facts.width, facts.height) for frame in sorted({start, stop})]
    cut = any(first == stop + 1 for first, _ in shots)
    end = "cut" if cut else "end" if stop == shots[-1][1] else "left"
    return Closed(
        kind=WHOLE,
        finder=WHOLE,
        keys=tuple(keys),
        end=end,
        score=None,
        begun=start,
        sure=stop,
    )


def _seconds(frame: int, facts: Facts) -> Fraction:
    """Return the time of a frame since the first one."""
    left, time = frame, Fraction(0)
    for step, count in facts.steps:
        time += step * min(left, count)
        left -= min(left, count)
    return time * facts.time_base


NOTHING: Final = "give lower thresholds or boxes; {method} fill with {regions} whole hides all of the clip"
"""The remedy where nothing is found."""
ARGUMENTS: Final = {"method": "method", "regions": "regions"}
"""The arguments that NOTHING names."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """The tracks of a clip, numbered from 1 in order of their first frames, and then of left and top there.

    `cuts` are the frames with which shots begin, but for the first, and `searched` is the number of frames in
    which finders looked. `thumbnails` are small originals by the numbers of tracks, for the clip's owner
    alone.
    """

    tracks: tuple[Track, ...]
    cuts: tuple[int, ...]
    frames: int
    searched: int
    thumbnails: Mapping[int, UInt8[np.ndarray, "h w 3"]] = field(default_factory=dict, repr=False)


def find_tracks(
    frames: Iterable[Frame],
    facts: Facts,
    finders: Sequence[Finder],
    settings: TrackSettings | None = None,
    progress: Callable[[int], None] | None = None,
) -> Found:
    """Return the tracks of everything that `finders` find in a clip, from all its frames in order.

    `progress` is called with the number of frames that are done. Boxes of faces have no margin, whatever that
    of the finder is; those of other finders have it. Memory does not grow with the length of the clip, but
    for the keys of tracks. Raises `NoRegion` if nothing is found; `RegionError` if a search fails, something
    is lost and has to be refused, or there are more than `tracker.MOST_TRACKS` tracks; and
    `InvalidParameter` for a finder that only fits photos.
    """
    settings = TrackSettings() if settings is None else settings
    looker, tracker, first, last = Looker(facts, finders, settings), Tracker(facts, settings), 0, -1
    room = room_for(facts)
    with closing(ahead(iter(frames), room)) as read, closing(ahead(map(looker.look, read), room)) as sights:
        for done, sight in enumerate(sights, start=1):
            first, last = (sight.frame.index if done == 1 else first), sight.frame.index
            tracker.take(sight)
            if progress is not None:
                progress(done)
    tracker.end()
    if not tracker.closed:
        raise NoRegion("nothing to protect was found in the clip", hint=NOTHING, arguments=ARGUMENTS)
    closed = sorted(tracker.closed, key=lambda one: (one.keys[0].frame, one.keys[0].x, one.keys[0].y))
    answered = ANSWERS[settings.on_lost](closed, shots_of(tracker.cuts, first, last), facts)
    return Found(
        tracks=tuple(
            Track(number=n, kind=one.kind, finder=one.finder, keys=one.keys, end=one.end, score=one.score)
            for n, one in enumerate(answered, start=1)
        ),
        cuts=tuple(tracker.cuts),
        frames=last - first + 1,
        searched=tracker.searched,
        thumbnails=MappingProxyType(
            {n: one.thumbnail for n, one in enumerate(answered, start=1) if one.thumbnail is not None}
        ),
    )
