"""What is known about a clip before any frame of it is replaced: its times and tracks, as data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from dpveil.core.arrays import UInt8
from dpveil.core.numbers import Json
from dpveil.core.origin import BOX, OBJECT, WHOLE

FIXED: Final = (WHOLE, BOX, OBJECT)
"""Kinds of regions whose place a user gives, and no pixel."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """A clip: `width` and `height` in pixels of its upright frames, and the exact time of every frame.

    `sha256` is that of the file's bytes, private as the clip. `time_base` is the unit of times in seconds.
    `start` is the time of the first frame in that unit, and `steps` are pairs (difference, count): the next
    `count` frames come so much later than the one before. `audio` says whether there is sound. `dropped`
    names in words what a release leaves out of the file, such as "2 subtitle streams".
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
