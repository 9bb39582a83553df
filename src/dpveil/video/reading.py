"""A clip: what is known about it, and its frames, read again and again from one open file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from dpveil.core.parameters import check_count
from dpveil.errors import ClipError, InvalidParameter
from dpveil.video.containers import MATROSKA, MOST_FRAMES, MOV, NAMES, container_of, damaged
from dpveil.video.decoding import decoded, prepare, whole_frames
from dpveil.video.facts import Facts, Frame
from dpveil.video.source import Source
from dpveil.video.streams import dropped, opened, picture_stream, told
from dpveil.video.times import Backwards, Clock, runs
from dpveil.video.upright import Look, Upright, look_of

MAX_PIXELS: Final = 8192 * 4320
"""Default limit on the pixels of a frame: 8K. A clip needs memory for some dozens of them."""
LIES: Final = "what decodes is not what was found when it was opened"
GENPTS: Final = "put its times right by ffmpeg -fflags +genpts -i IN OUT.mp4"
ONE_EACH: Final = frozenset({"h264", "hevc", "vp9", "av1", "libdav1d", "mjpeg", "prores"})
"""Decoders that show one frame for each packet of a MOV, MP4 or Matroska file, at the packet's time."""
LOOKED_AT: Final = 48
"""Frames decoded to see whether packets tell the times: more than one can wait for its order."""


def open_clip(path: str | Path, *, max_pixels: int = MAX_PIXELS) -> Clip:
    """Open the clip in the file at `path`, and find its facts; use it as a context manager.

    Only regular files are read, in MP4 or MOV, Matroska or WebM, AVI, or MPEG transport and program streams,
    by their contents; `max_pixels` limits the pixels of a frame. Raises `ClipError` with the file, the
    problem and the remedy, and `UsageError` without PyAV.
    """
    most = check_count(max_pixels, "max_pixels")
    source = Source(path)
    try:
        return Clip(source, most)
    except BaseException:
        source.close()
        raise


