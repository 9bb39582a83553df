"""One object while a clip is read: where it was found, where it was followed to, and when it was given up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

import numpy as np
from jaxtyping import Float, UInt8

from dpveil.video.facts import MERGED, Key
from dpveil.video.tracks.following import inside
from dpveil.video.tracks.path import ANGLE, Path

Edges = Float[np.ndarray, " 4"]
"""Left, top, right and bottom, in pixels of the frame."""
LEAVING: Final = 0.5
"""Seconds of straight motion within which an object that is not found left the picture."""
AHEAD: Final = 0.4
"""Seconds for which the motion of an object that is not followed is taken to go on."""
TURN_WAITS: Final = (Fraction(2, 5), Fraction(2))
"""Shortest and longest time in seconds between two searches for landmarks in one track."""
TURN_LASTS: Final = Fraction(3)
"""Seconds for which a head is taken to be turned as its points are, after landmarks were found."""
COVERED: Final = 3
"""Searches in a row with another track in the place of one, from which both may be the same object."""
RECENT: Final = 0.5
"""Share of the newest motion in that of a trace."""


@dataclass(frozen=True, eq=False)
class Place:
    """Where an object was in a frame, and whether it was found or followed there.

    It was `turned` by so many degrees, clockwise, since it was first found.
    """

    frame: int
    seconds: Fraction
    box: Edges
    sure: bool
    turned: float = 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Closed:
    """The track of an object that is no longer followed.

    `begun` is the frame in which it was first found, and `sure` the last one in which it was followed.
    """

    kind: str
    finder: str
    keys: tuple[Key, ...]
    end: str
    score: float | None
    begun: int
    sure: int
    thumbnail: UInt8[np.ndarray, "h w 3"] | None = None


@dataclass(eq=False)
class Trace:
    """An object that is followed; `place` is its newest place, and `found` that of its last detection."""

    kind: str
    finder: str
    place: Place
    found: Place
    begun: int
    score: float | None = None
    motion: Float[np.ndarray, " 2"] = field(default_factory=lambda: np.zeros(2))
    """Pixels per second."""
    thumbnail: UInt8[np.ndarray, "h w 3"] | None = None
    best_shown: float = -1.0
    newest_score: float = 0.0
    """Scores of the thumbnail and of the last detection."""
    turn_due: Fraction = Fraction(0)
    turn_wait: Fraction = TURN_WAITS[0]
    """When its turn is looked for again, and how long after the last time that is."""
    doubles: list[Trace] = field(default_factory=list)
    """Tracks that were first found in its place since its last detection: it may be the same object."""
    covered: int = 0
    """In how many searches in a row one of these was found in its place."""
    covered_at: Fraction = Fraction(-1)
    merges: Fraction | None = None
    """When the last of them was, and when they came to be `COVERED`."""
    turn_asked: float = 0.0
    turn_known: Fraction | None = None
    """How far it was turned when its turn was looked for last, and when it was last found."""
    path: Path = field(default_factory=Path)
    loose: list[Place] = field(default_factory=list)
    """Places since the last detection, which the next one corrects."""

    @classmethod
    def begin(cls, kind: str, finder: str, place: Place, before: list[Place], score: float | None) -> Trace:
        """Return a trace found in `place`, which was followed backwards through places `before`, in order."""
        trace = cls(kind, finder, place, place, place.frame, score, newest_score=score or 0.0)
        for one in (*before, place):
            trace.path.add(one.frame, one.box, one.turned)
        followed = [one for one in before if one.sure]
        if followed:
            trace._move(followed[0], place)
        return trace

    def follow(self, frame: int, seconds: Fraction, box: Edges, turn: float = 0.0, *, sure: bool) -> None:
        """Take the place in the next frame; from the first unsure one on, it stays until found again.

        It was turned by a `turn` in degrees, which counts for `TURN_LASTS` after landmarks were found.
        """
        sure = sure and self.place.sure
        counts = sure and self.turn_known is not None and seconds - self.turn_known <= TURN_LASTS
        turned = self.place.turned + (turn if counts else 0.0)
        self.place = Place(frame, seconds, box if sure else self.place.box, sure, turned)
        self.loose.append(self.place)

    def find(self, box: Edges, score: float | None, before: Sequence[Place] = ()) -> None:
        """Take a detection in the newest frame, and correct the places since the last one.

        It was followed backwards through places `before`, in order.
        """
        here = Place(self.place.frame, self.place.seconds, box, True, self.place.turned)
        for place, corrected in zip(self.loose, self._corrected(box, before), strict=True):
            self.path.add(place.frame, corrected, place.turned)
        self.uncover()
        self.doubles = []
        self._move(self.found, here)
        self.loose, self.place, self.found = [], here, here
        self.score = score if self.score is None else max(self.score, score or 0.0)
        self.newest_score = score or 0.0

    def continue_at_border(self, box: Edges, score: float | None, before: Sequence[Place]) -> None:
        """Take a detection that the border cut less, as `find` does, and where it was before that too."""
        self.find(box, score, before)
        self.path.widen({place.frame: (place.box, place.sure) for place in before})

    def cover(self, *, at_once: bool) -> None:
        """Take that one of the `doubles` was found here in this search.

        `at_once` says that one search is enough for that. While it goes on, the places in between are
        forgotten, so that this takes little memory.
        """
        self.covered = max(self.covered + 1, COVERED * at_once)
        self.covered_at = self.place.seconds
        if self.covered < COVERED:
            return
        if self.merges is None:
            self.merges = self.place.seconds
        earlier = (place for place in self.loose[:-1] if place.seconds <= self.merges)
        self.loose = [*earlier, self.place]

    def uncover(self) -> None:
        """Take that no other track is here any more, so that this one is of an object of its own."""
        self.covered, self.merges = 0, None

    @property
    def waits_since(self) -> Fraction:
        """When the object was last found, or another track in its place."""
        return max(self.found.seconds, self.covered_at)

    @property
    def merged(self) -> bool:
        """Whether flow lost the object where another track was, so that it cannot come out any more."""
        return self.merges is not None and not self.place.sure and self.last_sure.seconds >= self.merges

    def show(self, picture: UInt8[np.ndarray, "h w 3"] | None) -> None:
        """Take a thumbnail of the last detection."""
        self.thumbnail, self.best_shown = picture, self.newest_score

    def turn(self, turn: tuple[float, float] | None) -> None:
        """Take roll and yaw of a head in the newest frame, None if they are not sure.

        The longer they are as expected, the longer it takes until they are looked for again.
        """
        news = turn is not None and self.path.turn(self.found.frame, *turn, self.place.turned)
        if turn is not None:
            self.turn_known = self.place.seconds
        shortest, longest = TURN_WAITS
        self.turn_wait = shortest if news else min(2 * self.turn_wait, longest)
        self.turn_due = self.place.seconds + self.turn_wait
        self.turn_asked = self.place.turned

    @property
    def turn_is_due(self) -> bool:
        """Whether to look for roll and yaw: it is time, or the head was turned since."""
        return self.place.seconds >= self.turn_due or abs(self.place.turned - self.turn_asked) > ANGLE

    @property
    def roll(self) -> float | None:
        """The roll of a head in degrees, as it was turned since its landmarks; None before any."""
        return self.path.roll(self.place.turned)

    def _corrected(self, box: Edges, before: Sequence[Place]) -> list[Edges]:
        """Return the boxes since the last detection, so that they end in `box`.

        What flow missed is spread over all frames. Where it lost the object, the box goes straight from there
        to where it was followed backwards.
        """
        sure = [place for place in self.loose if place.sure]
        last = self.loose[-1].frame
        if len(sure) == len(self.loose):
            first = self.found.frame
            missed = box - self.loose[-1].box
            return [place.box + missed * ((place.frame - first) / (last - first)) for place in self.loose]
        start = sure[-1] if sure else self.found
        known = {place.frame: place.box for place in before if place.sure and place.frame > start.frame}
        known |= {place.frame: place.box for place in sure} | {start.frame: start.box, last: box}
        frames = sorted(known)
        there = np.array([known[frame] for frame in frames])
        asked = [place.frame for place in self.loose]
        return list(np.stack([np.interp(asked, frames, side) for side in there.T], axis=1))

    def _move(self, start: Place, stop: Place) -> None:
        """Learn the motion from two places."""
        seconds = float(stop.seconds - start.seconds)
        if seconds > 0:
            moved = (stop.box[:2] + stop.box[2:] - start.box[:2] - start.box[2:]) / (2 * seconds)
            known = RECENT if self.motion.any() else 1.0
            self.motion = known * moved + (1 - known) * self.motion

    @property
    def last_sure(self) -> Place:
        """The last place where the object was found or followed."""
        return next((place for place in reversed(self.loose) if place.sure), self.found)

    @property
    def box(self) -> Edges:
        """The newest place."""
        return self.place.box

    @property
    def alone(self) -> float:
        """For how many seconds the object was not followed."""
        return float(self.place.seconds - self.last_sure.seconds)

    @property
    def ahead(self) -> Edges:
        """Where the object is if its motion went on after it was not followed any more."""
        return self.place.box + np.tile(self.motion * min(self.alone, AHEAD), 2)

    def left(self, width: int, height: int) -> bool:
        """Whether the object is out of the picture, or what is seen of it will be within `LEAVING`."""
        box = self.last_sure.box
        seen = inside(box, width, height)
        centre = (seen[:2] + seen[2:]) / 2 + self.motion * LEAVING
        return outside(box, width, height) or not ((centre >= 0) & (centre <= (width, height))).all()

    def close(self, end: str, margin: Fraction) -> Closed:
        """Return the track; what was followed no more is held for a `margin` in seconds.

        It is held to the last frame where the shot or the clip ends. One that never came out of the place of
        another track ends where that began to be so.
        """
        sure = self.last_sure
        until = None if end in ("cut", "end") else sure.seconds + margin
        if self.merges is not None:
            end, until = MERGED, self.merges
        for place in self.loose:
            if until is None or place.seconds <= until:
                self.path.add(place.frame, place.box, place.turned)
        return Closed(
            kind=self.kind,
            finder=self.finder,
            keys=self.path.written(),
            end=end,
            score=None if self.score is None else round(self.score, 4),
            begun=self.begun,
            sure=sure.frame,
            thumbnail=self.thumbnail,
        )


def outside(box: Edges, width: int, height: int) -> bool:
    """Whether a box has no pixel in a picture of this size."""
    return bool((box[:2] >= (width, height)).any() or (box[2:] <= 0).any())
