"""Decoding a clip's pictures in the order in which they are shown; whatever is damaged ends it."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Final

from dpveil.video.containers import damaged
from dpveil.video.library import pyav
from dpveil.video.source import Source
from dpveil.video.streams import told

THREADS: Final = 8
"""Most threads of a decoder: each holds some frames."""


def prepare(stream: Any, most: int) -> None:
    """Set up the decoder of `stream`: an error ends it, and frames of more than `most` pixels are one."""
    stream.codec_context.options = {"err_detect": "explode", "max_pixels": str(most)}
    stream.codec_context.thread_count = min(os.cpu_count() or 1, THREADS)
    stream.codec_context.thread_type = "AUTO"


def decoded(container: Any, stream: Any, source: Source) -> Iterator[Any]:
    """Yield the frames of PyAV from where `container` is, in the order in which they are shown.

    Raises `ClipError` for the first packet that is damaged or cannot be decoded.
    """
    count = 0
    packets = container.demux(stream)
    while True:
        with told(source, f"frame {count}"):
            packet = next(packets, None)
            if packet is None:
                return
            if packet.is_corrupt:
                raise damaged(source, f"frame {count} is damaged")
            frames = packet.decode()
        for frame in frames:
            if frame.is_corrupt:
                raise damaged(source, f"frame {count} is damaged")
            yield frame
            count += 1


def whole_frames(frames: Iterator[Any], stream: Any, source: Source) -> Iterator[tuple[int | None, Any]]:
    """Yield each of `frames` with its time, made of its two fields by FFmpeg's bwdif: one for one."""
    av = pyav()
    graph = av.filter.Graph()
    entry = graph.add_buffer(template=stream)
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
        try:
            with told(source, "a frame"):
                try:
                    frame = end.pull()
                except (av.error.BlockingIOError, av.error.EOFError):
                    return
        finally:
            pass
        yield times.popleft(), frame
