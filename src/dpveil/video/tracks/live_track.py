"""One object while a clip is read: where it was found, where it was followed to, and when it was given up."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from dpveil.core.array_types import Float
from dpveil.video.facts import MERGED, Key, Track
from dpveil.video.tracks.box_flow import GreyFrame, clip_boxes

TOLERANCE: Final = 0.06
"""How far edges may be from straight lines between keys, relative to the box; boxes at keys grow by that."""
SPIN_DEGREES: Final = 1.0  # how far turns that were followed may be from straight lines, in degrees
NEWS_DEGREES: Final = 7.0  # how far roll or yaw are from what was expected if they are news, in degrees
NEAR_DEGREES: Final = (3.0, 7.0)
"""How far roll and yaw may be from straight lines, in degrees; what is shown is rounded to 15° and 20°."""
CHUNK: Final = 512  # frames after which keys are fixed, so that a long path takes little memory
OUTWARD: Final = np.array([-1.0, -1.0, 1.0, 1.0])
Row = tuple[float, ...]  # a frame, and left, top, right and bottom in pixels
Turn = tuple[int, float, float, float]
"""A frame, roll and yaw in degrees, and how far the head was turned since it was first found."""


class Path:
    """The places of one object in every frame from its first to its last, in order."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._frames: list[int] = []
        self._boxes: list[np.ndarray] = []
        self._grown: list[np.ndarray] = []
        self._turns: list[Turn] = []
        self._spins: list[tuple[int, float]] = []

    def add(self, frame: int, box: Float[np.ndarray, " 4"], turned: float = 0.0) -> None:
        """Take the place in the next frame: left, top, right and bottom.

        The object was `turned` by so many degrees, clockwise, since any one time.
        """
        self._rows.append((frame, *map(float, box)))
        self._spins.append((frame, turned))
        if len(self._rows) > CHUNK:
            self._fix()

    def widen(self, boxes: Mapping[int, tuple[Float[np.ndarray, " 4"], bool]]) -> None:
        """Hold further places too where keys are not fixed: those before the first, and others if sure."""
        fixed, rows = self._rows[: bool(self._frames)], self._rows[bool(self._frames) :]
        held = []
        for frame, *sides in rows:
            box, sure = boxes.get(int(frame), (np.array(sides), False))
            other = (box if sure else np.array(sides)) * OUTWARD
            held.append((frame, *map(float, np.maximum(np.array(sides) * OUTWARD, other) * OUTWARD)))
        if not self._frames:
            first = rows[0][0]
            fixed = [(frame, *map(float, boxes[frame][0])) for frame in sorted(boxes) if frame < first]
        self._rows = fixed + held

    def turn(self, frame: int, roll: float, yaw: float, turned: float = 0.0) -> bool:
        """Take the roll and yaw of a head in a frame, in degrees, and return whether they are news.

        It was `turned` as in `add`, which tells the roll from the one before.
        """
        news, expected = True, self.roll(turned)
        if expected is not None:
            roll = expected + (roll - expected + 180) % 360 - 180
            news = max(abs(roll - expected), abs(yaw - self._turns[-1][2])) > NEWS_DEGREES
        self._turns.append((frame, roll, yaw, turned))
        return news

    def roll(self, turned: float) -> float | None:
        """Return the roll to expect of a head that was `turned` since the last one; None before any."""
        return self._turns[-1][1] + turned - self._turns[-1][3] if self._turns else None

    def __len__(self) -> int:
        return len(self._frames)

    def as_keys(self) -> tuple[Key, ...]:
        """Return the keys; on the straight lines between them, boxes hold every place that was added."""
        self._fix()
        first, last = self._frames[0], self._frames[-1]
        turns = _turns_between(self._turns, self._spins)
        frames = sorted({*self._frames, *(turn[0] for turn in turns if first < turn[0] < last)})
        grown = np.array(self._boxes) + np.array(self._grown) * OUTWARD
        boxes = _interpolate(frames, self._frames, grown)
        angles = _interpolate(frames, [turn[0] for turn in turns], np.array([turn[1:] for turn in turns]))
        keys = list[Key]()
        for frame, box, turn in zip(frames, boxes, angles, strict=True):  # whole pixels that hold the box
            left, top = (math.floor(value + 1e-6) for value in box[:2])
            right, bottom = (math.ceil(value - 1e-6) for value in box[2:])
            roll, yaw = (0, None) if turn is None else (round((turn[0] + 180) % 360 - 180), round(turn[1]))
            keys.append(Key(frame, left, top, max(1, right - left), max(1, bottom - top), roll, yaw))
        return tuple(keys)

    def _fix(self) -> None:
        """Turn the rows into keys, of which the last one is where the next rows go on."""
        rows = np.array(self._rows)
        if len(rows) < 2 and self._frames:
            return
        spins = np.array(self._spins)
        near = np.full((len(spins), 1), SPIN_DEGREES)
        self._spins = [self._spins[n] for n in simplify(spins[:, 0], spins[:, 1:], near)]
        frames, boxes = rows[:, 0], rows[:, 1:]
        size = np.tile(boxes[:, 2:] - boxes[:, :2], 2)
        chosen = simplify(frames, boxes, TOLERANCE * size)
        grown = np.zeros((len(chosen), 4))
        for n, (i, j) in enumerate(pairwise(chosen)):
            line = _line(frames[i : j + 1], boxes[i : j + 1])
            beyond = ((boxes[i : j + 1] - line) * OUTWARD).max(axis=0, initial=0.0)
            grown[n : n + 2] = np.maximum(grown[n : n + 2], beyond)
        if self._frames:
            self._grown[-1] = np.maximum(self._grown[-1], grown[0])
            chosen, grown = chosen[1:], grown[1:]
        self._frames += [int(frames[i]) for i in chosen]
        self._boxes += [boxes[i] for i in chosen]
        self._grown += list(grown)
        self._rows = self._rows[-1:]


