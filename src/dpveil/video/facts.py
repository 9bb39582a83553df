"""What is known about a clip before any frame of it is replaced: its times, tracks and events, as data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from dpveil.core.arrays import UInt8
from dpveil.core.numbers import Json, exact, to_json
from dpveil.core.parameters import check_count
from dpveil.errors import InvalidParameter


@dataclass(frozen=True, kw_only=True)
class Facts:
    """A clip: `width` and `height` in pixels of its upright frames, and the exact time of every frame.

    `sha256` is that of the file's bytes, private as the clip. `time_base` is the unit of times in seconds.
    `start` is the time of the first frame in that unit, and `steps` are pairs (difference, count): the next
    `count` frames come so much later than the one before. `audio` says whether there is sound. `dropped`
    names in words what a release leaves out of the file, such as "2 subtitle streams". `fields` says that
    frames consist of two fields each (interlaced), which are made whole from the frames beside them.
    """

    sha256: str
    format: str
    codec: str
    width: int
    height: int
    time_base: Fraction
    start: int
    steps: tuple[tuple[int, int], ...]
    audio: bool
    dropped: tuple[str, ...] = ()
    fields: bool = False

    @property
    def frames(self) -> int:
        """The number of frames; at least one.

        >>> one = dict(sha256="", format="mp4", codec="h264", width=8, height=8, audio=False)
        >>> Facts(**one, time_base=Fraction(1, 90), start=0, steps=((3, 2), (6, 1))).frames
        4
        """
        return 1 + sum(count for _, count in self.steps)

    @property
    def times(self) -> Iterator[int]:
        """The time of every frame, in units of `time_base`."""
        time = self.start
        yield time
        for step, count in self.steps:
            for _ in range(count):
                time += step
                yield time

    @property
    def seconds(self) -> Fraction:
        """From the first frame to the last, in seconds."""
        return sum((step * count for step, count in self.steps), 0) * self.time_base


@dataclass(frozen=True, eq=False)
class Frame:
    """One decoded frame: its number from 0, its time in the clip's unit, and upright sRGB levels."""

    index: int
    time: int
    image: UInt8[np.ndarray, "h w 3"]


def runs(times: Iterable[int]) -> tuple[int, tuple[tuple[int, int], ...]]:
    """Return the first of `times`, and their differences as pairs (difference, count).

    >>> runs([5, 8, 11, 12])
    (5, ((3, 2), (1, 1)))
    """
    rest = iter(times)
    start = last = next(rest)
    steps: list[tuple[int, int]] = []
    for time in rest:
        step = time - last
        if steps and steps[-1][0] == step:
            steps[-1] = (step, steps[-1][1] + 1)
        else:
            steps.append((step, 1))
        last = time
    return start, tuple(steps)


