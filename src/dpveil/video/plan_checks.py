"""What has to hold of the data of a plan, whoever wrote it; every failure names its field and value."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from dpveil.core.origin import FACE, KIND, Origin
from dpveil.errors import InvalidParameter, RegionError
from dpveil.io import MAX_PIXELS
from dpveil.io.names import escape_text
from dpveil.video.facts import ENDS, Facts, Track

MOST_TRACKS: Final = 10_000
MOST_KEYS: Final = 200_000
MOST_FRAMES: Final = 10_000_000
MOST_TICKS: Final = 1 << 62
"""Times are below this, in units of the clip's time base."""
FARTHEST: Final = 1 << 20
"""Boxes of keys are within so many pixels of the corner of the picture."""
MOST_LETTERS: Final = 10_000
"""Longest text of a plan, in characters."""
LONGEST_NAME: Final = 255
APART: Final = "/\\\0" if os.name == "posix" else "/\\:\0"
"""Characters that no name without folders has."""
SHOWN: Final = 60
"""Most characters of a value that an error repeats."""


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