def simplify(
    frames: Float[np.ndarray, " n"], values: Float[np.ndarray, "n d"], near: Float[np.ndarray, "n d"]
) -> list[int]:
    """Return rows, with the first and the last, between which straight lines are as `near` to all others.

    Source: Douglas and Peucker 1973.

    >>> bend = np.array([[0.0], [1.0], [2.0], [1.0], [0.0]])
    >>> simplify(np.arange(5.0), bend, np.full((5, 1), 0.5))
    [0, 2, 4]
    """
    chosen, open_ = {0, len(frames) - 1}, [(0, len(frames) - 1)]
    while open_:
        i, j = open_.pop()
        if j - i < 2:
            continue
        part = slice(i, j + 1)
        off = (np.abs(values[part] - _line(frames[part], values[part])) / near[part]).max(axis=1)
        worst = int(off.argmax())
        if off[worst] > 1:
            chosen.add(i + worst)
            open_ += [(i, i + worst), (i + worst, j)]
    return sorted(chosen)


def _line(frames: Float[np.ndarray, " n"], values: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    share = (frames - frames[0])[:, None] / max(frames[-1] - frames[0], 1)
    return np.asarray(values[0] + share * (values[-1] - values[0]))


def _interpolate(
    frames: Sequence[int], known: Sequence[int], values: Float[np.ndarray, "k d"]
) -> Float[np.ndarray, "n d"] | list[None]:
    """Return values on straight lines in `frames`, the outermost ones before and after; None without any."""
    if not len(known):
        return [None] * len(frames)
    return np.stack([np.interp(frames, known, column) for column in values.T], axis=1)


def _turns_between(turns: list[Turn], spins: list[tuple[int, float]]) -> list[tuple[int, float, float]]:
    """Return frames with roll and yaw, which straight lines between others do not tell."""
    if not turns:
        return []
    # Between two, the roll changes as the head was turned, and what that missed is spread evenly.
    known, rolls, yaws, turned = np.array(turns).T
    seen, spun = np.array(spins).T
    frames = np.union1d(known, seen)
    rolled = np.interp(frames, seen, spun) + np.interp(frames, known, rolls - turned)
    rows = np.stack([rolled, np.interp(frames, known, yaws)], axis=1)
    chosen = simplify(frames, rows, np.broadcast_to(NEAR_DEGREES, rows.shape))
    return [(int(frames[n]), float(rows[n, 0]), float(rows[n, 1])) for n in chosen]


Edges = Float[np.ndarray, " 4"]
"""Left, top, right and bottom, in pixels of the frame."""
LEAVING: Final = 0.5  # seconds of straight motion within which an object that is not found left the picture
AHEAD: Final = 0.4  # seconds for which the motion of an object that is not followed is taken to go on
TURN_WAITS: Final = (Fraction(2, 5), Fraction(2))
"""Shortest and longest time in seconds between two searches for landmarks in one track."""
TURN_LASTS: Final = Fraction(3)
"""Seconds for which a head is taken to be turned as its points are, after landmarks were found."""
COVERED: Final = 3
"""Searches in a row with another track in the place of one, from which both may be the same object."""
RECENT: Final = 0.5  # share of the newest motion in that of a trace


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


class ClosedTrack(NamedTuple):
    """The track of an object that is no longer followed, not numbered yet.

    `begun` is the frame in which it was first found, and `sure` the last one in which it was followed.
    """

    track: Track
    begun: int
    sure: int


@dataclass(eq=False)
class LiveTrack:
    """An object that is followed; `place` is its newest place, and `found` that of its last detection."""

    kind: str
    finder: str
    place: Place
    found: Place
    begun: int
    score: float | None = None
    motion: Float[np.ndarray, " 2"] = field(default_factory=lambda: np.zeros(2))
    """Pixels per second."""
    turn_due: Fraction = Fraction(0)
    turn_wait: Fraction = TURN_WAITS[0]
    """When its turn is looked for again, and how long after the last time that is."""
    doubles: list[LiveTrack] = field(default_factory=list)
    """Tracks that were first found in its place since its last detection: it may be the same object."""
    covered: int = 0
    """In how many searches in a row one of these was found in its place."""
    covered_at: Fraction = Fraction(-1)
    merges: Fraction | None = None
    """When the last of them was, and when they came to be `COVERED`."""
    passes: bool = False
    """Whether its motion took it behind another track since its last detection."""
    carried: bool = False
    free: int = 0
    """Whether flow took it to another track since then, and the last search before that."""
    seen: GreyFrame | None = None
    """The frame of its last detection."""
    turn_asked: float = 0.0
    turn_known: Fraction | None = None
    """How far it was turned when its turn was looked for last, and when it was last found."""
    path: Path = field(default_factory=Path)
    loose: list[Place] = field(default_factory=list)
    """Places since the last detection, which the next one corrects."""

    @classmethod
    def begin(
        cls, kind: str, finder: str, place: Place, before: list[Place], score: float | None
    ) -> LiveTrack:
        """Return a trace found in `place`, which was followed backwards through places `before`, in order."""
        trace = cls(kind, finder, place, place, place.frame, score)
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
        for place, corrected in zip(self.loose, self._correct(box, before), strict=True):
            self.path.add(place.frame, corrected, place.turned)
        self.uncover()
        self.doubles, self.passes, self.carried, self.free = [], False, False, here.frame
        self._move(self.found, here)
        self.loose, self.place, self.found = [], here, here
        self.score = score if self.score is None else max(self.score, score or 0.0)

    def rejoin(self, box: Edges, score: float | None, before: Sequence[Place]) -> None:
        """Take a detection beyond another track, to which flow had taken it: since then, it went straight."""
        free = min(self.free, self.place.frame - 1)
        self.loose = [replace(place, sure=place.sure and place.frame <= free) for place in self.loose]
        self.find(box, score)
        self.path.widen({place.frame: (place.box, place.sure) for place in before if place.frame > free})

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
    def is_merged(self) -> bool:
        """Whether flow lost the object where another track was, so that it cannot come out any more."""
        return self.merges is not None and not self.place.sure and self.last_sure.seconds >= self.merges

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
        return self.place.seconds >= self.turn_due or abs(self.place.turned - self.turn_asked) > NEWS_DEGREES

    def _correct(self, box: Edges, before: Sequence[Place]) -> list[Edges]:
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
        seconds = float(stop.seconds - start.seconds)
        if seconds > 0:
            moved = (stop.box[:2] + stop.box[2:] - start.box[:2] - start.box[2:]) / (2 * seconds)
            known = RECENT if self.motion.any() else 1.0
            self.motion = known * moved + (1 - known) * self.motion

    @property
    def last_sure(self) -> Place:
        return next((place for place in reversed(self.loose) if place.sure), self.found)

    @property
    def box(self) -> Edges:
        return self.place.box

    @property
    def seconds_lost(self) -> float:
        return float(self.place.seconds - self.last_sure.seconds)

    @property
    def ahead(self) -> Edges:
        """Where the object is if its motion went on after it was not followed any more."""
        return self.place.box + np.tile(self.motion * min(self.seconds_lost, AHEAD), 2)

    @property
    def onward(self) -> Edges:
        """Where the object is if its motion went on since it was last found."""
        return self.found.box + np.tile(self.motion * float(self.place.seconds - self.found.seconds), 2)

    def has_left(self, width: int, height: int) -> bool:
        """Whether the object is out of the picture, or what is seen of it will be within `LEAVING`."""
        box = self.last_sure.box
        seen = clip_boxes(box, width, height)
        centre = (seen[:2] + seen[2:]) / 2 + self.motion * LEAVING
        return is_outside(box, width, height) or not ((centre >= 0) & (centre <= (width, height))).all()

    def seconds_to_leave(self, width: int, height: int) -> float:
        """Return after how much straight motion it is out of the picture, since it was last followed."""
        (left, top, right, bottom), (across, down) = self.last_sure.box, self.motion
        ways = (right, -across), (width - left, across), (bottom, -down), (height - top, down)
        return min((max(0.0, far) / speed for far, speed in ways if speed > 0), default=math.inf)

    def is_gone(self, width: int, height: int) -> bool:
        """Whether it is not followed any more, and out of the picture by now if its motion went on."""
        return not self.place.sure and self.seconds_lost > self.seconds_to_leave(width, height)

    def close(self, end: str, margin: Fraction, leaving: float = 0.0) -> ClosedTrack:
        """Return the track; what was followed no more is held for a `margin` in seconds, and for `leaving`.

        It is held to the last frame where the shot or the clip ends. One that never came out of the place of
        another track ends where that began to be so.
        """
        sure = self.last_sure
        until = None if end in ("cut", "end") else sure.seconds + margin + Fraction(leaving)
        if self.merges is not None:
            end, until = MERGED, self.merges
        for place in self.loose:
            if until is None or place.seconds <= until:
                self.path.add(place.frame, place.box, place.turned)
        score, keys = None if self.score is None else round(self.score, 4), self.path.as_keys()
        track = Track(number=0, kind=self.kind, finder=self.finder, keys=keys, end=end, score=score)
        return ClosedTrack(track, self.begun, sure.frame)


def is_outside(box: Edges, width: int, height: int) -> bool:
    """Whether a box has no pixel in a picture of this size."""
    return bool((box[:2] >= (width, height)).any() or (box[2:] <= 0).any())