def durations(facts: Facts) -> Sequence[tuple[int, int]]:
    """Return for how long frames are shown, as runs (duration, count), in units of `facts.time_base`.

    The last frame, of which nothing is known, is shown as long as the one before, but a second at most;
    a single one for 1/25 s.
    """
    second = max(1, round(1 / facts.time_base))
    last = min(facts.steps[-1][0], second) if facts.steps else max(1, second // 25)
    return (*facts.steps, (last, 1))


def clock(seconds: float) -> str:
    """Return a time of a clip as minutes and seconds, rounded down to hundredths.

    >>> clock(61.259), clock(3601)
    ('1:01.25', '1:00:01.00')
    """
    hundredths = math.floor(round(seconds * 100, 3))
    minutes, rest = divmod(hundredths, 6000)
    hours, minutes = divmod(minutes, 60)
    start = f"{hours}:{minutes:02d}" if hours else f"{minutes}"
    return f"{start}:{rest // 100:02d}.{rest % 100:02d}"


LOST: Final = "lost"
MERGED: Final = "merged"
ENDS: Final = ("left", "cut", "end", MERGED, LOST)
"""How a track ends: its object left the picture, the shot ended, the clip ended, another track goes on in its
place, or nothing of that."""


@dataclass(frozen=True)
class Key:
    """Where an object is in one frame: a box in whole pixels, which may reach beyond the picture.

    Of a face, the box goes from the forehead to the chin. `roll` is in whole degrees, clockwise, and `yaw`
    too, positive towards the right of the picture; None if it is not known.
    """

    frame: int
    x: int
    y: int
    w: int
    h: int
    roll: int = 0
    yaw: int | None = None


@dataclass(frozen=True, kw_only=True)
class Track:
    """One object from its first key to its last: on straight lines between `keys`, in order of frames.

    `number` counts from 1. `kind` and `finder` are as in `core.Origin`. Tracks with the same `person` are one
    person's, as a user says; None is a person of their own. One that is `visible` stays as it is, as a user
    says. `end` is one of `ENDS`.
    """

    number: int
    kind: str
    finder: str
    keys: tuple[Key, ...]
    end: str
    score: float | None = None
    person: int | None = None
    visible: bool = False

    @property
    def first(self) -> int:
        """The first frame with the object."""
        return self.keys[0].frame

    @property
    def last(self) -> int:
        """The last frame with the object."""
        return self.keys[-1].frame


@dataclass(frozen=True)
class TrackRecord:
    """A track as certificates state it: when it is seen, and not where."""

    number: int
    kind: str
    person: int | None
    first: int
    last: int
    end: str
    visible: bool

    @classmethod
    def of(cls, track: Track) -> TrackRecord:
        """Return the record of a track."""
        names = ("number", "kind", "person", "first", "last", "end", "visible")
        return cls(*(getattr(track, name) for name in names))

    def to_json(self) -> dict[str, Json]:
        """Return the JSON object of a certificate."""
        return dict(vars(self))


AROUND: Final = 2
"""Frames that an event may change beside those within its time: the one before it and the one after."""
FIELDS: Final = 2
"""Frames more where fields are made whole, each from the frame before it and the one after as well."""
LONGEST: Final = Fraction(10**6)
"""The longest event, in seconds."""


@dataclass(frozen=True)
class Event:
    """Anything that happens at most `times` times in a clip, for at most so many `seconds` each time.

    `frames` is the largest number of frames that one of these times can change: `most_frames`.
    """

    seconds: Fraction
    times: int
    frames: int

    @classmethod
    def of(cls, seconds: object, times: object, facts: Facts) -> Event:
        """Return the event in a clip; raises `InvalidParameter` for lengths and counts out of range."""
        length = exact(seconds, "event_seconds")
        if not 0 < length <= LONGEST:
            hint = f"write seconds above 0 and up to {int(LONGEST):,}, such as 2.5"
            raise InvalidParameter("event_seconds", str(seconds), "is out of range", hint=hint)
        count = check_count(times, "event_times")
        return cls(length, count, most_frames(facts, length))

    def to_json(self) -> dict[str, Json]:
        """Return the JSON object of a certificate."""
        return {"seconds": to_json(self.seconds), "times": self.times, "frames": self.frames}

    def changed_frames(self, frames: int) -> int:
        """Return how many of so many frames the event can change, all of its times together."""
        return min(frames, self.times * self.frames)


def most_frames(facts: Facts, seconds: Fraction) -> int:
    """Return the largest number of frames of a clip that something of so many seconds can change.

    The light of a frame is gathered around its time: later than the time of the frame before it, and before
    that of the next one, whatever the camera. So something within [s, s + ρ] is in no frame but those with a
    time in there, the last one before, and the first one after. That is exact arithmetic over all s: it is
    enough to begin at the time of a frame, as moving s up to the next such time loses no frame within. Frames
    made of fields read those beside them (`FIELDS`). What a codec, or whoever edited the clip, carried from
    frame to frame is not known here.

    >>> one = dict(sha256="", format="mp4", codec="h264", width=8, height=8, audio=False)
    >>> clip = Facts(**one, time_base=Fraction(1, 25), start=0, steps=((1, 1499),))
    >>> most_frames(clip, Fraction(1)), most_frames(clip, Fraction(1, 100)), most_frames(clip, Fraction(60))
    (28, 3, 1500)
    """
    span = math.floor(seconds / facts.time_base)
    behind, inside, most = facts.times, 0, 0
    first = next(behind)
    for time in facts.times:
        inside += 1
        while time - first > span:
            first = next(behind)
            inside -= 1
        most = max(most, inside)
    return min(facts.frames, most + AROUND + FIELDS * facts.fields)
