"""Every sentence about a released clip, made of its certificate's data by the version that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from dpveil.core.envelope import Note
from dpveil.core.guarantee import Guarantee, count_noun
from dpveil.core.numbers import to_json
from dpveil.core.origin import CODE, EYE, FACE, PLATE, TEXT, WHOLE
from dpveil.release.origins import kind_of
from dpveil.release.words import UNSURE
from dpveil.video.choices import FIXED, SPLIT
from dpveil.video.facts import LOST, MERGED, Facts, Key, Track, clock

if TYPE_CHECKING:
    from dpveil.video.facts import TrackRecord
    from dpveil.video.quote import ClipQuote


MOST: Final = 4
"""Most places that one sentence names."""
FAST: Final = 4.0
"""Times its own size that something moves or grows in a second, and back again, at most."""
FASTEST: Final = 12.0
"""The same in one direction: people run past. Between two keys, anything may move by its size."""
TOGETHER: Final = 1.0
"""Seconds for which two tracks of one person may be seen at the same time, as each is held for a while."""
GIVEN_UP: Final = "lost: look at {}"
AS_MANY: Final = "taken as one with another track, so that anybody else who was there shows: look at {}"
LOW: Final = "unsure, with a score below {}: look at {}"
BEYOND: Final = "outside of the picture, where nothing is replaced: {}"
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
            (GONE, self._missing_numbers),
            (BEYOND, self._outside_lines),
            (LEAPS, self._leaps),
            (GIVEN_UP, self._lost),
            (AS_MANY, self._merged_lines),
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
    def _replaced_tracks(self) -> list[Track]:
        return [track for track in self.tracks if not track.visible]

    def _time(self, frame: int) -> str:
        return clock(self._seconds[frame])

    def _place(self, track: Track, key: Key) -> str:
        return f"track {track.number} at {self._time(key.frame)} (frame {key.frame})"

    def _missing_numbers(self) -> Iterator[str]:
        there = {track.number for track in self.tracks}
        yield from (str(number) for number in range(1, 1 + (self.found or 0)) if number not in there)

    def _beyond(self, key: Key) -> bool:
        across, down = key.x + key.w <= 0, key.y + key.h <= 0
        return across or down or key.x >= self.facts.width or key.y >= self.facts.height

    def _outside_lines(self) -> Iterator[str]:
        for track in self._replaced_tracks:
            for key in filter(self._beyond, track.keys):
                yield f"{self._place(track, key)}, with x = {key.x}, y = {key.y}"

    def _leaps(self) -> Iterator[str]:
        for track in self._replaced_tracks:
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
        lost = [(followed_span(track)[1], track) for track in self._replaced_tracks if track.end == LOST]
        for last, track in sorted(lost, key=lambda each: each[0]):
            yield f"{self._time(last)} (track {track.number}{', held' if last < track.last else ''})"

    def _merged_lines(self) -> Iterator[str]:
        merged = [track for track in self._replaced_tracks if track.end == MERGED]
        for track in sorted(merged, key=lambda each: each.last):
            yield f"{self._time(track.last)} (track {track.number})"

    def _both(self) -> Iterator[str]:
        for one, other in combinations(self._replaced_tracks, 2):
            if one.person is None or one.person != other.person:
                continue
            (begun, ends), (start, stop) = followed_span(one), followed_span(other)
            first, last = max(begun, start), min(ends, stop)
            if first < last and self._seconds[last] - self._seconds[first] > TOGETHER:
                yield f"tracks {one.number} and {other.number} from {self._time(first)} on"

    def _over_cuts(self) -> Iterator[str]:
        for track in self._replaced_tracks:
            for cut in self.cuts:
                if track.kind not in FIXED and track.first < cut <= track.last:
                    yield f"track {track.number} at {self._time(cut)} (frame {cut})"

    def _low(self) -> Iterator[str]:
        for track in self._replaced_tracks:
            if track.score is not None and track.score < UNSURE:
                yield f"{self._time(followed_span(track)[0])} (track {track.number}, {track.score:.2f})"

    def _still(self) -> tuple[str, ...]:
        """Return that all pictures of a release are one, if they are."""
        everything = [t for t in self._replaced_tracks if t.kind == WHOLE and (t.first, t.last) == self._ends]
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


def followed_span(track: Track) -> tuple[int, int]:
    """Return the first and the last frame in which a track is followed, as far as its keys tell.

    Before and after that its place is held: the same at the first two keys, or the last two of a lost one.

    >>> keys = Key(0, 5, 5, 9, 9), Key(8, 5, 5, 9, 9), Key(20, 7, 5, 9, 9), Key(60, 7, 5, 9, 9)
    >>> followed_span(Track(number=1, kind="face", finder="faces", keys=keys, end="lost"))
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


