"""What is found when a clip is opened: its facts, how its frames look, and whether its times are its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from dpveil.video.containers import MATROSKA, MOST_FRAMES, MOV, NAMES, damaged
from dpveil.video.decoding import Way, decoded
from dpveil.video.facts import Facts
from dpveil.video.streams import dropped, told
from dpveil.video.times import Clock, runs
from dpveil.video.upright import Look, Upright

ONE_EACH: Final = frozenset({"h264", "hevc", "vp9", "av1", "libdav1d", "mjpeg", "prores"})
"""Decoders that show one frame for each packet of a MOV, MP4 or Matroska file, at the packet's time."""
WITHOUT_B: Final = ONE_EACH | {"mpeg4"}
"""Those that do so where no frame depends on a later one."""
USUAL_RATE: Final = 25
"""Frames a second of a clip that states nothing."""
LOOKED_AT: Final = 48
"""Frames decoded to see whether the packets tell the times: more than a decoder holds back."""


@dataclass(frozen=True)
class Survey:
    """What was found: `usual` is the units of time that stand for a missing one, `clean` that none was."""

    facts: Facts
    look: Look
    usual: int
    clean: bool


def survey(way: Way, *, whole: bool = True) -> Survey:
    """Return what is found in a clip; raises `ClipError`.

    The times of frames are those of the packets where a packet is a frame, the first frames have these
    times, and the file states every one: else all is decoded once, or the clip is refused if not `whole`.
    Without B-frames, as dpveil writes it, MPEG-4 also has a frame in each packet.
    """
    with way.stream() as (container, stream):
        if stream.time_base is None or stream.time_base <= 0:
            raise damaged(way.source)
        rate = stream.guessed_rate or stream.average_rate
        usual = max(1, round(1 / ((rate or USUAL_RATE) * stream.time_base)))
        stated = _by_packets(way, container, stream, ONE_EACH if whole else WITHOUT_B)
        head = list(islice(_looks(way), LOOKED_AT))
        if not head:
            raise way.source.refused("it has no frames", "give the name of a clip")
        clean, fields = True, any(look.fields for look, _ in head)
        own = [time for _, time in head]
        if (fields or stated is None or own != stated[:LOOKED_AT]) and not whole:
            raise damaged(way.source, "its packets do not tell when each frame is shown")
        if fields or stated is None or own != stated[:LOOKED_AT]:
            stated, clean, fields = _by_decoding(way, usual)
        look = replace(head[0][0], fields=fields)
        upright = Upright(look, way.source, way.most)
        facts = _facts(way, container, stream, stated, upright, look)
    way.source.check()
    return Survey(facts, look, usual, clean)


def _facts(way: Way, container: Any, stream: Any, times: list[int], upright: Upright, look: Look) -> Facts:
    start, steps = runs(times)
    bright = (f"brightness above white ({look.hdr})",) if look.hdr else ()
    return Facts(
        sha256=way.source.sha256(),
        format=NAMES[way.demuxer],
        codec=stream.codec_context.codec.canonical_name,
        width=upright.width,
        height=upright.height,
        time_base=stream.time_base,
        start=start,
        steps=steps,
        audio=bool(container.streams.audio),
        dropped=(*dropped(container, stream), *bright),
        fields=look.fields,
    )


def _looks(way: Way) -> Iterator[tuple[Look, int | None]]:
    """Yield the look of every frame, and its time in the file."""
    with way.stream() as (container, stream):
        for look, frame in way.looks(decoded(container, stream, way.source), stream):
            yield look, frame.pts


def _by_packets(way: Way, container: Any, stream: Any, decoders: frozenset[str]) -> list[int] | None:
    """Return the times that the packets state, in order; None where these may not be the frames'."""
    if way.demuxer not in (MOV, MATROSKA) or stream.codec_context.codec.name not in decoders:
        return None
    times: list[int] = []
    with told(way.source, "its list of frames"):
        for packet in container.demux(stream):
            if packet.size == 0 and packet.pts is None:
                continue
            if packet.is_corrupt:
                raise damaged(way.source, f"frame {len(times)} is damaged")
            if packet.pts is None or packet.is_discard:
                return None
            times.append(packet.pts)
            _check_number(way, len(times))
    times.sort()
    return times if len(set(times)) == len(times) else None


def _by_decoding(way: Way, usual: int) -> tuple[list[int], bool, bool]:
    """Return the times of all frames, whether all are the file's own, and whether any consists of fields."""
    times: list[int] = []
    clock, fields = Clock(usual), False
    for look, own in _looks(way):
        times.append(way.tick(clock, own))
        fields |= look.fields
        _check_number(way, len(times))
    return times, not clock.repaired, fields


def _check_number(way: Way, count: int) -> None:
    if count > MOST_FRAMES:
        raise way.source.refused(f"it has more than {MOST_FRAMES:,} frames", "cut it into parts")
