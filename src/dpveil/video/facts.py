"""What is known about a clip before any frame of it is replaced: its times and tracks, as data.

Last, what has to hold of such data in a plan, whoever wrote it: every failure names its field and value.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Final

import numpy as np

from dpveil.core.arrays import UInt8
from dpveil.core.numbers import Json
from dpveil.core.origin import BOX, FACE, KIND, OBJECT, WHOLE, Origin
from dpveil.errors import InvalidParameter, RegionError
from dpveil.io import MAX_PIXELS
from dpveil.io.names import escape_text

FIXED: Final = (WHOLE, BOX, OBJECT)  # kinds of regions whose place a user gives, and no pixel


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


MOST_TRACKS: Final = 10_000
MOST_KEYS: Final = 200_000
MOST_FRAMES: Final = 10_000_000
MOST_TICKS: Final = 1 << 62  # times are below this, in units of the clip's time base
FARTHEST: Final = 1 << 20  # boxes of keys are within so many pixels of the corner of the picture
MOST_LETTERS: Final = 10_000  # longest text of a plan, in characters
LONGEST_NAME: Final = 255
APART: Final = "/\\\0" if os.name == "posix" else "/\\:\0"  # characters that no name without folders has
SHOWN: Final = 60  # most characters of a value that an error repeats


def field_error(name: str, value: object, problem: str, hint: str = "") -> InvalidParameter:
    """Return the error about a field, with its value made short and printable."""
    if isinstance(value, str):
        text = escape_text(value)
        value = text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
    elif value is not None and not isinstance(value, bool | int | float):
        value = None
    return InvalidParameter(name, value, problem, hint=hint)


def check_whole_number(value: object, name: str, least: int, most: int) -> int:
    """Return a whole number between two others, inclusive; raises `InvalidParameter`."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or not least <= value <= most:  # type: ignore[operator]
        shown = value if not whole or abs(value) < 10**18 else None  # type: ignore[arg-type]
        raise field_error(name, shown, "is out of range", f"write a whole number from {least:,} to {most:,}")
    return value  # type: ignore[return-value]


def check_name(value: object) -> str:
    """Return the name of a clip without folders, which is looked up beside its plan; raises otherwise."""
    hint = "write the name of the clip without its folder, such as clip.mp4"
    if not isinstance(value, str) or not value.strip(". "):
        raise field_error("clip", value, "is no name of a file", hint)
    if any(mark in value for mark in APART) or not value.isprintable() or len(value) > LONGEST_NAME:
        raise field_error("clip", value, "is no name of a file in the folder of the plan", hint)
    return value


def check_facts(facts: Facts) -> None:
    """Raise `InvalidParameter` for facts that no clip has."""
    check_whole_number(facts.width, "width", 1, MAX_PIXELS)
    check_whole_number(facts.height, "height", 1, MAX_PIXELS // facts.width)
    if facts.time_base <= 0:
        unit = "it is a unit in seconds, such as 1/90000"
        raise field_error("time_base", str(facts.time_base), "is out of range", unit)
    check_whole_number(facts.start, "start", -MOST_TICKS, MOST_TICKS)
    for at, (step, count) in enumerate(facts.steps):
        check_whole_number(step, f"steps[{at}]", 1, MOST_TICKS)
        check_whole_number(count, f"steps[{at}]", 1, MOST_FRAMES)
    check_whole_number(facts.frames, "frames", 1, MOST_FRAMES)


def check_cuts(cuts: Sequence[int], frames: int) -> None:
    """Raise `InvalidParameter` unless cuts are first frames of shots, in order."""
    for at, (before, cut) in enumerate(pairwise([0, *cuts])):
        check_whole_number(cut, f"cuts[{at}]", before + 1, frames - 1)


def check_tracks(tracks: Sequence[Track], frames: int) -> None:
    """Raise `InvalidParameter` for tracks that cannot be, `RegionError` if none of them is replaced."""
    check_whole_number(len(tracks), "tracks", 0, MOST_TRACKS)
    numbers: set[int] = set()
    kinds: dict[int, Track] = {}
    for at, track in enumerate(tracks):
        where = f"tracks[{at}]"
        _check_track(track, frames, where)
        if track.number in numbers:
            raise field_error(f"{where}.number", track.number, "is given to two tracks", "give each its own")
        numbers.add(track.number)
        if track.person is not None:
            other = kinds.setdefault(track.person, track)
            if other.kind != track.kind:
                problem = f"is of track {other.number}, a {other.kind}, and of track {track.number}, which is"
                hint = "link one kind"
                raise field_error(f"{where}.person", track.person, f"{problem} a {track.kind}", hint)
    check_whole_number(sum(len(track.keys) for track in tracks), "keys", 0, MOST_KEYS)
    if all(track.visible for track in tracks):
        problem = "no track is replaced" if tracks else "there is no track"
        hint = "let one not be visible" if tracks else "add one, or analyze the clip again"
        raise RegionError(f"{problem}, so that the clip would be copied", hint=hint)


def _check_track(track: Track, frames: int, where: str) -> None:
    check_whole_number(track.number, f"{where}.number", 1, MOST_FRAMES)
    if track.person is not None:
        check_whole_number(track.person, f"{where}.person", 1, MOST_FRAMES)
    if not KIND.fullmatch(check_text(track.kind, f"{where}.kind")):
        raise field_error(f"{where}.kind", track.kind, "is no kind of region", "such as face, text or box")
    if track.kind == FACE and Origin(FACE, check_text(track.finder, f"{where}.finder")).faceless:
        hint = "write faces by hand, or the kind of what is covered there"
        raise field_error(f"{where}.finder", track.finder, "finds no faces, and this is one", hint)
    if track.end not in ENDS:
        raise field_error(f"{where}.end", track.end, "is unknown", f"one of {', '.join(ENDS)}")
    if track.score is not None and not 0 <= track.score <= 1:
        raise field_error(f"{where}.score", None, "is not from 0 to 1")
    if not track.keys:
        raise field_error(f"{where}.keys", None, "are missing", "give at least one place")
    before = -1
    for index, key in enumerate(track.keys):
        name = f"{where}.keys[{index}]"
        check_whole_number(key.frame, f"{name}.frame", before + 1, frames - 1)
        before = key.frame
        for field, least in (("x", -FARTHEST), ("y", -FARTHEST), ("w", 1), ("h", 1)):
            check_whole_number(getattr(key, field), f"{name}.{field}", least, FARTHEST)
        check_whole_number(key.roll, f"{name}.roll", -180, 180)
        if key.yaw is not None:
            check_whole_number(key.yaw, f"{name}.yaw", -90, 90)


def check_text(value: object, name: str) -> str:
    """Return a printable text that is not too long; raises `InvalidParameter`."""
    if not isinstance(value, str) or len(value) > MOST_LETTERS or not value.isprintable():
        raise field_error(name, value, "is no printable text")
    return value