SAME: Final = "which follow from the clip's pixels: the guarantee compares clips in which the same is found"
SIZE: Final = "the clip's size in pixels, its number of frames and the time of each"
PLACES: Final = f"where each region is in every frame, rounded to a public grid, {SAME}"
COUNT: Final = (
    f"how many tracks there are, of what, in which order, when each of them begins and ends, and why, {SAME}"
)
MOTION: Final = (
    "motion: how heads and whatever else is replaced move over time, and with it gait and gestures, which may"
    " identify people"
)
TURNS: Final = f"how each head is tilted and turned in every frame, rounded to a public grid, {SAME}"
MISSED: Final = (
    "everything outside of the regions, and so every face and whatever else was asked for in all frames in"
    " which it was missed"
)
GIVEN: Final = (
    "position and size of the regions in every frame, and when each begins and ends, as the user gave them;"
    " where they follow somebody, that motion"
)
NOT_ROUNDED: Final = "position and size of the regions that the user gave, in every frame and not rounded"
OUTSIDE: Final = "everything outside of the regions"
NOTHING: Final = (
    "that nothing was found, or that the user chose to replace the whole picture in every frame: the"
    " guarantee compares clips of which the same is so"
)
TRACES: Final = (
    "traces of what is replaced that a lossy video format, or making the fields of interlaced video whole,"
    " left in pixels around a region and in other frames"
)
SOUND: Final = "the sound, with every voice in it"
VOICES: Final = (
    "VOICES ARE IN THE CLEAR: the sound is kept as it is, with any bytes in it that are not heard, and"
    " a voice may identify a person"
)
VISIBLE: Final = "{} as it is in every frame, as the user chose"
LINKED: Final = "that {} show one person, as the user says: nothing checks it"
ACCOUNTANT: Final = "basic composition in exact rationals"
INPUT: Final = {
    "once": "drawn once from a key frame that follows from the places alone, and shown in every frame",
    "mean": "drawn once from the mean of all frames, and shown in every frame",
    "split": "drawn anew in every frame, for an equal share of the budget",
}
"""What is drawn, by how the budget lasts."""
ONE_TRACK: Final = (
    "what one track shows in its region: for clips that differ in nothing that another person's draw reads"
)
ONE_PERSON: Final = (
    "what the linked tracks of one person show in their regions: for clips that differ in nothing that"
    " another person's draw reads; tracks of one person that are not linked cost their sum, which is never"
    " more than the total"
)
EVENT: Final = (
    "what an event of at most {seconds} s changes within the regions, whether anything was detected there or"
    " not, if it happens {times} and changes at most {frames} of the clip's decoded frames; a lossy original,"
    " or one that blends or repeats frames, may carry it into more of them, up to all, and then the total"
    " holds"
)
UNLINKED: Final = (
    "tracks are not linked: each of them is drawn and costs for itself, also where a person returns; link the"
    " tracks of one person to draw that person once"
)
NOT_ASKED: Final = "it was not asked for"
BY_PIXELS: Final = "the regions follow from what was found in the clip"
FEW: Final = "the method's promise is about few pixels alone, or in another way not about all of them"
NOT_NAMED: Final = "a region is none that the request names"
NOT_ALWAYS: Final = "a region does not last from the first frame to the last, or stays visible"


def covers(name: str, kind: str, frames: int, size: tuple[int, int] | None, over_time: str) -> str:
    """Return the sentence of `Scope.covers` for one person; `size` is that of its raster.

    >>> covers("track 3", "face", 250, None, "once").partition(", ")[0]
    'track 3: face in 250 frames'
    """
    most = "up to " if over_time == "split" else ""
    read = "its canonical crop" if size is None else f"{most}{size[0]}×{size[1]} pixels, 3 channels"
    return f"{name}: {kind} in {count_noun(frames, 'frame')}, {read}, {INPUT[over_time]}"


