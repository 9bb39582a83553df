"""What a clip's file holds, against what its certificate says of it."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from dpveil.core.guarantee import counted
from dpveil.video.certificate import VideoCertificate
from dpveil.video.containers import boxes, container_of, elements, segment
from dpveil.video.decoding import Way
from dpveil.video.reading import MAX_PIXELS
from dpveil.video.source import Source
from dpveil.video.survey import survey
from dpveil.video.units import most_frames

MATROSKA: Final = ("mkv", "webm")
ROUNDED: Final = dict.fromkeys(MATROSKA, Fraction(1, 500))
"""Seconds by which times may differ in formats that store milliseconds; others store exact times."""
PARTS: Final = frozenset(
    {b"ftyp", b"free", b"wide", b"mdat", b"moov"}  # boxes of MP4 and MOV (ISO/IEC 14496-12)
    | {0xEC, 0x114D9B74, 0x1549A966, 0x1654AE6B, 0x1254C367, 0x1F43B675, 0x1C53BB6B}
)
"""Parts of files that are written; Matroska: void, seeks, info, tracks, tags, cluster, cues (RFC 9559)."""
TICK: Final = Fraction(1, 10**6)


def content_problems(
    source: Source, certificate: VideoCertificate, *, max_pixels: int = MAX_PIXELS
) -> Iterator[str]:
    """Yield in what a clip differs from what its certificate says of it, but for what its pictures show.

    Decodes no more than its first frames. Raises `ClipError` if it cannot be read, or a frame has more than
    `max_pixels`.
    """
    quote, event, form = certificate.quote, certificate.quote.event, certificate.output.format
    demuxer = container_of(source)
    found = (
        elements(source, segment(source)[0], source.size)
        if form in MATROSKA
        else boxes(source, 0, source.size, ())
    )
    unknown = next((each[0] for each in found if each[0] not in PARTS), None)
    if unknown is not None:
        yield f"the clip holds a part that dpveil does not write: {unknown!r}"
        return
    facts = survey(Way(source, demuxer, max_pixels), whole=False).facts
    size, rounded = f"{facts.width}×{facts.height}", ROUNDED.get(form, Fraction(0))
    if (facts.width, facts.height, facts.frames) != (quote.width, quote.height, quote.frames):
        yield f"the clip has {counted(facts.frames, 'frame')} of {size}, not as the certificate says"
    elif abs(facts.seconds - certificate.output.seconds) > rounded:
        yield "the clip is not as long as the certificate says"
    elif event is not None and most_frames(facts, max(TICK, event.seconds - rounded)) > event.frames:
        yield "an event can change more frames than the certificate says"
    if facts.audio != quote.audio:
        yield f"the clip has {'sound' if facts.audio else 'no sound'}, not as the certificate says"
    if facts.dropped:
        yield f"the clip holds more than pictures and sound: {', '.join(facts.dropped)}"
