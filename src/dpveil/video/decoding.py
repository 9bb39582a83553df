"""A clip that this process decodes: its facts, and its pictures in the order in which they are shown."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, islice
from typing import Any, Final

import numpy as np

from dpveil.core.array_types import UInt8
from dpveil.errors import ClipError, InvalidParameter
from dpveil.opencv import cv2
from dpveil.video.containers import (
    MATROSKA,
    MOV,
    NAMES,
    Source,
    as_clip_error,
    container_of,
    left_out_streams,
    open_container,
    picture_stream,
)
from dpveil.video.facts import Facts, Frame, runs

MAX_PIXELS: Final = 8192 * 4320
"""Default limit on the pixels of a frame: 8K. A clip needs memory for some dozens of frames."""
MOST_FRAMES: Final = 2_000_000  # most frames of a clip: 18 hours at 30 a second
MATRICES: Final = {1: 1, 4: 4, 5: 5, 6: 5, 7: 7, 9: 9}
"""FFmpeg's number of the matrix of a frame (ITU-T H.273), and swscale's for it."""
UNSTATED: Final = (2, 3)
RGB: Final = 0
HIGH: Final = (576, 1024)
"""A higher or wider picture that does not state its matrix has that of BT.709, as players take it."""
HDR: Final = {16: "PQ", 18: "HLG"}
"""Transfer functions of pictures that have brighter things than a sheet of white paper (ITU-R BT.2100)."""
BT709, BT2020, UNKNOWN = 1, 9, 2
FULL, LIMITED = 2, 1
MOST_ASPECT: Final = 4  # a pixel that is longer than this many times its other side is a lie


@dataclass(frozen=True)
class Look:
    """What all frames of a clip share: size, format, display matrix and colours."""

    width: int
    height: int
    pixels: str
    turn: bytes
    aspect: Fraction
    matrix: int
    limited: bool
    hdr: str = ""


def look_of(frame: Any, turn: bytes, aspect: Fraction | None, source: Source, most: int) -> Look:
    """Return the look of a decoded frame; raises `ClipError` for one that cannot be converted faithfully.

    `turn` is its display matrix as FFmpeg stores it, `aspect` the ratio of a pixel's width to its height,
    and `most` the largest number of pixels.
    """
    check_size(frame.width, frame.height, source, most)
    if aspect and not Fraction(1, MOST_ASPECT) <= aspect <= MOST_ASPECT:
        raise source.clip_error("its pixels are not nearly square", "save it with square pixels")
    if frame.interlaced_frame:
        raise source.clip_error("it is interlaced", "make it whole by ffmpeg -i IN -vf bwdif OUT.mp4")
    matrix, hdr = frame.colorspace, HDR.get(frame.color_trc, "")
    if matrix in UNSTATED:
        large = frame.height > HIGH[0] or frame.width > HIGH[1]
        matrix = BT2020 if hdr else BT709 if large else 6
    if matrix != RGB and matrix not in MATRICES:
        raise source.clip_error(
            "its colours are coded in a way that dpveil does not read", "save it as H.264"
        )
    name = frame.format.name
    full = frame.color_range == FULL or name.startswith("yuvj")
    full |= frame.color_range == 0 and (frame.format.is_rgb or name.startswith("gray"))
    return Look(
        width=frame.width,
        height=frame.height,
        pixels=name,
        turn=turn,
        aspect=Fraction(aspect or 1),
        matrix=matrix,
        limited=not full,
        hdr=hdr,
    )


def check_size(width: int, height: int, source: Source, most: int) -> None:
    """Raise `ClipError` if frames of this size have more than `most` pixels."""
    if width * height > most:
        problem = f"its frames have {width}×{height} pixels, above the limit of {most:,}"
        raise source.clip_error(problem, "make them smaller")


class Upright:
    """Converts frames of one look; `width` and `height` are those of what it returns.

    Levels are rounded to the nearest; swscale's quick conversion makes them darker by one. HDR becomes SDR as
    it is seen up to its white (203 cd/m², ITU-R BT.2408); what is brighter is white.
    """

    def __init__(self, look: Look, source: Source, most: int) -> None:
        from av.video.format import VideoFormat
        from av.video.reformatter import Interpolation, VideoReformatter

        self._look = look
        self._exact = Interpolation.BILINEAR | Interpolation.ACCURATE_RND | Interpolation.FULL_CHR_H_INT
        self._to_rgb = VideoReformatter()
        # the shorter side of a pixel is stretched, so that nothing is lost
        wide = look.aspect >= 1
        across = round(look.width * look.aspect) if wide else look.width
        self._size = across, look.height if wide else round(look.height / look.aspect)
        self._turned = _flips(look.turn, source)
        self.width, self.height = self._size[::-1] if self._turned[0] else self._size
        check_size(self.width, self.height, source, most)
        parts = VideoFormat(look.pixels).components
        self._alpha = any(part.is_alpha for part in parts) or look.pixels == "pal8"

    def image(self, frame: Any) -> UInt8[np.ndarray, "h w 3"]:
        """Return the upright levels of a frame, read-only; what is transparent is shown on black."""
        look, (width, height) = self._look, self._size
        if look.hdr and frame.color_primaries == UNKNOWN:
            frame.color_primaries = BT2020
        plain = self._to_rgb.reformat(
            frame,
            width,
            height,
            "rgba" if self._alpha else "rgb24",
            dst_colorspace=BT709 if look.hdr else None,
            dst_color_trc=BT709 if look.hdr else None,
            dst_color_primaries=BT709 if look.hdr else None,
            src_colorspace=MATRICES.get(look.matrix, 5),
            src_color_range=LIMITED if look.limited else FULL,
            dst_color_range=FULL,
            interpolation=self._exact,
            threads=1,
        )
        plane: Any = plain.planes[0]
        channels = 4 if self._alpha else 3
        rows = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
        levels = rows[:, : channels * plane.width].reshape(plane.height, plane.width, channels)
        if self._alpha:
            levels = (levels[:, :, :3].astype(np.uint16) * levels[:, :, 3:] // 255).astype(np.uint8)
        swap, across, down = self._turned
        if swap:
            levels = np.asarray(cv2.transpose(levels))
        if across or down:
            levels = np.asarray(cv2.flip(levels, -1 if across and down else int(across)))
        levels = np.ascontiguousarray(levels)
        levels.flags.writeable = False
        return levels


def _flips(turn: bytes, source: Source) -> tuple[bool, bool, bool]:
    """Return whether to swap rows and columns, then to mirror left and right, then top and bottom."""
    if len(turn) < 36:
        return False, False, False
    # FFmpeg's display matrix: nine signed numbers a b u, c d v, x y w; a point goes to (a·x + c·y, b·x + d·y)
    a, b, _, c, d, *_ = np.frombuffer(turn[:36], np.int32).astype(float)
    scale = max(abs(a), abs(b), abs(c), abs(d)) / 100
    if max(abs(b), abs(c)) < scale <= 50 * min(abs(a), abs(d)):
        return False, bool(a < 0), bool(d < 0)
    if max(abs(a), abs(d)) < scale <= 50 * min(abs(b), abs(c)):
        return True, bool(c < 0), bool(b < 0)
    raise source.clip_error(
        "its pictures are turned by an angle other than 90, 180 or 270°", "save it upright"
    )


GENPTS: Final = "put its times right by ffmpeg -fflags +genpts -i IN OUT.mp4"


class Clock:
    """Gives every decoded frame its time, in the order in which they are shown.

    A time that is missing is `usual` units after the one before. One that repeats is a single unit later
    than the one before, as are those that follow until the clip's own times are later again. `repaired`
    says whether any time was not the file's own. Times that go backwards are a `ClipError` of the `source`.
    """

    def __init__(self, usual: int, source: Source) -> None:
        self._usual, self._source = max(1, usual), source
        self._own: int | None = None
        self._last: int | None = None
        self.repaired = False

    def time(self, own: int | None) -> int:
        """Return the time of the next frame, which has its `own` in the file; raises `ClipError`."""
        if own is None:
            time = 0 if self._last is None else self._last + self._usual
        elif self._own is not None and own < self._own:
            raise self._source.clip_error("the times of its frames go backwards", GENPTS)
        else:
            time = own if self._last is None else max(own, self._last + 1)
            self._own = own
        self.repaired |= time != own
        self._last = time
        return time


THREADS: Final = 8  # most threads of a decoder: each holds some frames


ONE_EACH: Final = frozenset({"h264", "hevc", "vp9", "av1", "libdav1d", "mjpeg", "prores"})
"""Decoders that show one frame for each packet of a MOV, MP4 or Matroska file, at the packet's time."""
WITHOUT_B: Final = ONE_EACH | {"mpeg4"}  # those that do so where no frame depends on a later one
USUAL_RATE: Final = 25  # frames a second of a clip that states nothing
LOOKED_AT: Final = 48
"""Frames decoded to see whether the packets tell the times: more than a decoder holds back."""
LIES: Final = "what decodes is not what was found when it was opened"


