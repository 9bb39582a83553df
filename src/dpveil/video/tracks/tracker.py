"""Objects of a clip, frame by frame: searched for, followed, and given up."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from jaxtyping import UInt8

from dpveil.core.origin import FACE
from dpveil.core.photo import Photo
from dpveil.errors import RegionError
from dpveil.regions.finder import Finder, Seen
from dpveil.video.facts import Facts, Frame
from dpveil.video.tracks.association import matches, overlap
from dpveil.video.tracks.flow import follow, small
from dpveil.video.tracks.settings import TrackSettings
from dpveil.video.tracks.shots import Shots
from dpveil.video.tracks.trace import Closed, Edges, Place, Trace, outside
from dpveil.video.tracks.turns import turn_of

MOST_TRACKS: Final = 2000
MOST_KEYS: Final = 200_000
"""Limits of a clip."""
MANY: Final = "give higher thresholds, cut the clip, or protect the whole of it: choose whole for {regions}"
WINDOW: Final = 120
"""The most frames through which new tracks are followed backwards: 30 MB."""
TAKEN: Final = 0.5
"""Intersection over union with a track that was found, from which one that was not is the same object."""
THUMBNAIL: Final = 96
"""Longer side of thumbnails in pixels."""
AROUND: Final = 0.3
"""Margin of thumbnails on each side, relative to the box."""


@dataclass(frozen=True, eq=False)
class Past:
    """A frame that is remembered, as a small grey copy."""

    frame: int
    seconds: Fraction
    grey: UInt8[np.ndarray, "h w"]


class Tracker:
    """Takes the frames of a clip in order; `closed` are the tracks so far and `cuts` where shots begin."""

    def __init__(self, facts: Facts, finders: Sequence[Finder], settings: TrackSettings) -> None:
        self.facts, self.settings = facts, settings
        size = facts.width, facts.height, settings.long_side
        made = [finder.for_frames(*size) for finder in finders]
        self.finders = list({finder.description: finder for finder in made}.values())
        self.closed: list[Closed] = []
        self.cuts: list[int] = []
        self.searched = 0
        self._shots, self._live, self._keys, self._scale = Shots(), list[Trace](), 0, 1.0
        self._window: deque[Past] = deque(maxlen=WINDOW)
        self._due: Fraction | None = None
        self._back = max(settings.backwards, settings.every)

    def take(self, frame: Frame) -> None:
        """Take the next frame; raises `RegionError` if a search fails or there are too many tracks."""
        seconds = (frame.time - self.facts.start) * self.facts.time_base
        grey, self._scale = small(frame.image)
        if self._shots.begins(grey):
            self._cut(frame.index)
        self._follow(frame.index, seconds, grey)
        last = self._window[-1].seconds if self._window else seconds
        if self._due is None or seconds + (seconds - last) / 2 >= self._due:
            self._search(frame, seconds, grey)
            self._due = seconds + self.settings.every
        self._drop(seconds)
        self._remember(Past(frame.index, seconds, grey))

    def end(self) -> None:
        """Close all tracks, as the clip is over."""
        for trace in self._live:
            self._close(trace, "end")
        self._live = []

    def _cut(self, index: int) -> None:
        """Begin a shot: nothing is followed from one to the next, and its first frame is searched."""
        for trace in self._live:
            self._close(trace, "cut")
        self.cuts.append(index)
        self._live, self._due = [], None
        self._window.clear()

    def _follow(self, index: int, seconds: Fraction, grey: UInt8[np.ndarray, "h w"]) -> None:
        """Follow all tracks into a frame."""
        if not self._live:
            return
        moved, sure = self._flow(self._window[-1].grey, grey, [trace.place.box for trace in self._live])
        for trace, box, known in zip(self._live, moved, sure, strict=True):
            trace.follow(index, seconds, box, sure=bool(known))

    def _flow(
        self, before: UInt8[np.ndarray, "h w"], after: UInt8[np.ndarray, "h w"], boxes: list[Edges]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return where boxes of one small frame are in another, in pixels of the clip, and which are sure."""
        moved, sure = follow(before, after, np.array(boxes).reshape(-1, 4) * self._scale)
        return moved / self._scale, sure

    def _remember(self, past: Past) -> None:
        """Keep a frame for what is found later, and forget those that are older than needed."""
        self._window.append(past)
        while past.seconds - self._window[0].seconds > self._back:
            self._window.popleft()

    def _search(self, frame: Frame, seconds: Fraction, grey: UInt8[np.ndarray, "h w"]) -> None:
        """Search a frame by every finder, and take what is found as that of tracks, or of new ones."""
        photo = Photo(frame.image)
        self.searched += 1
        for finder in self.finders:
            found = finder.seen(photo)
            for kind in sorted({one.kind for one in found} | {trace.kind for trace in self._of(finder)}):
                self._assign(frame, seconds, grey, finder, [one for one in found if one.kind == kind], kind)

    def _of(self, finder: Finder) -> list[Trace]:
        return [trace for trace in self._live if trace.finder == finder.description]

    def _assign(
        self,
        frame: Frame,
        seconds: Fraction,
        grey: UInt8[np.ndarray, "h w"],
        finder: Finder,
        found: list[Seen],
        kind: str,
    ) -> None:
        """Give detections of one kind to tracks: first the sure ones, then doubtful ones (ByteTrack)."""
        traces = [trace for trace in self._of(finder) if trace.kind == kind]
        sure = [one for one in found if one.sure]
        doubtful = [one for one in found if not one.sure]
        new = _matched(traces, sure, frame)
        rest = [trace for trace in traces if trace.found.frame != frame.index]
        _matched(rest, doubtful, frame, narrow=True)
        self._give_up_taken([trace for trace in traces if trace.found.frame == frame.index], rest)
        self._begin(frame, seconds, grey, finder.description, new)
        if kind == FACE:
            self._turn(frame, seconds)

    def _give_up_taken(self, found: list[Trace], rest: list[Trace]) -> None:
        """Close tracks that were not found, where another one was."""
        missing = [trace for trace in rest if trace not in found]
        if not found or not missing:
            return
        alike = overlap(*(np.array([t.place.box for t in traces]) for traces in (missing, found)))
        for trace, best in zip(missing, alike.max(axis=1), strict=True):
            if best > TAKEN:
                self._close(trace, "lost", taken=True)
                self._live.remove(trace)

    def _begin(
        self,
        frame: Frame,
        seconds: Fraction,
        grey: UInt8[np.ndarray, "h w"],
        finder: str,
        found: list[Seen],
    ) -> None:
        """Begin tracks, each of which is followed backwards."""
        if len(self.closed) + len(self._live) + len(found) > MOST_TRACKS:
            raise _too_many(f"{MOST_TRACKS:,} tracks", frame, seconds)
        boxes = [_edges(one) for one in found]
        for one, box, before in zip(found, boxes, self._backwards(seconds, grey, boxes), strict=True):
            place = Place(frame.index, seconds, box, True)
            trace = Trace.begin(one.kind, finder, place, before, one.score)
            _show(trace, frame, one.score)
            self._live.append(trace)

    def _backwards(
        self, seconds: Fraction, grey: UInt8[np.ndarray, "h w"], boxes: list[Edges]
    ) -> list[list[Place]]:
        """Return where new objects were in the frames before, the earliest first.

        Where flow loses one, it is held to the first frame. One that comes into the picture begins there.
        """
        places: list[list[Place]] = [[] for _ in boxes]
        newest, sure, inside = list(boxes), [True] * len(boxes), [True] * len(boxes)
        for past in self._past(seconds):
            asked = [n for n in range(len(boxes)) if sure[n] and inside[n]]
            moved, known = self._flow(grey, past.grey, [newest[n] for n in asked])
            for n, box, good in zip(asked, moved, known, strict=True):
                newest[n], sure[n] = (box, True) if good else (newest[n], False)
                inside[n] = not outside(newest[n], self.facts.width, self.facts.height)
            for n in range(len(boxes)):
                if inside[n]:
                    places[n].insert(0, Place(past.frame, past.seconds, newest[n], sure[n]))
            grey = past.grey
        return places

    def _past(self, seconds: Fraction) -> list[Past]:
        """Return the frames through which something new is followed, the newest first."""
        return [past for past in reversed(self._window) if seconds - past.seconds <= self._back]

    def _turn(self, frame: Frame, seconds: Fraction) -> None:
        """Look for the roll and yaw of faces that were found in this frame."""
        for trace in self._live:
            if trace.kind == FACE and trace.found.frame == frame.index and seconds >= trace.turn_due:
                trace.turn(seconds, turn_of(frame.image, trace.found.box))

    def _drop(self, seconds: Fraction) -> None:
        """Close the tracks of what left the picture or was not found for too long."""
        for trace in list(self._live):
            gone = outside(trace.place.box, self.facts.width, self.facts.height)
            if gone or seconds - trace.found.seconds > self.settings.gap:
                left = trace.left(self.facts.width, self.facts.height)
                self._close(trace, "left" if left else "lost")
                self._live.remove(trace)

    def _close(self, trace: Trace, end: str, *, taken: bool = False) -> None:
        closed = trace.close(end, self.settings.margin, taken=taken)
        self.closed.append(closed)
        self._keys += len(closed.keys)
        if self._keys > MOST_KEYS:
            raise RegionError(
                f"the tracks of the clip have more than {MOST_KEYS:,} keys",
                hint=MANY,
                arguments={"regions": "regions"},
            )


