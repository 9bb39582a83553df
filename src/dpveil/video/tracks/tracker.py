"""Objects of a clip, frame by frame: found, followed, and given up."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, UInt8

from dpveil.core.origin import FACE
from dpveil.core.region import Box
from dpveil.errors import RegionError, UsageError
from dpveil.faces.geometry.align import Frame as FaceFrame
from dpveil.faces.geometry.align import of_points
from dpveil.faces.geometry.landmarks import Predictor, pose_of, predictor
from dpveil.faces.geometry.place import check
from dpveil.regions.finder import Seen
from dpveil.video.facts import LOST, Facts, Frame
from dpveil.video.tracks.following import completed, continuations, inside, matches, overlap, share
from dpveil.video.tracks.looking import Memory, Moment, Sight, TrackSettings
from dpveil.video.tracks.trace import Closed, Edges, Place, Trace, outside

LEAST: Final = 40
"""Height in pixels of faces in which landmarks are looked for."""


def turn_of(
    image: UInt8[np.ndarray, "h w 3"], box: Float[np.ndarray, " 4"], roll: float | None = None
) -> tuple[float, float] | None:
    """Return roll and yaw in degrees of the face in a box (left, top, right, bottom), as in `Key`.

    It is looked for with a `roll` in degrees where one is expected, and upright. None if landmarks are not
    installed or not sure, and for small faces.
    """
    asked = _installed()
    left, top, right, bottom = (round(float(value)) for value in box)
    if asked is None or bottom - top < LEAST or right <= left:
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
def _installed() -> Predictor | None:
    """Return the predictor of landmarks; None without it."""
    try:
        return predictor()
    except UsageError:
        return None


MOST_TRACKS: Final = 2000
MOST_KEYS: Final = 200_000
"""Limits of a clip."""
MANY: Final = "give higher thresholds, cut the clip, or protect the whole of it: choose whole for {regions}"
TAKEN: Final = 0.5
"""Intersection over union with a track that was found, from which one that was not is the same object."""
HELD: Final = 0.8
"""Share of a box that another one holds in searches in a row, from which both are the same object."""
Pairs = Bool[np.ndarray, "n m"]
THUMBNAIL: Final = 96
"""Longer side of thumbnails in pixels."""
AROUND: Final = 0.3
"""Margin of thumbnails on each side, relative to the box."""


class Tracker:
    """Takes what is seen in the frames of a clip, in order.

    `closed` are the tracks so far and `cuts` where shots begin.
    """

    def __init__(self, facts: Facts, settings: TrackSettings) -> None:
        self.facts, self.settings = facts, settings
        self._size = facts.width, facts.height
        self.closed: list[Closed] = []
        self.cuts: list[int] = []
        self.searched = 0
        self._live, self._keys = list[Trace](), 0
        self._memory = Memory(facts, max(settings.backwards, settings.every))

    def take(self, sight: Sight) -> None:
        """Take the next frame; raises `RegionError` if there are too many tracks."""
        now = sight.now
        if sight.begins:
            self._cut(now.frame)
        if self._live:
            moved = self._memory.forwards(now, [trace.box for trace in self._live])
            for trace, (box, sure, turn) in zip(self._live, moved, strict=True):
                trace.follow(now.frame, now.seconds, box, turn, sure=sure)
        if sight.seen is not None:
            self._find(sight.seen, sight.frame, now)
        self._drop(now)
        self._memory.add(now)

    def end(self) -> None:
        """Close all tracks, as the clip is over."""
        for trace in self._live:
            self._close(trace, "end")
        self._live = []
        self._check_keys()

    def _cut(self, index: int) -> None:
        """Begin a shot: nothing is followed from one to the next."""
        for trace in self._live:
            self._close(trace, "cut")
        self.cuts.append(index)
        self._live = []
        self._memory.clear()

    def _find(self, seen: Mapping[str, list[Seen]], frame: Frame, now: Moment) -> None:
        """Take what every finder has found in a frame as that of tracks, or of new ones."""
        self.searched += 1
        for finder, found in seen.items():
            own = [trace for trace in self._live if trace.finder == finder]
            for kind in sorted({one.kind for one in found} | {trace.kind for trace in own}):
                traces = [trace for trace in own if trace.kind == kind]
                new = self._assign(traces, [one for one in found if one.kind == kind], now)
                self._begin(finder, new, _missing(traces, now), now)
        self._show_and_turn(frame, now)
        self._check_keys()

    def _assign(self, traces: list[Trace], found: list[Seen], now: Moment) -> list[Seen]:
        """Give detections to tracks, first the sure ones and then the doubtful, and return new objects.

        Source: ByteTrack (arXiv 2110.06864).
        """
        new = self._match(traces, [one for one in found if one.sure], now)
        new = self._continue(_missing(traces, now), new, now)
        doubtful = [one for one in found if not one.sure]
        doubtful = self._match(_missing(traces, now), doubtful, now, narrow=True)
        self._continue(_missing(traces, now), doubtful, now)
        self._cover(traces, now)
        return new

    def _match(
        self, traces: list[Trace], found: list[Seen], now: Moment, *, narrow: bool = False
    ) -> list[Seen]:
        """Give detections to tracks, and return those that are of none.

        Tracks that were lost on the way are followed backwards from there.
        """
        boxes = np.array([_edges(one) for one in found]).reshape(-1, 4)
        held = np.array([trace.box for trace in traces]).reshape(-1, 4)
        ahead = np.array([trace.ahead for trace in traces]).reshape(-1, 4)
        alone = np.array([trace.alone for trace in traces])
        pairs = matches(held, ahead, alone, boxes, narrow)
        again = [(i, j) for i, j in pairs if not traces[i].place.sure]
        before = dict(zip(again, self._memory.backwards(now, [boxes[j] for _, j in again]), strict=True))
        for i, j in pairs:
            box = completed(boxes[j], held[i], *self._size)
            traces[i].find(box, found[j].score, before.get((i, j), []))
        taken = {j for _, j in pairs}
        return [one for j, one in enumerate(found) if j not in taken]

    def _continue(self, traces: list[Trace], found: list[Seen], now: Moment) -> list[Seen]:
        """Give detections to tracks that the border cut, or that it cuts now, and return those of none."""
        boxes = np.array([_edges(one) for one in found]).reshape(-1, 4)
        held = np.array([trace.box for trace in traces]).reshape(-1, 4)
        last = np.array([trace.found.box for trace in traces]).reshape(-1, 4)
        followed = np.array([trace.place.sure for trace in traces], bool)
        pairs = continuations(held, last, boxes, followed, *self._size)
        before = self._memory.backwards(now, [boxes[j] for _, j in pairs])
        for (i, j), places in zip(pairs, before, strict=True):
            box = completed(boxes[j], held[i], *self._size)
            traces[i].continue_at_border(box, found[j].score, places)
        taken = {j for _, j in pairs}
        return [one for j, one in enumerate(found) if j not in taken]

    def _cover(self, traces: list[Trace], now: Moment) -> None:
        """Take which tracks that were not found are in the place of others that were.

        One may be the same object as its `doubles`. It is followed on, as it may come out of their place
        again.
        """
        missing = _missing(traces, now)
        if not missing:
            return
        alike, there = self._places(missing, traces)
        found = np.array([trace.found.frame == now.frame for trace in traces])
        for n, trace in enumerate(missing):
            same = there[n] & [other in trace.doubles for other in traces]
            if trace.merged:
                self._close(trace, LOST)
                self._live.remove(trace)
            elif (same & found).any():
                trace.cover(at_once=bool((same & alike[n] & found).any()))
            elif not same.any():
                trace.uncover()

    def _places(self, some: list[Trace], others: list[Trace]) -> tuple[Pairs, Pairs]:
        """Return for which pairs boxes are alike, and for which the first one is in the other one's place.

        That is so if boxes are alike, or the other one holds where the first one was followed to.
        """
        boxes, there = (np.array([trace.box for trace in each]) for each in (some, others))
        alike = overlap(boxes, there) > TAKEN
        followed = np.array([[trace.place.sure] for trace in some])
        return alike, alike | (followed & (share(inside(boxes, *self._size), there) >= HELD))

    def _begin(self, finder: str, found: list[Seen], missing: list[Trace], now: Moment) -> None:
        """Begin tracks, each of which is followed backwards.

        One that is first found in the place of a track that is missing may be the same object.
        """
        if not found:
            return
        if len(self.closed) + len(self._live) + len(found) > MOST_TRACKS:
            when = f"frame {now.frame} ({float(now.seconds):.2f} s)"
            raise _too_many(f"the clip has more than {MOST_TRACKS:,} tracks up to {when}")
        boxes = [_edges(one) for one in found]
        for one, box, before in zip(found, boxes, self._memory.backwards(now, boxes), strict=True):
            place = Place(now.frame, now.seconds, box, True)
            self._live.append(Trace.begin(one.kind, finder, place, before, one.score))
        if missing:
            begun = self._live[-len(found) :]
            for trace, there in zip(missing, self._places(missing, begun)[1], strict=True):
                trace.doubles += [other for other, same in zip(begun, there, strict=True) if same]

    def _show_and_turn(self, frame: Frame, now: Moment) -> None:
        """Keep pictures of what was found in this frame, and look for the roll and yaw of faces."""
        for trace in self._live:
            if trace.found.frame != now.frame:
                continue
            if trace.best_shown < trace.newest_score:
                trace.show(_thumbnail(frame, trace.box))
            if trace.kind == FACE and trace.turn_is_due:
                trace.turn(turn_of(frame.image, trace.box, trace.roll))

    def _drop(self, now: Moment) -> None:
        """Close the tracks of what left the picture or was not found for too long."""
        for trace in list(self._live):
            gone = outside(trace.box, self.facts.width, self.facts.height)
            if gone or now.seconds - trace.waits_since > self.settings.gap:
                left = trace.left(self.facts.width, self.facts.height)
                self._close(trace, "left" if left else LOST)
                self._live.remove(trace)

    def _close(self, trace: Trace, end: str) -> None:
        closed = trace.close(end, self.settings.margin)
        self.closed.append(closed)
        self._keys += len(closed.keys)

    def _check_keys(self) -> None:
        """Raise `RegionError` if there are too many keys, of tracks that are closed or go on."""
        if self._keys + sum(len(trace.path) for trace in self._live) > MOST_KEYS:
            raise _too_many(f"the tracks of the clip have more than {MOST_KEYS:,} keys")


def _missing(traces: list[Trace], now: Moment) -> list[Trace]:
    """Return the tracks that were not found in this frame."""
    return [trace for trace in traces if trace.found.frame != now.frame]


def _edges(one: Seen) -> Edges:
    """Return left, top, right and bottom."""
    x, y, w, h = one.box
    return np.array([x, y, x + w, y + h], np.float64)


def _thumbnail(frame: Frame, box: Edges) -> np.ndarray | None:
    """Return a small picture of a box and what is around it; None if it is outside of the frame."""
    import cv2

    height, width = frame.image.shape[:2]
    aside = np.tile((box[2:] - box[:2]) * AROUND, 2) * [-1, -1, 1, 1]
    left, top, right, bottom = np.rint(box + aside).astype(int)
    part = frame.image[max(0, top) : min(height, bottom), max(0, left) : min(width, right)]
    if not part.size:
        return None
    ratio = min(1.0, THUMBNAIL / max(part.shape[:2]))
    size = tuple(max(1, round(side * ratio)) for side in part.shape[1::-1])
    return cv2.resize(part, size, interpolation=cv2.INTER_AREA)


def _too_many(what: str) -> RegionError:
    return RegionError(what, hint=MANY, arguments={"regions": "regions"})
