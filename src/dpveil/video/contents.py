"""What a clip's file holds, against what its certificate says of it."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from dpveil.core.guarantee import counted
from dpveil.video.certificate import VideoCertificate
from dpveil.video.containers import container_of
from dpveil.video.decoding import Way
from dpveil.video.reading import MAX_PIXELS
from dpveil.video.source import Source
from dpveil.video.survey import survey
from dpveil.video.units import most_frames

MATROSKA: Final = ("mkv", "webm")
ROUNDED: Final = dict.fromkeys(MATROSKA, Fraction(1, 500))
"""Seconds by which times may differ in formats that store milliseconds; others store exact times."""
BOXES: Final = frozenset({b"ftyp", b"free", b"wide", b"mdat", b"moov"})
"""The boxes of MP4 and MOV files that are written (ISO/IEC 14496-12)."""
ELEMENTS: Final = frozenset(
    bytes.fromhex(name)
    for name in (
        "1a45dfa3",
        "18538067",
        "114d9b74",
        "ec",
        "1549a966",
        "1654ae6b",
        "1254c367",
        "1f43b675",
        "1c53bb6b",
    )
)
"""EBML's head, the segment, and in it seek head, void, info, tracks, tags, clusters, cues (RFC 9559)."""
MOST_PARTS: Final = 1 << 20
"""Most parts of a clip: a cluster holds seconds."""
SEGMENT: Final = bytes.fromhex("18538067")
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
    for name in _parts(source, form):
        if name not in (ELEMENTS if form in MATROSKA else BOXES):
            yield f"the clip holds a part that dpveil does not write: {name!r}"
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


def _parts(source: Source, form: str) -> Iterator[bytes]:
    """Yield the names of a file's boxes, or of its EBML elements and those of its segment."""
    at = 0
    for _ in range(MOST_PARTS):
        if at >= source.size:
            return
        head = source.read(at, 16).ljust(16, b"\0")
        if form not in MATROSKA:
            size, name = int.from_bytes(head[:4], "big"), head[4:8]
            size = int.from_bytes(head[8:], "big") if size == 1 else size or source.size - at
        else:
            name, start = head[: _width(head[0])], _width(head[0])
            width = _width(head[start])
            content = int.from_bytes(head[start : start + width], "big") & ((1 << 7 * width) - 1)
            size = start + width + (0 if name == SEGMENT else content)
        yield name
        at += max(size, 1)
    yield b""  # more parts than any clip has


def _width(first: int) -> int:
    """Return how many bytes a number of EBML has, by its first byte (RFC 8794 §4)."""
    return 9 - first.bit_length()
