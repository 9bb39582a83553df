"""Writing frames: a segment of a clip, which is a clip of its own and is joined with others later."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import numpy as np

from dpveil.core.photo import check_image
from dpveil.errors import DPVeilError, InvalidParameter, OutputError
from dpveil.io.names import shown
from dpveil.io.writing import refusal
from dpveil.video.encoders import encoder_for, settings
from dpveil.video.facts import Facts, Frame
from dpveil.video.library import pyav

BT709, LIMITED = 1, 1
MOVIE: Final = {"fflags": "+bitexact"}
"""Options of every file that is written: no version of the software, no random numbers."""
LONGEST: Final = 2**31
"""An MP4 file states how long a frame is shown as a number below this, in its unit."""
SLOWEST, FASTEST = 1, 240
"""Frames a second that encoders are told, which changes no time."""


def unit_of(facts: Facts) -> Fraction:
    """Return the unit of times in an MP4 file that holds those of `facts` exactly, as 1 / a whole number.

    Raises `OutputError` if there is none, as times are too fine for how far frames are apart.
    """
    steps = [step for step, _ in facts.steps]
    unit = Fraction(1, (facts.time_base * (math.gcd(*steps) or 1)).denominator)
    if max(steps, default=0) * facts.time_base / unit >= LONGEST or unit.denominator >= LONGEST:
        raise OutputError("frames are too far apart for the unit of their times", hint="cut the clip there")
    return unit


@contextmanager
def told_of(path: Path) -> Iterator[None]:
    """Turn errors of the operating system and of FFmpeg in writing `path` into `OutputError`."""
    av = pyav()
    try:
        yield
    except DPVeilError:
        raise
    except (OSError, ValueError, av.error.FFmpegError) as error:
        for cause in _causes(error):
            if isinstance(cause, OSError) or not isinstance(cause, av.error.FFmpegError):
                raise refusal(path, cause) from error
        raise OutputError(f"cannot write {shown(path)}: it cannot be encoded") from error


def _causes(error: BaseException) -> Iterator[Any]:
    """Yield an error of writing and those that it came from: PyAV tells of a full disk by another one."""
    cause: BaseException | None = error
    while isinstance(cause, OSError | ValueError | pyav().error.FFmpegError):
        yield cause
        cause = cause.__cause__ or cause.__context__


class Writer:
    """Writes one segment of a clip with the sizes and times of `facts` to a new file at `path`.

    `container` is that of the whole clip, as `encoders.container_for` returns it, and decides the encoder;
    a segment itself is always an MP4 file. Use it as a context manager, or call `close`. Frames come in
    order, one after the other. Raises `OutputError`.
    """

    def __init__(self, path: str | Path, facts: Facts, *, container: str = "mp4") -> None:
        from av.video.reformatter import VideoReformatter

        self._av = pyav()
        self._path, self._facts = Path(path), facts
        self._next: int | None = None
        self._last = 0
        self._to_yuv = VideoReformatter()
        encoder, self._pixels = encoder_for(container, facts.width, facts.height)
        self._unit = unit_of(facts)
        with told_of(self._path):
            self._file = self._path.open("xb")
            self._container = self._av.open(self._file, "w", format="mp4", container_options=MOVIE)
            self._stream = self._container.add_stream(encoder.name, rate=_rate(facts))
            self._stream.width, self._stream.height = facts.width, facts.height
            self._stream.pix_fmt = self._pixels
            self._stream.time_base = self._stream.codec_context.time_base = self._unit
            settings(self._stream, encoder)

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.close()
        finally:
            with suppress(OSError):  # what it could not write was told
                self._file.close()

    def write(self, frame: Frame) -> None:
        """Encode the next frame; raises `InvalidParameter` for another size, or one out of order."""
        size = check_image(frame.image).shape
        if size != (self._facts.height, self._facts.width, 3):
            raise InvalidParameter("frame", "×".join(map(str, size)), "is not of the clip's size")
        if self._next is None:
            self._first = frame.time
        elif frame.index != self._next or frame.time <= self._last:
            raise InvalidParameter("frame", frame.index, f"does not follow frame {self._next - 1}")
        self._next, self._last = frame.index + 1, frame.time
        self._mux(self._encoded(frame))

    def close(self) -> None:
        """Write what is left; the file is complete and on the disk then."""
        if self._next is None:
            self._file.close()
            raise OutputError(f"cannot write {shown(self._path)}: it has no frames")
        self._mux(None)
        with told_of(self._path), self._file:
            self._container.close()
            self._file.flush()
            os.fsync(self._file.fileno())

    def _encoded(self, frame: Frame) -> Any:
        levels = np.ascontiguousarray(frame.image)
        plain = self._av.VideoFrame.from_numpy_buffer(levels, "rgb24")
        made = self._to_yuv.reformat(
            plain, format=self._pixels, dst_colorspace=BT709, dst_color_range=LIMITED, threads=1
        )
        made.pts = int((frame.time - self._first) * self._facts.time_base / self._unit)
        made.time_base = self._unit
        return made

    def _mux(self, frame: Any) -> None:
        with told_of(self._path):
            for packet in self._stream.encode(frame):
                self._container.mux(packet)


def _rate(facts: Facts) -> Fraction:
    rate = (facts.frames - 1) / facts.seconds if facts.seconds else Fraction(25)
    return min(max(rate, Fraction(SLOWEST)), Fraction(FASTEST)).limit_denominator(2**16)
