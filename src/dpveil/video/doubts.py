"""What the owner of a clip has to look at before it is released: tracks that were lost, and slips in a plan.

All of it is said and nothing is refused, as a plan is its owner's. No certificate has any of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from typing import Final, NamedTuple

import numpy as np

from dpveil.core.envelope import Note
from dpveil.core.origin import WHOLE
from dpveil.release.words import UNSURE
from dpveil.video.asked import FIXED, SPLIT
from dpveil.video.facts import LOST, MERGED, Facts, Key, Track, clock

MOST: Final = 4
"""Most places that one sentence names."""
FAST: Final = 4.0
"""Times its own size that something moves or grows in a second, and back again, at most."""
FASTEST: Final = 12.0
"""The same in one direction: people run past. Between two keys, anything may move by its size."""
TOGETHER: Final = 1.0
"""Seconds for which two tracks of one person may be seen at the same time, as each is held for a while."""
GIVEN_UP: Final = "lost: look at {}"
SAME: Final = "taken as one with another track, so that anybody else who was there shows: look at {}"
LOW: Final = "unsure, with a score below {}: look at {}"
OUTSIDE: Final = "outside of the picture, where nothing is replaced: {}"
LEAPS: Final = "leaps between two keys of a track, as by a slip in the plan: {}"
CUT: Final = "tracks go on over a cut: {}"
BOTH: Final = "linked as one person, and seen at the same time: {}"
GONE: Final = "found by the analysis, and not in the plan any more, so that they stay as they are: tracks {}"
STILL: Final = "the release is one picture, shown for {} s"
MOVES: Final = STILL + ": {{over_time}} draws every frame, for its share of the budget"


@dataclass(frozen=True)
class Doubts:
    """What is doubtful about the tracks of a clip, of which analysis had `found` so many, if that is known.

    `over_time` is that of the plan, and `splits` says that its method could draw every frame instead.
    """

    tracks: tuple[Track, ...]
    cuts: tuple[int, ...]
    facts: Facts
    over_time: str
    splits: bool
    found: int | None = None

    def sentences(self) -> tuple[str, ...]:
        """Return one sentence for each kind of doubt that there is, the gravest first."""
        kinds: tuple[tuple[str, Callable[[], Iterator[str]]], ...] = (
            (GONE, self._gone),
            (OUTSIDE, self._outside),
            (LEAPS, self._leaps),
            (GIVEN_UP, self._lost),
            (SAME, self._merged),
            (BOTH, self._both),
            (CUT, self._over_cuts),
            (LOW.replace("{}", f"{UNSURE}", 1), self._low),
        )
        listed = [(text, [*places()]) for text, places in kinds]
        return (*(text.format(_few(places)) for text, places in listed if places), *self._still())

    @cached_property
    def _seconds(self) -> list[float]:
        unit, start = self.facts.time_base, self.facts.start
        return [float((time - start) * unit) for time in self.facts.times]

    @property
    def _replaced(self) -> list[Track]:
        return [track for track in self.tracks if not track.visible]

    def _time(self, frame: int) -> str:
        return clock(self._seconds[frame])

    def _place(self, track: Track, key: Key) -> str:
        return f"track {track.number} at {self._time(key.frame)} (frame {key.frame})"

    def _gone(self) -> Iterator[str]:
        there = {track.number for track in self.tracks}
        yield from (str(number) for number in range(1, 1 + (self.found or 0)) if number not in there)

    def _beyond(self, key: Key) -> bool:
        across, down = key.x + key.w <= 0, key.y + key.h <= 0
        return across or down or key.x >= self.facts.width or key.y >= self.facts.height

    def _outside(self) -> Iterator[str]:
        for track in self._replaced:
            for key in filter(self._beyond, track.keys):
                yield f"{self._place(track, key)}, with x = {key.x}, y = {key.y}"

    def _leaps(self) -> Iterator[str]:
        for track in self._replaced:
            legs = [self._leg(*pair) for pair in pairwise(track.keys)]
            for at, (key, leg) in enumerate(zip(track.keys[1:], legs, strict=True)):
                beside = [*legs[max(0, at - 1) : at], *legs[at + 1 : at + 2]]
                back = any(other.speed > FAST and leg.way @ other.way < 0 for other in beside)
                if leg.speed > (FAST if back else FASTEST):
                    yield f"{self._place(track, key)}, by {leg.pixels} pixels"

    def _leg(self, before: Key, after: Key) -> _Leg:
        """Return the way between two keys; without speed if it may be one, or leaves the picture."""
        seconds = self._seconds[after.frame] - self._seconds[before.frame]
        moved = np.array(_edges(after)) - _edges(before)
        pixels, size = int(np.abs(moved).max()), min(max(each.w, each.h) for each in (before, after))
        near = pixels <= size or self._beyond(before) or self._beyond(after)
        return _Leg(moved, pixels, 0.0 if near else pixels / size / seconds)

    def _lost(self) -> Iterator[str]:
        lost = [(followed(track)[1], track) for track in self._replaced if track.end == LOST]
        for last, track in sorted(lost, key=lambda each: each[0]):
            yield f"{self._time(last)} (track {track.number}{', held' if last < track.last else ''})"

    def _merged(self) -> Iterator[str]:
        merged = [track for track in self._replaced if track.end == MERGED]
        for track in sorted(merged, key=lambda each: each.last):
            yield f"{self._time(track.last)} (track {track.number})"

    def _both(self) -> Iterator[str]:
        for one, other in combinations(self._replaced, 2):
            if one.person is None or one.person != other.person:
                continue
            (begun, ends), (start, stop) = followed(one), followed(other)
            first, last = max(begun, start), min(ends, stop)
            if first < last and self._seconds[last] - self._seconds[first] > TOGETHER:
                yield f"tracks {one.number} and {other.number} from {self._time(first)} on"

    def _over_cuts(self) -> Iterator[str]:
        for track in self._replaced:
            for cut in self.cuts:
                if track.kind not in FIXED and track.first < cut <= track.last:
                    yield f"track {track.number} at {self._time(cut)} (frame {cut})"

    def _low(self) -> Iterator[str]:
        for track in self._replaced:
            if track.score is not None and track.score < UNSURE:
                yield f"{self._time(followed(track)[0])} (track {track.number}, {track.score:.2f})"

    def _still(self) -> tuple[str, ...]:
        """Return that all pictures of a release are one, if they are."""
        everything = [t for t in self._replaced if t.kind == WHOLE and (t.first, t.last) == self._ends]
        if not everything or self.over_time == SPLIT or self.facts.frames == 1:
            return ()
        shown = f"{float(self.facts.seconds):.3g}"
        return (Note(MOVES.format(shown), over_time=SPLIT) if self.splits else STILL.format(shown),)

    @property
    def _ends(self) -> tuple[int, int]:
        return 0, self.facts.frames - 1


class _Leg(NamedTuple):
    """How the edges of a box move between two keys, by how many `pixels` at most, and its sizes a second."""

    way: np.ndarray
    pixels: int
    speed: float


def followed(track: Track) -> tuple[int, int]:
    """Return the first and the last frame in which a track is followed, as far as its keys tell.

    Before and after that its place is held: the same at the first two keys, or the last two of a lost one.

    >>> keys = Key(0, 5, 5, 9, 9), Key(8, 5, 5, 9, 9), Key(20, 7, 5, 9, 9), Key(60, 7, 5, 9, 9)
    >>> followed(Track(number=1, kind="face", finder="faces", keys=keys, end="lost"))
    (8, 20)
    """
    keys = track.keys
    first, last = track.first, track.last
    if track.kind in FIXED or len(keys) == 1:
        return first, last
    if track.end == LOST and _edges(keys[-2]) == _edges(keys[-1]):
        last = keys[-2].frame
    if len(keys) > 2 and _edges(keys[0]) == _edges(keys[1]):
        first = keys[1].frame
    return min(first, last), last


def _edges(key: Key) -> tuple[int, int, int, int]:
    return key.x, key.y, key.x + key.w, key.y + key.h


def _few(places: Sequence[str]) -> str:
    more = f" and {len(places) - MOST:,} more" if len(places) > MOST else ""
    return ", ".join(places[:MOST]) + more
