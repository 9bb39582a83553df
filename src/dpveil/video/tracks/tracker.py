"""The tracks of a clip, in one pass over its frames."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import astuple, replace
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from dpveil.core.array_types import Bool, Float, UInt8
from dpveil.core.region import Box
from dpveil.core.region_origin import FACE
from dpveil.errors import NoRegion, RegionError, UsageError
from dpveil.faces.geometry.align import Frame as FaceFrame
from dpveil.faces.geometry.align import of_points
from dpveil.faces.geometry.landmarks import Locator, locator, pose_of
from dpveil.faces.geometry.place import check
from dpveil.regions.finder import Finder, Seen
from dpveil.video.facts import LOST, MERGED, Facts, Frame, Track
from dpveil.video.reading import ahead, room_for
from dpveil.video.tracks.box_flow import (
    GreyFrame,
    clip_boxes,
    complete_box,
    continuations,
    cut,
    likeness,
    matches,
    overlap,
    share,
)
from dpveil.video.tracks.frame_search import FrameSearcher, Memory, SearchedFrame, TrackSettings
from dpveil.video.tracks.live_track import ClosedTrack, Edges, LiveTrack, Place, is_outside

SMALLEST_FACE: Final = 40  # pixels of height below which landmarks of a face are noise, and not looked for


def turn_of(
    image: UInt8[np.ndarray, "h w 3"], box: Float[np.ndarray, " 4"], roll: float | None = None
) -> tuple[float, float] | None:
    """Return roll and yaw in degrees of the face in a box (left, top, right, bottom), as in `Key`.

    It is looked for with a `roll` in degrees where one is expected, and upright. None if landmarks are not
    installed or not sure, and for small faces.
    """
    asked = _landmark_locator()
    left, top, right, bottom = (round(float(value)) for value in box)
    if asked is None or bottom - top < SMALLEST_FACE or right <= left:
        return None
    there = Box(left, top, right - left, bottom - top)
    for angle in (0.0,) if roll is None else (-math.radians(roll), 0.0):
        try:
            found = check(asked.near(image, there, angle))
            own = of_points(found.points, FaceFrame().points())
            yaw = pose_of(replace(found, points=own.to(found.points))).yaw
        except RegionError:
            continue
        return math.degrees(-own.angle), math.degrees(yaw)
    return None


@lru_cache(maxsize=1)
def _landmark_locator() -> Locator | None:
    try:
        return locator()
    except UsageError:
        return None


MOST_TRACKS: Final = 2000
MOST_KEYS: Final = 200_000
"""Limits of a clip, so that a detector that sees things everywhere fills no memory."""
MANY: Final = "give higher thresholds, cut the clip, or protect the whole of it: choose whole for {regions}"
SAME_OVERLAP: Final = 0.5
"""Intersection over union with a track that was found, from which one that was not is the same object: two
people who pass each other overlap by less for all but a few frames."""
HELD_SHARE: Final = 0.8
"""Share of a box that another one holds in searches in a row, from which both are the same object: a head in
front of another one covers a part of it."""
PASSED_SHARE: Final = 0.3
"""Share of a box, where its motion took it, that another one holds: the one passes behind the other."""
LOOKS_ALIKE: Final = 0.8  # likeness from which who is found is taken for who passed behind somebody
Pairs = Bool[np.ndarray, "n m"]


class Tracker:
    """Takes what is seen in the frames of a clip, in order.

    `closed` are the tracks so far and `cuts` where shots begin.
    """

    def __init__(self, facts: Facts, settings: TrackSettings) -> None:
        self.facts, self.settings = facts, settings
        self._size = facts.width, facts.height
        self.closed: list[ClosedTrack] = []
        self.cuts: list[int] = []
        self._live, self._keys = list[LiveTrack](), 0
        self._memory = Memory(facts, max(settings.backwards, settings.every))

    def take(self, sight: SearchedFrame) -> None:
        """Take the next frame; raises `RegionError` if there are too many tracks."""
        now = sight.now
        if sight.begins:
            self._close_all("cut")
            self.cuts.append(now.frame)
            self._memory.clear()
        if self._live:
            moved = self._memory.forwards(now, [trace.box for trace in self._live])
            for trace, (box, sure, turn) in zip(self._live, moved, strict=True):
                trace.follow(now.frame, now.seconds, box, turn, sure=sure)
        if sight.seen is not None:
            self._find(sight.seen, sight.frame, now)
        for trace in list(self._live):
            gone = is_outside(trace.box, *self._size)
            if gone or now.seconds - trace.waits_since > self.settings.gap:
                self._close(trace, "left" if trace.has_left(*self._size) else LOST)
        self._memory.add(now)

    def end(self) -> None:
        self._close_all("end")
        self._check_keys()

    def _close_all(self, end: str) -> None:
        for trace in list(self._live):
            # soon after it was lost, it is rather held: somebody may have stopped at the border
            gone = trace.is_gone(*self._size) and trace.seconds_lost > self.settings.gap / 2
            self._close(trace, "left" if gone else end)

    def _find(self, seen: Mapping[str, list[Seen]], frame: Frame, now: GreyFrame) -> None:
        for finder, found in seen.items():
            own = [trace for trace in self._live if trace.finder == finder]
            for kind in sorted({one.kind for one in found} | {trace.kind for trace in own}):
                traces = [trace for trace in own if trace.kind == kind]
                new = self._assign(traces, [one for one in found if one.kind == kind], now)
                self._begin(finder, new, _missing(traces, now), now)
        for trace in (one for one in self._live if one.found.frame == now.frame):
            trace.seen = now
            if trace.kind == FACE and trace.turn_is_due:
                trace.turn(turn_of(frame.image, trace.box, trace.path.roll(trace.place.turned)))
        self._check_keys()

    def _assign(self, traces: list[LiveTrack], found: list[Seen], now: GreyFrame) -> list[Seen]:
        """Give detections to tracks, sure ones first (ByteTrack, arXiv 2110.06864); return new objects."""
        # one that left the picture may come back at the border alone: who is found inside is somebody else
        gone = [trace for trace in traces if trace.is_gone(*self._size)]
        traces = [trace for trace in traces if trace not in gone]
        new = self._match(traces, [one for one in found if one.sure], now)
        new = self._continue(_missing(traces, now), new, now)
        new = self._rejoin(_missing(traces, now), traces, new, now)
        edge = [one for one in new if cut(_edges(one)[None], *self._size).any()]
        back = self._match(gone, edge, now) if gone else edge
        new = [one for one in new if one not in edge or one in back]
        doubtful = [one for one in found if not one.sure]
        doubtful = self._match(_missing(traces, now), doubtful, now, narrow=True)
        self._continue(_missing(traces, now), doubtful, now)
        self._cover(traces, now)
        return new

    def _match(
        self, traces: list[LiveTrack], found: list[Seen], now: GreyFrame, *, narrow: bool = False
    ) -> list[Seen]:
        """Give detections to tracks, and return those that are of none."""
        boxes = np.array([_edges(one) for one in found]).reshape(-1, 4)
        held = np.array([trace.box for trace in traces]).reshape(-1, 4)
        ahead = np.array([trace.ahead for trace in traces]).reshape(-1, 4)
        alone = np.array([trace.seconds_lost for trace in traces])
        pairs = matches(held, ahead, alone, boxes, narrow)
        again = [(i, j) for i, j in pairs if not traces[i].place.sure]  # lost on the way
        before = dict(zip(again, self._memory.backwards(now, [boxes[j] for _, j in again]), strict=True))
        for i, j in pairs:
            box = complete_box(boxes[j], held[i], *self._size)
            traces[i].find(box, found[j].score, before.get((i, j), []))
        taken = {j for _, j in pairs}
        return [one for j, one in enumerate(found) if j not in taken]

    def _continue(self, traces: list[LiveTrack], found: list[Seen], now: GreyFrame) -> list[Seen]:
        """Give detections to tracks that the border cut, or that it cuts now, and return those of none."""
        boxes = np.array([_edges(one) for one in found]).reshape(-1, 4)
        held = np.array([trace.box for trace in traces]).reshape(-1, 4)
        last = np.array([trace.found.box for trace in traces]).reshape(-1, 4)
        followed = np.array([trace.place.sure for trace in traces], bool)
        pairs = continuations(held, last, boxes, followed, *self._size)
        before = self._memory.backwards(now, [boxes[j] for _, j in pairs])
        for (i, j), places in zip(pairs, before, strict=True):
            box = complete_box(boxes[j], held[i], *self._size)
            traces[i].continue_at_border(box, found[j].score, places)
        taken = {j for _, j in pairs}
        return [one for j, one in enumerate(found) if j not in taken]

    def _rejoin(
        self, missing: list[LiveTrack], traces: list[LiveTrack], found: list[Seen], now: GreyFrame
    ) -> list[Seen]:
        """Give detections to tracks whose motion took them past others to there; return those of none.

        Flow follows whoever passes in front, so that such a track is not where it was followed to. Only who
        looks as before is taken for the same: somebody else may go on from there.
        """
        passed = np.array([trace.box for trace in traces if trace.found.frame == now.frame]).reshape(-1, 4)
        for trace in missing:
            onward, there = share(np.stack([trace.onward, trace.box]), passed) >= PASSED_SHARE
            trace.passes |= bool(onward.any())
            trace.carried |= bool(there.any())
            trace.free = trace.free if trace.carried else now.frame
        some = [trace for trace in missing if trace.passes and (trace.carried or not trace.place.sure)]
        boxes = np.array([_edges(one) for one in found]).reshape(-1, 4)
        onward = np.array([trace.onward for trace in some]).reshape(-1, 4)
        pairs = matches(onward, onward, np.zeros(len(some)), boxes, narrow=True)
        last = [(trace.seen or now, trace.found.box) for trace in some]
        pairs = [(i, j) for i, j in pairs if likeness(*last[i], now, boxes[j]) >= LOOKS_ALIKE]
        before = self._memory.backwards(now, [boxes[j] for _, j in pairs])
        for (i, j), places in zip(pairs, before, strict=True):
            some[i].rejoin(complete_box(boxes[j], onward[i], *self._size), found[j].score, places)
        taken = {j for _, j in pairs}
        return [one for j, one in enumerate(found) if j not in taken]

    def _cover(self, traces: list[LiveTrack], now: GreyFrame) -> None:
        """Take which tracks that were not found are in the place of others that were.

        One may be the same object as its `doubles`. It is followed on, as it may leave their place again.
        """
        missing = _missing(traces, now)
        if not missing:
            return
        alike, there = self._places(missing, traces)
        found = np.array([trace.found.frame == now.frame for trace in traces])
        for n, trace in enumerate(missing):
            same = there[n] & [other in trace.doubles for other in traces]
            if trace.is_merged:
                self._close(trace, LOST)
            elif (same & found).any():
                trace.cover(at_once=bool((same & alike[n] & found).any()))
            elif not same.any():
                trace.uncover()

    def _places(self, some: list[LiveTrack], others: list[LiveTrack]) -> tuple[Pairs, Pairs]:
        """Return for which pairs boxes are alike, and for which the first one is in the other one's place."""
        boxes, there = (np.array([trace.box for trace in each]) for each in (some, others))
        alike = overlap(boxes, there) > SAME_OVERLAP
        followed = np.array([[trace.place.sure] for trace in some])
        return alike, alike | (followed & (share(clip_boxes(boxes, *self._size), there) >= HELD_SHARE))

    def _begin(self, finder: str, found: list[Seen], missing: list[LiveTrack], now: GreyFrame) -> None:
        if not found:
            return
        if len(self.closed) + len(self._live) + len(found) > MOST_TRACKS:
            when = f"frame {now.frame} ({float(now.seconds):.2f} s)"
            raise _too_many(f"the clip has more than {MOST_TRACKS:,} tracks up to {when}")
        boxes = [_edges(one) for one in found]  # each is followed backwards
        for one, box, before in zip(found, boxes, self._memory.backwards(now, boxes), strict=True):
            place = Place(now.frame, now.seconds, box, True)
            self._live.append(LiveTrack.begin(one.kind, finder, place, before, one.score))
        if missing:  # one that is first found in the place of another may be the same object
            begun = self._live[-len(found) :]
            for trace, there in zip(missing, self._places(missing, begun)[1], strict=True):
                trace.doubles += [other for other, same in zip(begun, there, strict=True) if same]

    def _close(self, trace: LiveTrack, end: str) -> None:
        self._live.remove(trace)
        leaving = min(float(self.settings.gap), trace.seconds_to_leave(*self._size)) if end == "left" else 0.0
        self.closed.append(trace.close(end, self.settings.margin, leaving))
        self._keys += len(self.closed[-1].track.keys)

    def _check_keys(self) -> None:
        if self._keys + sum(len(trace.path) for trace in self._live) > MOST_KEYS:
            raise _too_many(f"the tracks of the clip have more than {MOST_KEYS:,} keys")


