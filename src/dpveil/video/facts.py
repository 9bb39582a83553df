"""What is known about a clip before any frame of it is replaced, and one decoded frame."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import UInt8


@dataclass(frozen=True, kw_only=True)
class Facts:
    """A clip: `width` and `height` in pixels of its upright frames, and the exact time of every frame.

    `sha256` is that of the file's bytes, private as the clip. `time_base` is the unit of times in seconds.
    `start` is the time of the first frame in that unit, and `steps` are pairs (difference, count): the next
    `count` frames come so much later than the one before. `audio` says whether there is sound. `dropped`
    names in words what a release leaves out of the file, such as "2 subtitle streams". `fields` says that
    frames consist of two fields each (interlaced), which are made whole from the frames beside them.
    """

    sha256: str
    format: str
    codec: str
    width: int
    height: int
    time_base: Fraction
    start: int
    steps: tuple[tuple[int, int], ...]
    audio: bool
    dropped: tuple[str, ...] = ()
    fields: bool = False

    @property
    def frames(self) -> int:
        """The number of frames; at least one.

        >>> one = dict(sha256="", format="mp4", codec="h264", width=8, height=8, audio=False)
        >>> Facts(**one, time_base=Fraction(1, 90), start=0, steps=((3, 2), (6, 1))).frames
        4
        """
        return 1 + sum(count for _, count in self.steps)

    @property
    def times(self) -> Iterator[int]:
        """The time of every frame, in units of `time_base`."""
        time = self.start
        yield time
        for step, count in self.steps:
            for _ in range(count):
                time += step
                yield time

    @property
    def seconds(self) -> Fraction:
        """From the first frame to the last, in seconds."""
        return sum((step * count for step, count in self.steps), 0) * self.time_base


@dataclass(frozen=True, eq=False)
class Frame:
    """One decoded frame: its number from 0, its time in the clip's unit, and upright sRGB levels."""

    index: int
    time: int
    image: UInt8[np.ndarray, "h w 3"]
