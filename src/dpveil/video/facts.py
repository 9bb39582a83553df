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
from typing import Annotated, Final, Self

import numpy as np

from dpveil.core.array_types import UInt8
from dpveil.core.rationals import Json
from dpveil.core.region_origin import BOX, FACE, KIND, OBJECT, WHOLE, Origin
from dpveil.core.strict_json import (
    Check,
    Hash,
    at_most,
    between,
    fault,
    matching,
    of_type,
    one_of,
    read_object,
)
from dpveil.errors import InvalidParameter, RegionError
from dpveil.io.reading import MAX_PIXELS

FIXED: Final = (WHOLE, BOX, OBJECT)  # kinds of regions whose place a user gives, and no pixel
BY_HAND: Final = {"text": "text by hand", **{k: f"{k}s by hand" for k in ("face", "plate", "code", "eye")}}
"""The finder of a track that a user added, by its kind."""
OTHERS: Final = "detected by hand"  # that of other kinds, which methods that draw faces cover
MOST_TRACKS: Final = 10_000
MOST_KEYS: Final = 200_000
MOST_FRAMES: Final = 10_000_000
MOST_TICKS: Final = 1 << 62  # times are below this, in units of the clip's time base
FARTHEST: Final = 1 << 20  # boxes of keys are within so many pixels of the corner of the picture
MOST_LETTERS: Final = 10_000  # longest text of a plan, in characters
LONGEST_NAME: Final = 255
APART: Final = "/\\\0" if os.name == "posix" else "/\\:\0"  # characters that no name without folders has
Text = Annotated[str, at_most(MOST_LETTERS), Check(str.isprintable, "is no printable text")]
Count = Annotated[int, between(1, MOST_FRAMES)]  # numbers of tracks, persons and frames
LOST: Final = "lost"
MERGED: Final = "merged"
ENDS: Final = ("left", "cut", "end", MERGED, LOST)
"""How a track ends: its object left the picture, the shot ended, the clip ended, another track goes on in its
place, or nothing of that."""
End = Annotated[str, one_of(*ENDS)]
Noun = Annotated[str, matching(KIND, "kind of region, such as face, text or box")]


@dataclass(frozen=True, kw_only=True)
class Facts:
    """A clip: `width` and `height` in pixels of its upright frames, and the exact time of every frame.

    `sha256` is that of the file's bytes, private as the clip. `time_base` is the unit of times in seconds.
    `start` is the time of the first frame in that unit, and `steps` are pairs (difference, count): the next
    `count` frames come so much later than the one before. `audio` says whether there is sound. `dropped`
    names in words what a release leaves out of the file, such as "2 subtitle streams".
    """

    sha256: Hash
    format: Text
    codec: Text
    width: Annotated[int, between(1, MAX_PIXELS)]
    height: Annotated[int, between(1, MAX_PIXELS)]
    time_base: Annotated[Fraction, Check(lambda unit: unit > 0, "is not above 0, such as 1/90000")]
    start: Annotated[int, between(-MOST_TICKS, MOST_TICKS)]
    steps: tuple[tuple[Annotated[int, between(1, MOST_TICKS)], Count], ...]
    audio: bool
    dropped: tuple[Text, ...] = ()

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


@dataclass(frozen=True)
class Key:
    """Where an object is in one frame: a box in whole pixels, which may reach beyond the picture.

    Of a face, the box goes from the forehead to the chin. `roll` is in whole degrees, clockwise, and `yaw`
    too, positive towards the right of the picture; None if it is not known.
    """

    frame: Annotated[int, between(0, MOST_FRAMES)]
    x: Annotated[int, between(-FARTHEST, FARTHEST)]
    y: Annotated[int, between(-FARTHEST, FARTHEST)]
    w: Annotated[int, between(1, FARTHEST)]
    h: Annotated[int, between(1, FARTHEST)]
    roll: Annotated[int, between(-180, 180)] = 0
    yaw: Annotated[int, between(-90, 90)] | None = None


