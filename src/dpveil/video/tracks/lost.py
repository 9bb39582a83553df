"""What becomes of tracks whose objects were lost: held, the whole frame replaced, or the clip refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from types import MappingProxyType
from typing import Final

import numpy as np

from dpveil.core.origin import WHOLE
from dpveil.errors import RegionError
from dpveil.video.facts import Facts
from dpveil.video.track import Key
from dpveil.video.tracks.association import overlap
from dpveil.video.tracks.trace import Closed

FOUND_AGAIN: Final = 0.3
"""Intersection over union of where a track ended and where another one of its kind was found after that."""
REFUSED: Final = "let {on_lost} be hold or whole, keep the track as it is, or cut the clip"

Shots = Sequence[tuple[int, int]]
"""First and last frame of every shot."""


def shots_of(cuts: Sequence[int], first: int, last: int) -> Shots:
    """Return the first and last frame of every shot.

    >>> shots_of([4, 9], 0, 12)
    [(0, 3), (4, 8), (9, 12)]
    """
    return [(start, stop - 1) for start, stop in pairwise([first, *cuts, last + 1])]


def hold(closed: Sequence[Closed], shots: Shots, facts: Facts) -> list[Closed]:
    """Return the tracks, of which lost ones stay to the end of their shot, or until found again."""
    return [
        one if until is None else replace(one, keys=(*one.keys, replace(one.keys[-1], frame=until)))
        for one, until in ((one, _until(one, closed, shots)) for one in closed)
    ]


def whole(closed: Sequence[Closed], shots: Shots, facts: Facts) -> list[Closed]:
    """Return the tracks, and one of the whole frame for all frames in which something is lost."""
    spans = sorted(
        (one.sure + 1, until) for one in closed if (until := _until(one, closed, shots)) is not None
    )
    joined: list[list[int]] = []
    for start, stop in spans:
        if joined and start <= joined[-1][1] + 1:
            joined[-1][1] = max(joined[-1][1], stop)
        else:
            joined.append([start, stop])
    return [*closed, *(_whole(start, stop, shots, facts) for start, stop in joined)]


def refuse(closed: Sequence[Closed], shots: Shots, facts: Facts) -> list[Closed]:
    """Return the tracks if none is lost; else raise `RegionError`, which names the first one."""
    for number, one in enumerate(closed, start=1):
        if _until(one, closed, shots) is not None:
            seconds = _seconds(one.sure, facts)
            raise RegionError(
                f"{one.kind} track {number} is lost after frame {one.sure} ({float(seconds):.2f} s)",
                hint=REFUSED,
                arguments={"on_lost": "on_lost"},
            )
    return list(closed)


ANSWERS: Final[Mapping[str, Callable[[Sequence[Closed], Shots, Facts], list[Closed]]]] = MappingProxyType(
    {"hold": hold, "whole": whole, "refuse": refuse}
)
"""What is done for each of `settings.ON_LOST`."""


def _until(one: Closed, closed: Sequence[Closed], shots: Shots) -> int | None:
    """Return the last frame in which a lost track has to be protected; None if it is not lost.

    That is the end of its shot, or the frame in which another track is first found where it ended.
    """
    if one.end != "lost" or one.taken:
        return None
    last = next(stop for start, stop in shots if start <= one.sure <= stop)
    place = _edges(one.keys[-1])
    for other in closed:
        if other.kind == one.kind and one.sure < other.begun < last:
            there = _edges(_at(other.keys, other.begun))
            if overlap(place[None], there[None])[0, 0] >= FOUND_AGAIN:
                last = other.begun
    return last if last > one.keys[-1].frame else None


def _edges(key: Key) -> np.ndarray:
    return np.array([key.x, key.y, key.x + key.w, key.y + key.h], np.float64)


def _at(keys: Sequence[Key], frame: int) -> Key:
    """Return the key at a frame, or the last one before it."""
    return next(key for key in reversed(keys) if key.frame <= frame)


def _whole(start: int, stop: int, shots: Shots, facts: Facts) -> Closed:
    """Return a track of the whole frame."""
    keys = [Key(frame, 0, 0, facts.width, facts.height) for frame in sorted({start, stop})]
    cut = any(first == stop + 1 for first, _ in shots)
    end = "cut" if cut else "end" if stop == shots[-1][1] else "left"
    return Closed(
        kind=WHOLE,
        finder=WHOLE,
        keys=tuple(keys),
        end=end,
        score=None,
        begun=start,
        sure=stop,
        taken=False,
    )


def _seconds(frame: int, facts: Facts) -> Fraction:
    """Return the time of a frame since the first one."""
    left, time = frame, Fraction(0)
    for step, count in facts.steps:
        time += step * min(left, count)
        left -= min(left, count)
    return time * facts.time_base