class Clip:
    """An open clip; `facts` are what is known about it."""

    facts: Facts

    def __init__(self, source: Source, most: int) -> None:
        self.source = source
        self._most = most
        self.demuxer = container_of(source)
        self._clean = True
        self._usual = 1
        with opened(source, self.demuxer) as container:
            stream = picture_stream(container, source)
            prepare(stream, most)
            rate = stream.guessed_rate or stream.average_rate
            self._usual = max(1, round(1 / (rate * stream.time_base))) if rate else 1
            self.facts = self._found(container, stream)
            source.check()

    def __enter__(self) -> Clip:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self.source.close()

    def frames(self, start: int = 0, stop: int | None = None) -> Iterator[Frame]:
        """Yield the frames from number `start` to before `stop`, or to the last.

        Raises `InvalidParameter` for numbers that the clip does not have, and `ClipError` as soon as a frame
        is damaged or is not what `facts` say: its number, its time, its size.
        """
        last = self.facts.frames if stop is None else stop
        if not 0 <= start < last <= self.facts.frames:
            raise InvalidParameter("frames", f"{start}..{last}", f"are not in 0..{self.facts.frames}")
        return self._frames(start, last)

    def _frames(self, start: int, stop: int) -> Iterator[Frame]:
        times = list(islice(self.facts.times, stop))
        index = start - 1
        for index, (time, picture) in enumerate(self._from(start, times), start):
            if index >= stop or time != times[index]:
                raise self._lies()
            yield Frame(index, time, self._upright.image(picture))
            if index == stop - 1 < self.facts.frames - 1:
                break
        if index != stop - 1:
            raise self._lies()
        self.source.check()

    def _from(self, start: int, times: list[int]) -> Iterator[tuple[int, Any]]:
        """Return times and pictures of the frames from `start` on."""
        near = times[max(0, start - 2)] if start and self._clean else None
        found = self._reached(near, times[start]) if near is not None else None
        return found or islice(self._shown(None), start, None)

    def _reached(self, near: int, time: int) -> Iterator[tuple[int, Any]] | None:
        """Return the frames from `time` on, decoded from a keyframe before `near`; None if none is found so.

        What precedes a keyframe may be missing, or refer to frames before it.
        """
        found = self._shown(near)
        try:
            for shown in found:
                if shown[0] >= time:
                    return chain([shown], found) if shown[0] == time else None
        except ClipError:
            pass
        return None

    def _shown(self, near: int | None) -> Iterator[tuple[int, Any]]:
        """Yield time and picture of every frame, from the keyframe before `near`, or from the first."""
        with opened(self.source, self.demuxer) as container:
            stream = picture_stream(container, self.source)
            prepare(stream, self._most)
            if near is not None:
                with told(self.source, "its index"):
                    container.seek(near, stream=stream)
            clock = Clock(self._usual)
            frames = self._alike(decoded(container, stream, self.source), stream)
            plain = ((frame.pts, frame) for frame in frames)
            shown = whole_frames(frames, stream, self.source) if self._look.fields else plain
            for time, frame in shown:
                yield self._time(clock, time), frame

    def _time(self, clock: Clock, own: int | None) -> int:
        try:
            return clock.time(own)
        except Backwards:
            raise self.source.refused("the times of its frames go backwards", GENPTS) from None

    def _alike(self, frames: Iterator[Any], stream: Any) -> Iterator[Any]:
        """Yield `frames`; raises `ClipError` for the first that looks unlike those before."""
        for frame in frames:
            look = look_of(frame, stream.sample_aspect_ratio, self.source, self._most)
            if replace(look, fields=look.fields and not self._look.fields) != replace(
                self._look, fields=False
            ):
                raise self._differs(look)
            yield frame

    def _differs(self, look: Look) -> ClipError:
        what = "size" if (look.width, look.height) != (self._look.width, self._look.height) else "format"
        return self.source.refused(f"the {what} of its frames changes", "cut it where it does")

    def _lies(self) -> ClipError:
        return damaged(self.source, LIES)

    def _found(self, container: Any, stream: Any) -> Facts:
        """Return the facts: times from packets where these tell them for sure, else by decoding all."""
        times = self._by_packets(container, stream)
        head = list(islice(self._first_frames(stream), LOOKED_AT))
        if not head:
            raise self.source.refused("it has no frames", "give the name of a clip")
        self._look = look_of(head[0], stream.sample_aspect_ratio, self.source, self._most)
        fields = any(frame.interlaced_frame for frame in head)
        self._look = replace(self._look, fields=fields)
        self._upright = Upright(self._look, self.source, self._most)
        own = [frame.pts for frame in head]
        if fields or times is None or own != times[: len(own)] or len(own) < min(LOOKED_AT, len(times)):
            times = self._by_decoding()
        start, steps = runs(times)
        return Facts(
            sha256=self.source.sha256(),
            format=NAMES[self.demuxer],
            codec=stream.codec_context.codec.canonical_name,
            width=self._upright.width,
            height=self._upright.height,
            time_base=stream.time_base,
            start=start,
            steps=steps,
            audio=bool(container.streams.audio),
            dropped=dropped(container, stream),
        )

    def _first_frames(self, _: Any) -> Iterator[Any]:
        with opened(self.source, self.demuxer) as container:
            stream = picture_stream(container, self.source)
            prepare(stream, self._most)
            yield from decoded(container, stream, self.source)

    def _by_packets(self, container: Any, stream: Any) -> list[int] | None:
        """Return the times that the packets state, in order; None where these may not be the frames'."""
        if self.demuxer not in (MOV, MATROSKA) or stream.codec_context.codec.name not in ONE_EACH:
            return None
        times: list[int] = []
        with told(self.source, "its list of frames"):
            for packet in container.demux(stream):
                if packet.size == 0 and packet.pts is None:
                    continue
                if packet.is_corrupt:
                    raise damaged(self.source, f"frame {len(times)} is damaged")
                if packet.pts is None or packet.is_discard:
                    return None
                times.append(packet.pts)
                self._check_number(len(times))
        times.sort()
        return times if len(set(times)) == len(times) else None

    def _by_decoding(self) -> list[int]:
        times: list[int] = []
        clock = Clock(self._usual)
        for frame in self._alike(self._first_frames(None), None):
            times.append(self._time(clock, frame.pts))
            self._check_number(len(times))
        self._clean = not clock.repaired
        return times

    def _check_number(self, count: int) -> None:
        if count > MOST_FRAMES:
            raise self.source.refused(f"it has more than {MOST_FRAMES:,} frames", "cut it into parts")
