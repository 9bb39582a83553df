"""Decoding a clip's pictures in the order in which they are shown; whatever is damaged ends it."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

from dpveil.video.containers import damaged
from dpveil.video.library import pyav
from dpveil.video.source import Source
from dpveil.video.streams import opened, picture_stream, told
from dpveil.video.times import Backwards, Clock
from dpveil.video.upright import Look, check_size, look_of, turn_of

THREADS: Final = 8
"""Most threads of a decoder: each holds some frames."""
GENPTS: Final = "put its times right by ffmpeg -fflags +genpts -i IN OUT.mp4"


@dataclass(frozen=True)
class Way:
    """How a clip is decoded: its file, FFmpeg's name of its container, and the most pixels of a frame."""

    source: Source
    demuxer: str
    most: int

    @contextmanager
    def stream(self) -> Iterator[tuple[Any, Any]]:
        """Open the clip, and yield PyAV's container and its stream of pictures, ready to be decoded."""
        with opened(self.source, self.demuxer, self.most) as container:
            stream = picture_stream(container, self.source)
            context = stream.codec_context
            check_size(context.width, context.height, self.source, self.most)
            context.options = {"err_detect": "explode", "max_pixels": str(self.most)}
            context.thread_count = min(os.cpu_count() or 1, THREADS)
            context.thread_type = "AUTO"
            yield container, stream

    def looks(self, frames: Iterator[Any], stream: Any) -> Iterator[tuple[Look, Any]]:
        """Yield `frames` of `stream` with their looks; raises `ClipError` for one unlike the first.

        Only whether they consist of fields may change, as it does in broadcasts. The display matrix is read
        from the first: PyAV keeps a frame whose side data was read until Python looks for cycles.
        """
        first: Look | None = None
        angle = 0
        for frame in frames:
            turn = turn_of(frame) if first is None else first.turn
            aspect = stream.sample_aspect_ratio or stream.codec_context.sample_aspect_ratio
            look = look_of(frame, turn, aspect, self.source, self.most)
            if first is None:
                first, angle = look, frame.rotation
            if frame.rotation != angle or replace(look, fields=False) != replace(first, fields=False):
                same = (look.width, look.height) == (first.width, first.height)
                what = "format" if same else "size"
                raise self.source.refused(f"the {what} of its frames changes", "cut it where it does")
            yield look, frame

    def tick(self, clock: Clock, own: int | None) -> int:
        """Return the time of the next frame by `clock`; raises `ClipError` if it is earlier than the last."""
        try:
            return clock.time(own)
        except Backwards:
            raise self.source.refused("the times of its frames go backwards", GENPTS) from None

    def shown(self, look: Look, usual: int, near: int | None = None) -> Iterator[tuple[int, Any]]:
        """Yield time and picture of every frame, from the first or from the keyframe before time `near` on.

        Those that consist of fields are made whole. Raises `ClipError` if one is not as `look`.
        """
        with self.stream() as (container, stream):
            if near is not None:
                with told(self.source, "its index"):
                    container.seek(near, stream=stream)
            clock = Clock(usual)
            found = decoded(container, stream, self.source, numbered=near is None)
            frames = self._as(look, stream, found)
            plain = ((frame.pts, frame) for frame in frames)
            for own, frame in _whole(frames, look, self.source) if look.fields else plain:
                yield self.tick(clock, own), frame

    def _as(self, look: Look, stream: Any, frames: Iterator[Any]) -> Iterator[Any]:
        for found, frame in self.looks(frames, stream):
            if replace(found, fields=look.fields) != look or found.fields > look.fields:
                raise damaged(self.source, "its frames are not as they were when it was opened")
            yield frame


def decoded(container: Any, stream: Any, source: Source, *, numbered: bool = True) -> Iterator[Any]:
    """Yield the frames of PyAV from where `container` is, in the order in which they are shown.

    Raises `ClipError` for the first packet that is damaged or cannot be decoded, with the frame's number if
    that is `numbered`, as from the first one on.
    """
    count = 0
    packets = container.demux(stream)
    while True:
        name = f"frame {count}" if numbered else "a frame"
        with told(source, name):
            packet = next(packets, None)
            if packet is None:
                return
            if packet.is_corrupt:
                raise damaged(source, f"{name} is damaged")
            frames = packet.decode()
        for frame in frames:
            name = f"frame {count}" if numbered else "a frame"
            if frame.is_corrupt:
                raise damaged(source, f"{name} is damaged")
            yield frame
            count += 1


def _whole(frames: Iterator[Any], look: Look, source: Source) -> Iterator[tuple[int | None, Any]]:
    """Yield `frames` with their times, each made of its two fields by FFmpeg's bwdif: one for one."""
    with told(source, "what its fields show"):
        graph = pyav().filter.Graph()
        size = {"width": look.width, "height": look.height, "format": look.pixels}
        entry = graph.add_buffer(**size, time_base=Fraction(1, 25))
        filters = graph.add("bwdif", "mode=send_frame:parity=auto:deint=interlaced")
        end = graph.add("buffersink")
        entry.link_to(filters)
        filters.link_to(end)
        graph.configure()
    times: deque[int | None] = deque()
    for count, frame in enumerate(frames):
        times.append(frame.pts)
        frame.pts, frame.time_base = count, Fraction(1, 25)
        with told(source, f"frame {count}"):
            entry.push(frame)
        yield from _pulled(end, times, source)
    with told(source, "its last frame"):
        entry.push(None)
    yield from _pulled(end, times, source)
    if times:
        raise damaged(source, "its last frames cannot be decoded")


def _pulled(end: Any, times: deque[int | None], source: Source) -> Iterator[tuple[int | None, Any]]:
    av = pyav()
    while times:
        with told(source, "a frame"):
            try:
                frame = end.pull()
            except (av.error.BlockingIOError, av.error.EOFError):
                return
        yield times.popleft(), frame