class Reader:
    """A clip that this process decodes; `facts` are known about it, `demuxer` is FFmpeg's name of its format.

    The times of frames are those of the packets where a packet is a frame, the first frames have these times,
    and the file states every one. Else all is decoded once, or the clip is refused if it is not to be
    `searched` for its times. Without B-frames, as dpveil writes it, MPEG-4 also has a frame in each packet.
    """

    facts: Facts

    def __init__(self, source: Source, most: int = MAX_PIXELS, *, searched: bool = True) -> None:
        self.source, self.demuxer, self.most = source, container_of(source), most
        self._running: tuple[tuple[int, int, int], Iterator[Frame]] | None = None
        with self._stream() as (container, stream):
            if stream.time_base is None or stream.time_base <= 0:
                raise source.clip_error("its structure is damaged")
            rate = stream.guessed_rate or stream.average_rate
            self._usual = max(1, round(1 / ((rate or USUAL_RATE) * stream.time_base)))
            times = self._packet_times(container, stream, ONE_EACH if searched else WITHOUT_B)
            head = list(islice(self._looks(), LOOKED_AT))
            if not head:
                raise source.clip_error("it has no frames", "give the name of a clip")
            self._clean = True
            if times is None or times[:LOOKED_AT] != [time for _, time in head]:
                if not searched:
                    raise source.clip_error("its packets do not tell when each frame is shown")
                times, self._clean = self._decoded_times()
            self._look = head[0][0]
            self._upright = Upright(self._look, source, most)
            start, steps = runs(times)
            bright = (f"brightness above white ({self._look.hdr})",) if self._look.hdr else ()
            self.facts = Facts(
                sha256=source.sha256(),
                format=NAMES[self.demuxer],
                codec=stream.codec_context.codec.canonical_name,
                width=self._upright.width,
                height=self._upright.height,
                time_base=stream.time_base,
                start=start,
                steps=steps,
                audio=bool(container.streams.audio),
                dropped=(*left_out_streams(container, stream), *bright),
            )

    def frame(self, start: int, stop: int, index: int) -> Frame | None:
        """Return a frame of those from `start` to `stop`, the next one at once; None after the last."""
        due = (start, stop, index)
        if self._running is None or self._running[0] != due:
            self._running = due, self.frames(min(index, stop - 1), stop)
            if index == stop:
                next(self._running[1])  # the process was begun anew; the next one raises if there are more
        frames = self._running[1]
        found = next(frames, None)
        self._running = None if found is None else ((start, stop, index + 1), frames)
        return found

    def frames(self, start: int = 0, stop: int | None = None) -> Iterator[Frame]:
        start, stop = bounds(self.facts, start, stop)
        times = list(islice(self.facts.times, stop))
        index = start - 1
        for index, (time, picture) in enumerate(self._frames_at(start, times), start):
            if index >= stop or time != times[index]:
                raise self.source.clip_error(LIES)
            with as_clip_error(self.source, f"frame {index}"):
                image = self._upright.image(picture)
            yield Frame(index, time, image)
            if index == stop - 1 < self.facts.frames - 1:
                break
        if index != stop - 1:
            raise self.source.clip_error(LIES)

    def _frames_at(self, start: int, times: list[int]) -> Iterator[tuple[int, Any]]:
        """Return times and pictures of the frames from `start` on."""
        # From a keyframe before them, if there is one: what precedes a keyframe may be missing, or may refer
        # to frames before it.
        if start and self._clean:
            found = self._read_frames(times[max(0, start - 2)])
            try:
                for shown in found:
                    if shown[0] > times[start]:
                        break
                    if shown[0] == times[start]:
                        return chain([shown], found)
            except ClipError:
                pass
        return islice(self._read_frames(), start, None)

    @contextmanager
    def _stream(self) -> Iterator[tuple[Any, Any]]:
        with open_container(self.source, self.demuxer, self.most) as container:
            stream = picture_stream(container, self.source)
            context = stream.codec_context
            check_size(context.width, context.height, self.source, self.most)
            context.options = {"err_detect": "explode", "max_pixels": str(self.most)}
            context.thread_count = min(os.cpu_count() or 1, THREADS)
            context.thread_type = "AUTO"
            yield container, stream

    def _looks(self) -> Iterator[tuple[Look, int | None]]:
        with self._stream() as (container, stream):
            for look, frame in self._with_looks(decode_frames(container, stream, self.source), stream):
                yield look, frame.pts

    def _with_looks(self, frames: Iterator[Any], stream: Any) -> Iterator[tuple[Look, Any]]:
        """Yield `frames` of `stream` with their looks; raises `ClipError` for one unlike the first."""
        first: Look | None = None
        angle = 0
        for frame in frames:
            # Of the first alone: PyAV keeps a frame whose side data was read until Python looks for cycles.
            turn = bytes(frame.side_data.get("DISPLAYMATRIX") or b"") if first is None else first.turn
            aspect = stream.sample_aspect_ratio or stream.codec_context.sample_aspect_ratio
            look = look_of(frame, turn, aspect, self.source, self.most)
            if first is None:
                first, angle = look, frame.rotation
            if frame.rotation != angle or look != first:
                same = (look.width, look.height) == (first.width, first.height)
                what = "format" if same else "size"
                raise self.source.clip_error(f"the {what} of its frames changes", "cut it where it does")
            yield look, frame

    def _read_frames(self, near: int | None = None) -> Iterator[tuple[int, Any]]:
        """Yield time and picture of every frame, from the first or the keyframe before time `near` on."""
        with self._stream() as (container, stream):
            if near is not None:
                with as_clip_error(self.source, "its index"):
                    container.seek(near, stream=stream)
            clock = Clock(self._usual, self.source)
            decoded = decode_frames(container, stream, self.source, numbered=near is None)
            for look, frame in self._with_looks(decoded, stream):
                if look != self._look:
                    raise self.source.clip_error("its frames are not as they were when it was opened")
                yield clock.time(frame.pts), frame

    def _packet_times(self, container: Any, stream: Any, decoders: frozenset[str]) -> list[int] | None:
        """Return the times that the packets state, in order; None where these may not be the frames'."""
        if self.demuxer not in (MOV, MATROSKA) or stream.codec_context.codec.name not in decoders:
            return None
        times: list[int] = []
        with as_clip_error(self.source, "its list of frames"):
            for packet in container.demux(stream):
                if packet.size == 0 and packet.pts is None:
                    continue
                if packet.is_corrupt:
                    raise self.source.clip_error(f"frame {len(times)} is damaged")
                if packet.pts is None or packet.is_discard:
                    return None
                times.append(packet.pts)
                self._check_number(len(times))
        if len(times) < stream.frames:
            raise self.source.clip_error("the file ends early")
        times.sort()
        return times if len(set(times)) == len(times) else None

    def _decoded_times(self) -> tuple[list[int], bool]:
        times: list[int] = []
        clock = Clock(self._usual, self.source)
        for _, own in self._looks():
            times.append(clock.time(own))
            self._check_number(len(times))
        return times, not clock.repaired

    def _check_number(self, count: int) -> None:
        if count > MOST_FRAMES:
            problem = f"it has more than {MOST_FRAMES:,} frames"
            raise self.source.clip_error(problem, "cut it into parts")


def bounds(facts: Facts, start: int, stop: int | None) -> tuple[int, int]:
    """Return the first and the last frame + 1 of a part of a clip; raises `InvalidParameter`."""
    last = facts.frames if stop is None else stop
    if not 0 <= start < last <= facts.frames:
        raise InvalidParameter("frames", f"{start}..{last}", f"are not in 0..{facts.frames}")
    return start, last


def decode_frames(container: Any, stream: Any, source: Source, *, numbered: bool = True) -> Iterator[Any]:
    """Yield the frames of PyAV from where `container` is, in the order in which they are shown.

    Raises `ClipError` for the first packet that is damaged or cannot be decoded, with the frame's number if
    that is `numbered`, as from the first one on.
    """
    count = 0
    packets = container.demux(stream)
    while True:
        name = f"frame {count}" if numbered else "a frame"
        with as_clip_error(source, name):
            packet = next(packets, None)
            if packet is None:
                return
            if packet.is_corrupt:
                raise source.clip_error(f"{name} is damaged")
            frames = packet.decode()
        for frame in frames:
            name = f"frame {count}" if numbered else "a frame"
            if frame.is_corrupt:
                raise source.clip_error(f"{name} is damaged")
            yield frame
            count += 1