def _missing(traces: list[LiveTrack], now: GreyFrame) -> list[LiveTrack]:
    return [trace for trace in traces if trace.found.frame != now.frame]


def _edges(one: Seen) -> Edges:
    x, y, w, h = one.box
    return np.array([x, y, x + w, y + h], np.float64)


def _too_many(what: str) -> RegionError:
    return RegionError(what, hint=MANY, arguments={"regions": "regions"})


FOUND_AGAIN: Final = 0.3
"""Intersection over union of where a track ended and where another one of its kind was found after that; low,
as what is taken for somebody else stays protected too."""


def protect_lost(closed: Sequence[ClosedTrack], shots: Sequence[tuple[int, int]]) -> list[Track]:
    """Return the tracks, of which lost ones stay to the end of their shot, or until found again.

    `shots` are pairs of first and last frame. A track is found again where another one of its kind is first
    found where it ended. One that is protected until then anyway is not lost: it merges with that track, or
    ends with the shot.
    """
    begun = np.array([one.begun for one in closed])
    kinds = np.array([one.track.kind for one in closed])
    starts = np.array([_place(one.track, one.begun) for one in closed]).reshape(-1, 4)
    protected = list[Track]()
    for track, _, sure in closed:
        if track.end != LOST:
            protected.append(track)
            continue
        last = next(stop for start, stop in shots if start <= sure <= stop)
        later = np.flatnonzero((kinds == track.kind) & (begun > sure) & (begun < last))
        there = overlap(_place(track, track.last)[None], starts[later])[0]
        until = min([last, *begun[later[there >= FOUND_AGAIN]].tolist()])
        if until > track.last:
            protected.append(replace(track, keys=(*track.keys, replace(track.keys[-1], frame=until))))
        else:
            end = MERGED if until < last else "end" if last == shots[-1][1] else "cut"
            protected.append(replace(track, end=end))
    return protected


