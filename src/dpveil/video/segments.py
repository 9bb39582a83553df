"""Parts of a clip: the segments that are written one by one, and single frames picked from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from dpveil.video.facts import Facts, Frame

if TYPE_CHECKING:
    from dpveil.video.reading import Clip

SECONDS: Final = Fraction(8)
"""The least length of a segment: what a killed rendering loses is at most one of them."""
MOST_FRAMES: Final = 600
"""Most frames of a segment, whatever their times."""
SKIP: Final = 60
"""Frames that are decoded and dropped rather than seeking."""


def spans(facts: Facts) -> list[tuple[int, int]]:
    """Return the first frame of every segment, and that of the next one (or the number of frames).

    >>> one = dict(sha256="", format="mp4", codec="h264", width=8, height=8, audio=False)
    >>> spans(Facts(**one, time_base=Fraction(1, 10), start=0, steps=((1, 179),)))
    [(0, 80), (80, 180)]
    """
    starts, began = [0], facts.start
    for index, time in enumerate(facts.times):
        if (time - began) * facts.time_base >= SECONDS or index - starts[-1] >= MOST_FRAMES:
            starts.append(index)
            began = time
    if len(starts) > 1 and (facts.frames - starts[-1]) * 2 < starts[-1] - starts[-2]:
        del starts[-1]  # a short rest belongs to the segment before
    return [*pairwise([*starts, facts.frames])]


def picked(clip: Clip, wanted: Iterable[int]) -> Iterator[Frame]:
    """Yield these frames of a clip in order, seeking where there is much between them."""
    left = sorted(set(wanted))
    while left:
        run = [left.pop(0)]
        while left and left[0] - run[-1] <= SKIP:
            run.append(left.pop(0))
        due = set(run)
        for frame in clip.frames(run[0], run[-1] + 1):
            if frame.index in due:
                yield frame


def moments(facts: Facts, count: int, within: Sequence[tuple[int, int]] = ()) -> list[int]:
    """Return up to `count` frames that are spread evenly over the time of a clip, the middle of each part.

    `within` are pairs of the first and the last frame of what is to be seen; without any, all frames count.
    """
    times = [float(time) for time in facts.times]
    shown = [n for n in range(facts.frames) if not within or any(a <= n <= b for a, b in within)]
    if len(shown) <= count:
        return shown
    first, last = times[shown[0]], times[shown[-1]]
    wanted = [first + (last - first) * (2 * k + 1) / (2 * count) for k in range(count)]
    return sorted({min(shown, key=lambda n: abs(times[n] - time)) for time in wanted})