@dataclass(frozen=True, kw_only=True)
class Track:
    """One object from its first key to its last: on straight lines between `keys`, in order of frames.

    `number` counts from 1. `kind` and `finder` are as in `core.Origin`. Tracks with the same `person` are one
    person's, as a user says; None is a person of their own. One that is `visible` stays as it is, as a user
    says. `end` is one of `ENDS`.
    """

    number: Count
    kind: Noun
    finder: Text
    keys: Annotated[tuple[Key, ...], Check(bool, "are missing: give at least one place")]
    end: End
    score: Annotated[float, between(0, 1)] | None = None
    person: Count | None = None
    visible: bool = False

    @classmethod
    def from_json(cls, data: object, where: str) -> Self:
        """Return the track of a plan; who adds one by hand may leave out what a finder says."""
        given = of_type(dict, data, where)
        kind = str(given.get("kind"))
        finder = kind if kind in FIXED else BY_HAND.get(kind, OTHERS)
        return read_object(cls, {"finder": finder, "end": "left", **given}, where)

    @property
    def first(self) -> int:
        return self.keys[0].frame

    @property
    def last(self) -> int:
        return self.keys[-1].frame


@dataclass(frozen=True)
class TrackRecord:
    """A track as certificates state it: when it is seen, and not where."""

    number: Count
    kind: Noun
    person: Count | None
    first: Annotated[int, between(0, MOST_FRAMES)]
    last: Annotated[int, between(0, MOST_FRAMES)]
    end: End
    visible: bool

    @classmethod
    def of(cls, track: Track) -> TrackRecord:
        names = ("number", "kind", "person", "first", "last", "end", "visible")
        return cls(*(getattr(track, name) for name in names))

    def to_json(self) -> dict[str, Json]:
        return dict(vars(self))


def check_name(value: object) -> str:
    """Return the name of a clip without folders, which is looked up beside its plan; raises otherwise."""
    hint = "write the name of the clip without its folder, such as clip.mp4"
    if not isinstance(value, str) or not value.strip(". "):
        raise fault("clip", value, "is no name of a file", hint)
    if any(mark in value for mark in APART) or not value.isprintable() or len(value) > LONGEST_NAME:
        raise fault("clip", value, "is no name of a file in the folder of the plan", hint)
    return value


def check_size(facts: Facts, cuts: Sequence[int]) -> None:
    """Raise `InvalidParameter` for sizes that no clip has, and unless cuts are first frames of shots."""
    if facts.width * facts.height > MAX_PIXELS or facts.frames > MOST_FRAMES:
        raise InvalidParameter("clip", None, "is larger than any that is read")
    if any(before >= cut for before, cut in pairwise([0, *cuts, facts.frames])) and cuts:
        raise InvalidParameter("cuts", None, f"are not in order, from 1 to {facts.frames - 1:,}")


def check_tracks(tracks: Sequence[Track], frames: int) -> None:
    """Raise `InvalidParameter` for tracks that cannot be, `RegionError` if none of them is replaced."""
    numbers: set[int] = set()
    kinds: dict[int, Track] = {}
    for at, track in enumerate(tracks):
        where = f"tracks[{at}]"
        places = [-1, *(key.frame for key in track.keys), frames]
        if any(before >= after for before, after in pairwise(places)):
            raise InvalidParameter(f"{where}.keys", None, f"are not in order of frames below {frames:,}")
        if track.kind == FACE and Origin(FACE, track.finder).faceless:
            hint = "write faces by hand, or the kind of what is covered there"
            raise fault(f"{where}.finder", track.finder, "finds no faces, and this is one", hint)
        if track.number in numbers:
            raise fault(f"{where}.number", track.number, "is given to two tracks", "give each its own")
        numbers.add(track.number)
        if track.person is not None:
            other = kinds.setdefault(track.person, track)
            if other.kind != track.kind:
                problem = f"is of track {other.number}, a {other.kind}, and of track {track.number}, which is"
                hint = "link one kind"
                raise fault(f"{where}.person", track.person, f"{problem} a {track.kind}", hint)
    if len(tracks) > MOST_TRACKS or sum(len(track.keys) for track in tracks) > MOST_KEYS:
        raise InvalidParameter("tracks", len(tracks), f"are too many, or have more than {MOST_KEYS:,} keys")
    if all(track.visible for track in tracks):
        problem = "no track is replaced" if tracks else "there is no track"
        hint = "let one be replaced" if tracks else "add one, or analyze the clip again"
        raise RegionError(f"{problem}, so that the clip would be copied", hint=hint)
