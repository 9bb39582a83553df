"""The times of frames: how missing and repeated ones are put right, and lists of them as runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from dpveil.video.facts import Facts


class Backwards(Exception):
    """A frame is shown after one of a later time."""


class Clock:
    """Gives every decoded frame its time, in the order in which they are shown.

    A time that is missing is `usual` units after the one before. One that repeats is a single unit later
    than the one before, as are those that follow until the clip's own times are later again. `repaired`
    says whether any time was not the file's own.
    """

    def __init__(self, usual: int) -> None:
        self._usual = max(1, usual)
        self._own: int | None = None
        self._last: int | None = None
        self.repaired = False

    def time(self, own: int | None) -> int:
        """Return the time of the next frame, which has its `own` in the file; raises `Backwards`."""
        if own is None:
            time = 0 if self._last is None else self._last + self._usual
        elif self._own is not None and own < self._own:
            raise Backwards
        else:
            time = own if self._last is None else max(own, self._last + 1)
            self._own = own
        self.repaired |= time != own
        self._last = time
        return time


def runs(times: Iterable[int]) -> tuple[int, tuple[tuple[int, int], ...]]:
    """Return the first of `times`, and their differences as pairs (difference, count).

    >>> runs([5, 8, 11, 12])
    (5, ((3, 2), (1, 1)))
    """
    rest = iter(times)
    start = last = next(rest)
    steps: list[tuple[int, int]] = []
    for time in rest:
        step = time - last
        if steps and steps[-1][0] == step:
            steps[-1] = (step, steps[-1][1] + 1)
        else:
            steps.append((step, 1))
        last = time
    return start, tuple(steps)


def durations(facts: Facts) -> Sequence[tuple[int, int]]:
    """Return for how long frames are shown, as runs (duration, count), in units of `facts.time_base`.

    The last frame, of which nothing is known, is shown as long as the one before, but a second at most;
    a single one for 1/25 s.
    """
    second = max(1, round(1 / facts.time_base))
    last = min(facts.steps[-1][0], second) if facts.steps else max(1, second // 25)
    return (*facts.steps, (last, 1))


def clock(seconds: float) -> str:
    """Return a time of a clip as minutes and seconds, rounded down to hundredths.

    >>> clock(61.259), clock(3601)
    ('1:01.25', '1:00:01.00')
    """
    hundredths = math.floor(round(seconds * 100, 3))
    minutes, rest = divmod(hundredths, 6000)
    hours, minutes = divmod(minutes, 60)
    start = f"{hours}:{minutes:02d}" if hours else f"{minutes}"
    return f"{start}:{rest // 100:02d}.{rest % 100:02d}"
