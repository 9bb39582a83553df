"""Joining segments to one clip: their packets are copied, and every frame gets its exact time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any, Final

from dpveil.errors import OutputError
from dpveil.io.names import shown
from dpveil.video.audio import Sound
from dpveil.video.containers import MOV
from dpveil.video.facts import Facts
from dpveil.video.library import pyav
from dpveil.video.reading import Clip
from dpveil.video.source import Source
from dpveil.video.streams import opened, told
from dpveil.video.times import durations
from dpveil.video.writing import MOVIE, told_of, unit_of

MILLISECOND: Final = Fraction(1, 1000)
EXACT: Final = ("mp4", "mov")
"""Containers that hold times exactly."""
MESSAGES: Final = 6
"""The type of H.264's units that hold supplemental messages."""
AGAIN: Final = "render the clip again"


def join(
    segments: Sequence[str | Path],
    out: str | Path,
    facts: Facts,
    *,
    container: str = "mp4",
    audio_from: Clip | None = None,
) -> None:
    """Write the frames of `segments`, in order, to `out`, a new file: a clip in `container`.

    The frames get the times of `facts`, from zero on: exactly in MP4 and MOV, to the next millisecond in
    Matroska and WebM. With `audio_from`, its first stream of sound is copied beside them, from the time of
    the first frame on. The file is on the disk when this returns; its name is the caller's business. Raises
    `OutputError` if the segments are not all of the clip, or differ in how they are coded, and `ClipError`
    for sound that `container` does not take.
    """
    path = Path(out)
    with told_of(path), path.open("xb") as file:
        options = dict(MOVIE)
        if container in EXACT:
            options["movie_timescale"] = str(unit_of(facts).denominator)
        with pyav().open(file, "w", format=container, container_options=options) as made:
            _fill(made, [Path(segment) for segment in segments], facts, container, audio_from)
        file.flush()
        os.fsync(file.fileno())


def _fill(made: Any, segments: list[Path], facts: Facts, container: str, audio_from: Clip | None) -> None:
    unit = unit_of(facts) if container in EXACT else MILLISECOND
    packets = _timed(_packets(segments, facts), facts, unit)
    first = next(packets)
    try:
        stream = made.add_stream_from_template(first.stream, opaque=True)
    except ValueError as error:
        problem = f"the segments are coded for another container than {container}"
        raise OutputError(problem, hint=AGAIN) from error
    stream.time_base = unit
    with ExitStack() as held:
        sound = None
        if audio_from is not None:
            sound = held.enter_context(closing(Sound(audio_from, made, container)))
        for packet in chain([first], packets):
            if sound is not None:
                sound.until(packet.pts * unit)
            packet.stream = stream
            made.mux(packet)
        if sound is not None:
            sound.until(None)


def _timed(packets: Iterator[Any], facts: Facts, unit: Fraction) -> Iterator[Any]:
    """Yield all packets with the times of `facts`, in `unit`; raises `OutputError` for another number."""
    for begun, ended in _shown(facts, unit):
        packet = next(packets, None)
        if packet is None:
            raise OutputError("the segments have fewer frames than the clip", hint=AGAIN)
        packet.pts = packet.dts = begun
        packet.duration = ended - begun
        packet.time_base = unit
        yield packet
    if next(packets, None) is not None:
        raise OutputError("the segments have more frames than the clip", hint=AGAIN)


def _shown(facts: Facts, unit: Fraction) -> Iterator[tuple[int, int]]:
    """Yield when each frame begins and ends, in `unit`; raises `OutputError` if two begin at once."""
    ticks, last = 0, -1
    for length, count in durations(facts):
        for _ in range(count):
            begun = round(ticks * facts.time_base / unit)
            ticks += length
            if begun <= last:
                raise OutputError("two frames are less than a millisecond apart", hint="write an .mp4 file")
            last = begun
            yield begun, round(ticks * facts.time_base / unit)


def check_times(facts: Facts, container: str) -> None:
    """Raise `OutputError` if files in `container` do not hold the times of a clip."""
    unit = unit_of(facts)  # segments are MP4 files, whatever they are joined to
    for _ in _shown(facts, unit if container in EXACT else MILLISECOND):
        pass


def _packets(segments: list[Path], facts: Facts) -> Iterator[Any]:
    """Yield the packets of all segments; raises `OutputError` for one that is coded otherwise."""
    coded: tuple[Any, ...] | None = None
    for segment in segments:
        source = Source(segment)
        try:
            with opened(source, MOV, facts.width * facts.height) as container:
                stream = container.streams.video[0]
                context = stream.codec_context
                found = (context.name, context.width, context.height, context.pix_fmt, context.extradata)
                if coded not in (None, found) or found[1:3] != (facts.width, facts.height):
                    raise OutputError(f"{shown(segment)} is coded otherwise than the first", hint=AGAIN)
                coded = found
                with told(source, "a segment"):
                    yield from _bare(container.demux(stream), stream)
        finally:
            source.close()


def _bare(packets: Iterator[Any], stream: Any) -> Iterator[Any]:
    """Yield `packets` without the H.264 messages in which x264 states its version and settings."""
    from av.bitstream import BitStreamFilterContext

    if stream.codec_context.name != "h264":
        yield from (packet for packet in packets if packet.size)
        return
    bare = BitStreamFilterContext(f"filter_units=remove_types={MESSAGES}", stream)
    for packet in packets:
        for kept in bare.filter(packet) if packet.size else ():
            kept.stream = stream
            yield kept
