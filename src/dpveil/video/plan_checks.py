"""What has to hold of the data of a plan, whoever wrote it; every failure names its field and value."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

from dpveil.core.origin import FACE, KIND, Origin
from dpveil.errors import InvalidParameter, RegionError
from dpveil.io import MAX_PIXELS
from dpveil.io.names import escape_text
from dpveil.video.choices import REFUSE
from dpveil.video.facts import ENDS, Facts, Track

MOST_TRACKS: Final = 10_000
MOST_KEYS: Final = 200_000
MOST_FRAMES: Final = 10_000_000
MOST_STEPS: Final = 1_000_000
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
    if isinstance(value, bool) or not isinstance(value, int):
        raise field_error(name, value, "is not a whole number", f"write one from {least:,} to {most:,}")
    if not least <= value <= most:
        shown = value if abs(value) < 10**18 else None
        raise field_error(name, shown, "is out of range", f"write a whole number from {least:,} to {most:,}")
    return value


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
    check_whole_number(facts.height, "height", 1, MAX_PIXELS)
    if facts.width * facts.height > MAX_PIXELS:
        raise field_error("height", facts.height, f"makes frames of more than {MAX_PIXELS:,} pixels")
    unit = facts.time_base
    if not 0 < unit.numerator < 1 << 31 or unit.denominator >= 1 << 31:
        raise field_error(
            "time_base", str(unit), "is out of range", "it is a unit in seconds, such as 1/90000"
        )
    check_whole_number(facts.start, "start", -MOST_TICKS, MOST_TICKS)
    if len(facts.steps) > MOST_STEPS:
        raise field_error("steps", len(facts.steps), "are too many", f"at most {MOST_STEPS:,}")
    for at, (step, count) in enumerate(facts.steps):
        check_whole_number(step, f"steps[{at}]", 1, MOST_TICKS)
        check_whole_number(count, f"steps[{at}]", 1, MOST_FRAMES)
    check_whole_number(facts.frames, "frames", 1, MOST_FRAMES)
    check_whole_number(sum(step * count for step, count in facts.steps), "duration", 0, MOST_TICKS)


def check_cuts(cuts: Sequence[int], frames: int) -> None:
    """Raise `InvalidParameter` unless cuts are first frames of shots, in order."""
    before = 0
    for at, cut in enumerate(cuts):
        check_whole_number(cut, f"cuts[{at}]", before + 1, frames - 1)
        before = cut


def check_tracks(tracks: Sequence[Track], frames: int) -> None:
    """Raise `InvalidParameter` for tracks that cannot be, `RegionError` if none of them is replaced."""
    if len(tracks) > MOST_TRACKS:
        raise field_error("tracks", len(tracks), "are too many", f"at most {MOST_TRACKS:,}")
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
                raise field_error(
                    f"{where}.person", track.person, f"{problem} a {track.kind}", "link one kind"
                )
    if sum(len(track.keys) for track in tracks) > MOST_KEYS:
        raise field_error(
            "tracks", None, f"have more than {MOST_KEYS:,} keys", "remove some, or cut the clip"
        )
    if all(track.visible for track in tracks):
        problem = "no track is replaced" if tracks else "there is no track"
        hint = "let one not be visible" if tracks else "add one, or analyze the clip again"
        raise RegionError(f"{problem}, so that the clip would be copied", hint=hint)


def check_lost(on_lost: str, lost: Sequence[int]) -> None:
    """Raise `InvalidParameter` if lost tracks were refused, and these, by number, are lost and replaced."""
    if on_lost == REFUSE and lost:
        problem = f"is not so, as track {lost[0]} is lost"
        raise field_error("on_lost", on_lost, problem, "analyze again, or write hold")


def _check_track(track: Track, frames: int, where: str) -> None:
    check_whole_number(track.number, f"{where}.number", 1, MOST_FRAMES)
    if track.person is not None:
        check_whole_number(track.person, f"{where}.person", 1, MOST_FRAMES)
    if not KIND.fullmatch(check_text(track.kind, f"{where}.kind")):
        raise field_error(f"{where}.kind", track.kind, "is no kind of region", "such as face, text or box")
    check_text(track.finder, f"{where}.finder")
    if track.kind == FACE and Origin(FACE, track.finder).faceless:
        hint = "write faces by hand, or the kind of what is covered there"
        raise field_error(f"{where}.finder", track.finder, "finds no faces, and this is one", hint)
    if track.end not in ENDS:
        raise field_error(f"{where}.end", track.end, "is unknown", f"one of {', '.join(ENDS)}")
    score: Any = track.score
    if score is not None and (isinstance(score, bool) or not isinstance(score, int | float)):
        raise field_error(f"{where}.score", score, "is not a number")
    if score is not None and not 0 <= score <= 1:
        raise field_error(f"{where}.score", None, "is not from 0 to 1")
    if not isinstance(track.visible, bool):
        raise field_error(f"{where}.visible", track.visible, "is neither true nor false")
    if not track.keys:
        raise field_error(f"{where}.keys", None, "are missing", "give at least one place")
    before = -1
    for index, key in enumerate(track.keys):
        name = f"{where}.keys[{index}]"
        check_whole_number(key.frame, f"{name}.frame", 0, frames - 1)
        if key.frame <= before:
            raise field_error(
                f"{name}.frame", key.frame, "does not come after the key before it", "sort them"
            )
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