def _place(track: Track, frame: int) -> np.ndarray:
    key = next(key for key in reversed(track.keys) if key.frame <= frame)
    return np.array([key.x, key.y, key.x + key.w, key.y + key.h], np.float64)


NOTHING: Final = "give lower thresholds or boxes; {method} fill with {regions} whole hides all of the clip"
"""The remedy where nothing is found."""
ARGUMENTS: Final = {"method": "method", "regions": "regions"}  # the arguments that NOTHING names


class Found(NamedTuple):
    """The tracks of a clip, numbered from 1 in order of their first frames, and then of left and top there.

    `cuts` are the frames with which shots begin, but for the first.
    """

    tracks: tuple[Track, ...]
    cuts: tuple[int, ...] = ()


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
    for the keys of tracks. Raises `NoRegion` if nothing is found; `RegionError` if a search fails, or there
    are more than `MOST_TRACKS` tracks; and `InvalidParameter` for a finder that only fits photos.
    """
    settings = TrackSettings() if settings is None else settings
    looker, tracker, first, last = FrameSearcher(facts, finders, settings), Tracker(facts, settings), 0, -1
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
    closed = sorted(tracker.closed, key=lambda one: astuple(one.track.keys[0])[:3])  # frame, x, y
    shots = [(start, stop - 1) for start, stop in pairwise([first, *tracker.cuts, last + 1])]
    numbered = enumerate(protect_lost(closed, shots), start=1)
    return Found(tuple(replace(one, number=n) for n, one in numbered), tuple(tracker.cuts))
