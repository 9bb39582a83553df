"""What is said of a clip beside the sentences of its certificate: a line for each question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from dpveil.core.guarantee import counted
from dpveil.core.numbers import to_json
from dpveil.core.origin import FACE, PLATE, TEXT
from dpveil.release.origins import kind_of
from dpveil.video import words
from dpveil.video.asked import FIXED, SPLIT
from dpveil.video.track import LOST

if TYPE_CHECKING:
    from dpveil.video.quote import ClipQuote, TrackRecord

EVENT: Final = "any event of at most {seconds} s, {times}: {promise}, if it changes at most {frames}"
NO_EVENT: Final = "nothing is promised of events: {}"
MISSED: Final = "{}: what was missed, or taken out of the plan, may stay visible"
FOLLOWS: Final = f", {words.SAME}"


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
    return EVENT.format(seconds=to_json(asked.seconds), times=often, promise=promise, frames=frames)


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
        "no track of": MISSED.format(", ".join(unfound)) if unfound else "",
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
