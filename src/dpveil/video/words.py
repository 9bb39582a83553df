"""Every sentence about a released clip, made of its certificate's data by the version that shows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from dpveil.core.guarantee import Guarantee, counted
from dpveil.core.numbers import to_json
from dpveil.core.origin import FACE, PLATE, TEXT
from dpveil.release.origins import kind_of
from dpveil.video.asked import FIXED, SPLIT
from dpveil.video.facts import LOST

if TYPE_CHECKING:
    from dpveil.video.facts import TrackRecord
    from dpveil.video.quote import ClipQuote

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
    return f"{name}: {kind} in {counted(frames, 'frame')}, {read}, {INPUT[over_time]}"


def of_clip(text: str) -> str:
    """Return a sentence about a photo as one about a clip.

    >>> of_clip("it depends a little on the photo")
    'it depends a little on the clip'
    """
    return text.replace("photo", "clip")


def visible(numbers: Iterable[int]) -> tuple[str, ...]:
    """Return a sentence for every track that stays as it is."""
    return tuple(VISIBLE.format(f"track {number}") for number in numbers)


def linked(groups: Iterable[Iterable[int]]) -> tuple[str, ...]:
    """Return a sentence for all tracks of each person that were linked.

    >>> linked([[1, 4]])
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
    told = f"which is {counted(draws, 'draw')}"
    return f"drawn anew in every frame at the full price, {told}, this clip would be {guarantee}"


PROMISED: Final = "any event of at most {seconds} s, {times}: {promise}, if it changes at most {frames}"
NO_EVENT: Final = "nothing is promised of events: {}"
NONE_FOUND: Final = "{}: what was missed, or taken out of the plan, may stay visible"
FOLLOWS: Final = f", {SAME}"


def draws(quote: ClipQuote) -> int:
    """Return how often something is drawn: once for each person, or in each of their frames."""
    from dpveil.video.budget import length

    return sum(length(group) if quote.over_time == SPLIT else 1 for group in quote.persons)


def event(quote: ClipQuote) -> str:
    """Return what is promised of the event that was asked for, or why nothing is; empty if none was."""
    asked, promise = quote.event, quote.about_event
    if asked is None:
        return ""
    if promise is None:
        return NO_EVENT.format(quote.no_event)
    often = {1: "once", 2: "twice"}.get(asked.times, f"up to {asked.times:,} times")
    frames = counted(asked.changed(quote.frames), "decoded frame")
    return PROMISED.format(seconds=to_json(asked.seconds), times=often, promise=promise, frames=frames)


def clear(shown: Sequence[str]) -> str:
    """Return in one line what stays in the clear, as a certificate lists it."""
    return "; ".join(dict.fromkeys(text.removesuffix(FOLLOWS) for text in shown))


def lines(quote: ClipQuote) -> tuple[str, ...]:
    """Return what a certificate says of a clip, for people: a line for each question."""
    replaced = [track for group in quote.persons for track in group]
    kept = [track for track in quote.tracks if track.visible]
    lost = [f"track {track.number}, held to frame {track.last}" for track in replaced if track.end == LOST]
    kinds = dict.fromkeys(track.kind for track in replaced)
    found = {track.kind for track in quote.tracks}
    looked = {FACE, TEXT, PLATE} if found - {*FIXED} else set()  # else a whole clip is replaced, or boxes
    unfound = [kind for kind in dict.fromkeys(map(kind_of, quote.request)) if kind in looked - found]
    numbers = ", ".join(_of_kind(replaced, kind) for kind in kinds)
    told = {
        "replaced": f"{numbers}, by {quote.method.name}: {counted(draws(quote), 'draw')} ({quote.over_time})",
        "kept": _numbers(kept) or "no track",
        "no track of": NONE_FOUND.format(", ".join(unfound)) if unfound else "",
        "lost": "; ".join(lost) or "no track",
        "sound": "kept, with every voice" if quote.audio else "none",
        "events": event(quote),
        "in the clear": clear(quote.in_the_clear),
    }
    return tuple(f"{name}: {text}" for name, text in told.items() if text)


def _of_kind(tracks: Sequence[TrackRecord], kind: str) -> str:
    return counted(sum(track.kind == kind for track in tracks), f"{kind} track")


def _numbers(tracks: Sequence[TrackRecord]) -> str:
    listed = ", ".join(str(track.number) for track in tracks)
    return f"track{'s' * (len(tracks) > 1)} {listed}, as the user chose" if tracks else ""