def _matched(traces: list[Trace], found: list[Seen], frame: Frame, *, narrow: bool = False) -> list[Seen]:
    """Give detections to traces, and return those that are of none."""
    boxes = np.array([_edges(one) for one in found]).reshape(-1, 4)
    held, ahead = (
        np.array([getattr(trace, name) for trace in traces]).reshape(-1, 4) for name in ("box", "ahead")
    )
    alone = np.array([trace.alone for trace in traces])
    pairs = matches(held, ahead, alone, boxes, narrow)
    for i, j in pairs:
        traces[i].find(boxes[j], found[j].score)
        _show(traces[i], frame, found[j].score)
    taken = {j for _, j in pairs}
    return [one for j, one in enumerate(found) if j not in taken]


def _edges(one: Seen) -> Edges:
    x, y, w, h = one.box
    return np.array([x, y, x + w, y + h], np.float64)


def _show(trace: Trace, frame: Frame, score: float | None) -> None:
    """Keep a picture of the best detection for the owner."""
    import cv2

    if (score or 0.0) <= trace.thumbnail_score:
        return
    height, width = frame.image.shape[:2]
    box = trace.found.box
    aside = np.tile((box[2:] - box[:2]) * AROUND, 2) * [-1, -1, 1, 1]
    left, top, right, bottom = np.rint(box + aside).astype(int)
    part = frame.image[max(0, top) : min(height, bottom), max(0, left) : min(width, right)]
    if part.size:
        ratio = min(1.0, THUMBNAIL / max(part.shape[:2]))
        size = tuple(max(1, round(side * ratio)) for side in part.shape[1::-1])
        trace.thumbnail = cv2.resize(part, size, interpolation=cv2.INTER_AREA)
        trace.thumbnail_score = score or 0.0


def _too_many(what: str, frame: Frame, seconds: Fraction) -> RegionError:
    when = f"frame {frame.index} ({float(seconds):.2f} s)"
    return RegionError(
        f"the clip has more than {what} up to {when}", hint=MANY, arguments={"regions": "regions"}
    )
