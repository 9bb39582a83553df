"""Every sentence about a released clip, made of its certificate's data by the version that shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from dpveil.core.guarantee import count_noun
from dpveil.core.region_origin import CODE, EYE, FACE, PLATE, TEXT
from dpveil.release.words import UNSURE, request_kind
from dpveil.video.facts import FIXED, LOST, MERGED, Facts, Track, clock

if TYPE_CHECKING:
    from dpveil.video.quote import ClipQuote


MOST_NAMED: Final = 4  # most places that one sentence names
GIVEN_UP: Final = "lost: look at {}"
AS_MANY: Final = "taken as one with another track, so that anybody else who was there shows: look at {}"
LOW: Final = "unsure, with a score below {}: look at {}"
STAYS: Final = "who stays begins or is lost at {}: another track may be the same person, replaced there"
STILL: Final = "the release is one picture, shown for {} s"


def doubts(tracks: Sequence[Track], facts: Facts) -> tuple[str, ...]:
    """Return where a plan's owner has to look before a release: one sentence for each kind of doubt."""
    times = [clock(float((time - facts.start) * facts.time_base)) for time in facts.times]
    lost, merged, low, stays = (list[tuple[int, str]]() for _ in range(4))
    for track in tracks:
        first, last = followed_span(track)
        if track.visible:
            ends = [first] * (first > 0) + [last] * (track.end == LOST)
            stays += [(end, f"{times[end]} (track {track.number})") for end in ends]
            continue
        if track.end == LOST:
            lost.append((last, f"{times[last]} (track {track.number}{', held' * (last < track.last)})"))
        if track.end == MERGED:
            merged.append((track.last, f"{times[track.last]} (track {track.number})"))
        if track.score is not None and track.score < UNSURE:
            low.append((first, f"{times[first]} (track {track.number}, {track.score:.2f})"))
    kinds = ((GIVEN_UP, lost), (AS_MANY, merged), (LOW.replace("{}", f"{UNSURE}", 1), low), (STAYS, stays))
    said = list[str]()
    for text, found in kinds:
        if places := [place for _, place in sorted(found)]:
            more = f" and {len(places) - MOST_NAMED:,} more" if len(places) > MOST_NAMED else ""
            said.append(text.format(", ".join(places[:MOST_NAMED]) + more))
    return tuple(said)


def followed_span(track: Track) -> tuple[int, int]:
    """Return the first and the last frame in which a track is followed, as far as its keys tell.

    Before and after that its place is held: the same at the first two keys, or the last two of a lost one.

    >>> from dpveil.video.facts import Key
    >>> keys = Key(0, 5, 5, 9, 9), Key(8, 5, 5, 9, 9), Key(20, 7, 5, 9, 9), Key(60, 7, 5, 9, 9)
    >>> followed_span(Track(number=1, kind="face", finder="faces", keys=keys, end="lost"))
    (8, 20)
    """
    first, last = track.first, track.last
    if track.kind in FIXED or len(track.keys) == 1:
        return first, last
    places = [(key.x, key.y, key.w, key.h) for key in track.keys]
    if track.end == LOST and places[-2] == places[-1]:
        last = track.keys[-2].frame
    if len(places) > 2 and places[0] == places[1]:
        first = track.keys[1].frame
    return min(first, last), last


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
    "traces of what is replaced that a lossy video format left in pixels around a region and in other frames"
)
SOUND: Final = "the sound, with every voice in it"
VOICES: Final = (
    "VOICES ARE IN THE CLEAR: the sound is kept as it is, with any bytes in it that are not heard, and"
    " a voice may identify a person"
)
VISIBLE: Final = "{} as it is in every frame, as the user chose"
LINKED: Final = "that tracks {} show one person, as the user says: nothing checks it"
ACCOUNTANT: Final = "basic composition in exact rationals"
INPUT: Final = "drawn once from a key frame that follows from the places alone, and shown in every frame"
UNLINKED: Final = (
    "tracks are not linked: each of them is drawn and costs for itself, also where a person returns; link the"
    " tracks of one person to draw that person once"
)


def covers(name: str, kind: str, frames: int, size: tuple[int, int] | None) -> str:
    """Return the sentence of `Scope.covers` for one person; `size` is that of its raster.

    >>> covers("track 3", "face", 250, None).partition(", ")[0]
    'track 3: face in 250 frames'
    """
    read = "its canonical crop" if size is None else f"{size[0]}×{size[1]} pixels, 3 channels"
    return f"{name}: {kind} in {count_noun(frames, 'frame')}, {read}, {INPUT}"


def of_clip(text: str) -> str:
    """Return a sentence about a photo as one about a clip.

    >>> of_clip("it depends a little on the photo")
    'it depends a little on the clip'
    """
    return text.replace("photo", "clip")


NONE_FOUND: Final = "{}: what was missed, or taken out of the plan, may stay visible"
FOLLOWS: Final = f", {SAME}"


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
    unfound = [kind for kind in dict.fromkeys(map(request_kind, quote.request)) if kind in looked - found]
    counts = [(kind, sum(track.kind == kind for track in replaced)) for kind in kinds]
    numbers = ", ".join(count_noun(count, f"{kind} track") for kind, count in counts)
    listed = ", ".join(str(track.number) for track in kept)
    told = {
        "replaced": f"{numbers}, by {quote.method.name}: {count_noun(len(quote.persons), 'draw')}",
        "kept": f"track{'s' * (len(kept) > 1)} {listed}, as the user chose" if kept else "no track",
        "no track of": NONE_FOUND.format(", ".join(unfound)) if unfound else "",
        "lost": "; ".join(lost) or "no track",
        "sound": "kept, with every voice" if quote.audio else "none",
        "not hidden": clear(quote.in_the_clear),
    }
    return tuple(f"{name}: {text}" for name, text in told.items() if text)
