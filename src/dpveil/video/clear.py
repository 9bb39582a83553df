"""What of a clip stays in the clear, whatever the method: computed from what a certificate states."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpveil.core.origin import BOX, OBJECT, WHOLE
from dpveil.errors import InvalidParameter
from dpveil.regions.boxes import asked_box
from dpveil.video import words
from dpveil.video.asked import FIXED

if TYPE_CHECKING:
    from dpveil.video.quote import ClipQuote


def is_given(request: str) -> bool:
    """Whether a requested region is the whole picture or a user's box, which no pixel changes."""
    try:
        return request == WHOLE or asked_box(request) is not None
    except InvalidParameter:
        return False


def clip_shows(quote: ClipQuote) -> tuple[str, ...]:
    """Return what a release shows of the original, besides what its method and its draws show."""
    found = any(track.kind not in FIXED for track in quote.tracks)
    searched = found or not all(map(is_given, quote.request))
    replaced = [track for group in quote.persons for track in group]
    throughout = [t.kind == WHOLE and (t.first, t.last) == (0, quote.frames - 1) for t in replaced]
    always = any(throughout)
    if all(throughout) and len(replaced) == len(quote.tracks):
        beside: tuple[str, ...] = (words.NOTHING,) * searched
    elif searched:
        own = any(track.kind in (BOX, OBJECT) for track in replaced)
        places = (*(words.PLACES,) * found, *(words.NOT_ROUNDED,) * own)
        beside = (*places, words.COUNT, words.MOTION, words.MISSED)
    else:
        beside = (words.GIVEN, *(words.OUTSIDE,) * (not always))
    traces = () if always and not found else (words.TRACES,)
    seen = words.visible(track.number for track in quote.tracks if track.visible)
    linked = words.linked([t.number for t in group] for group in quote.persons if len(group) > 1)
    return (words.SIZE, *beside, *traces, *seen, *linked, *((words.SOUND,) * quote.audio))