def of_clip(text: str) -> str:
    """Return a sentence about a photo as one about a clip.

    >>> of_clip("it depends a little on the photo")
    'it depends a little on the clip'
    """
    return text.replace("photo", "clip")


def visible(numbers: Iterable[int]) -> tuple[str, ...]:
    """Return a sentence for every track that stays as it is."""
    return tuple(VISIBLE.format(f"track {number}") for number in numbers)


def link_sentences(groups: Iterable[Iterable[int]]) -> tuple[str, ...]:
    """Return a sentence for all tracks of each person that were linked.

    >>> link_sentences([[1, 4]])
    ('that tracks 1 and 4 show one person, as the user says: nothing checks it',)
    """
    return tuple(LINKED.format(f"tracks {' and '.join(map(str, numbers))}") for numbers in groups)


def without_sharing(guarantee: Guarantee, draws: int) -> str:
    """Return what a clip would cost if each person were drawn anew in each frame at the price of one draw.

    >>> from dpveil.mechanisms.pixel import DPPix
    >>> minute = DPPix(epsilon=1500).guarantee(height=8, width=8, channels=3)
    >>> without_sharing(minute, 1500)
    'drawn anew in every frame at the full price, which is 1,500 draws, this clip would be 1500-DP, any-image'
    """
    told = f"which is {count_noun(draws, 'draw')}"
    return f"drawn anew in every frame at the full price, {told}, this clip would be {guarantee}"


PROMISED: Final = "any event of at most {seconds} s, {times}: {promise}, if it changes at most {frames}"
NO_EVENT: Final = "nothing is promised of events: {}"
NONE_FOUND: Final = "{}: what was missed, or taken out of the plan, may stay visible"
FOLLOWS: Final = f", {SAME}"


def draws(quote: ClipQuote) -> int:
    """Return how often something is drawn: once for each person, or in each of their frames."""
    return quote.draw_count


def event(quote: ClipQuote) -> str:
    """Return what is promised of the event that was asked for, or why nothing is; empty if none was."""
    asked, promise = quote.event, quote.about_event
    if asked is None:
        return ""
    if promise is None:
        return NO_EVENT.format(quote.no_event)
    often = {1: "once", 2: "twice"}.get(asked.times, f"up to {asked.times:,} times")
    frames = count_noun(asked.changed_frames(quote.frames), "decoded frame")
    return PROMISED.format(seconds=to_json(asked.seconds), times=often, promise=promise, frames=frames)


def clear(shown: Sequence[str]) -> str:
    """Return in one line what is not hidden, as a certificate lists it."""
    return "; ".join(dict.fromkeys(text.removesuffix(FOLLOWS) for text in shown))


def lines(quote: ClipQuote) -> tuple[str, ...]:
    """Return what a certificate says of a clip, for people: a line for each question."""
    replaced = [track for group in quote.persons for track in group]
    kept = [track for track in quote.tracks if track.visible]
    lost = [f"track {track.number}, held to frame {track.last}" for track in replaced if track.end == LOST]
    kinds = dict.fromkeys(track.kind for track in replaced)
    found = {track.kind for track in quote.tracks}
    searched = found - {*FIXED}  # or a whole clip is replaced, or given boxes
    looked = {FACE, TEXT, PLATE, CODE, EYE} if searched else set()
    unfound = [kind for kind in dict.fromkeys(map(kind_of, quote.request)) if kind in looked - found]
    numbers = ", ".join(_of_kind(replaced, kind) for kind in kinds)
    told = {
        "replaced": f"{numbers}, by {quote.method.name}:"
        f" {count_noun(draws(quote), 'draw')} ({quote.over_time})",
        "kept": _numbers(kept) or "no track",
        "no track of": NONE_FOUND.format(", ".join(unfound)) if unfound else "",
        "lost": "; ".join(lost) or "no track",
        "sound": "kept, with every voice" if quote.audio else "none",
        "events": event(quote),
        "not hidden": clear(quote.in_the_clear),
    }
    return tuple(f"{name}: {text}" for name, text in told.items() if text)


def _of_kind(tracks: Sequence[TrackRecord], kind: str) -> str:
    return count_noun(sum(track.kind == kind for track in tracks), f"{kind} track")


def _numbers(tracks: Sequence[TrackRecord]) -> str:
    listed = ", ".join(str(track.number) for track in tracks)
    return f"track{'s' * (len(tracks) > 1)} {listed}, as the user chose" if tracks else ""
