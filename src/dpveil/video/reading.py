"""A clip: what is known about it, and its frames, read again and again from one open file."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from dpveil.core.parameters import check_count
from dpveil.errors import ClipError, InvalidParameter
from dpveil.video.containers import container_of, damaged
from dpveil.video.decoding import Way
from dpveil.video.facts import Facts, Frame
from dpveil.video.source import Source
from dpveil.video.streams import told
from dpveil.video.survey import survey
from dpveil.video.upright import Upright

MAX_PIXELS: Final = 8192 * 4320
"""Default limit on the pixels of a frame: 8K. A clip needs memory for some dozens of frames."""

DECODED: Final[set[str]] = set()
"""SHA-256 of the clips of which this process has decoded every frame."""


def open_clip(path: str | Path, *, max_pixels: int = MAX_PIXELS) -> Clip:
    """Open the clip in the file at `path`, and find its facts; use it as a context manager.

    Only regular files are read, in MP4 or MOV, Matroska or WebM, AVI, or MPEG transport and program streams,
    by their contents; `max_pixels` limits the pixels of a frame. Raises `ClipError` with the file, the
    problem and the remedy, and `UsageError` without PyAV.
    """
    most = check_count(max_pixels, "max_pixels")
    source = Source(path)
    try:
        return Clip(Way(source, container_of(source), most))
    except BaseException:
        source.close()
        raise


class Clip:
    """An open clip; `facts` are what is known about it."""

    facts: Facts

    def __init__(self, way: Way) -> None:
        self.way = way
        self._found = survey(way)
        self.facts = self._found.facts
        self._upright = Upright(self._found.look, way.source, way.most)

    def __enter__(self) -> Clip:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def check(self) -> None:
        """Raise `ClipError` if the file was written to since it was opened."""
        self.way.source.check()

    def check_bytes(self) -> None:
        """Raise `ClipError` unless the file's bytes are those of `facts`, and it was not written to."""
        self.way.source.check_bytes(self.facts.sha256)

    def close(self) -> None:
        """Close the file."""
        self.way.source.close()

    def frames(self, start: int = 0, stop: int | None = None) -> Iterator[Frame]:
        """Return the frames from number `start` to before `stop`, or to the last, one after the other.

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
            with told(self.way.source, f"frame {index}"):
                image = self._upright.image(picture)
            yield Frame(index, time, image)
            if index == stop - 1 < self.facts.frames - 1:
                break
        if index != stop - 1:
            raise self._lies()
        self.check()
        if start == 0 and stop == self.facts.frames:
            DECODED.add(self.facts.sha256)

    def _from(self, start: int, times: list[int]) -> Iterator[tuple[int, Any]]:
        """Return times and pictures of the frames from `start` on."""
        near = times[max(0, start - 2)] if start and self._found.clean else None
        reached = None if near is None else self._reached(near, times[start])
        return reached or islice(self._shown(), start, None)

    def _reached(self, near: int, time: int) -> Iterator[tuple[int, Any]] | None:
        """Return the frames from `time` on, decoded from a keyframe before `near`; None if there is none.

        What precedes a keyframe may be missing, or may refer to frames before it.
        """
        found = self._shown(near)
        try:
            for shown in found:
                if shown[0] >= time:
                    return chain([shown], found) if shown[0] == time else None
        except ClipError:
            pass
        return None

    def _shown(self, near: int | None = None) -> Iterator[tuple[int, Any]]:
        return self.way.shown(self._found.look, self._found.usual, near)

    def _lies(self) -> ClipError:
        return damaged(self.way.source, "what decodes is not what was found when it was opened")
